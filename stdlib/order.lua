-- Statistics of order, and what there is of each value once: made of x:sort and x:argsort. Their annotations are in
-- api/order.lua.

local dc = require "deepc"
require "deepc.operands"
local _, core = ...
require "deepc.counting"

local order = {}

local describe = core.describe

local function fail(row, op, hint, text, ...)
  core.fail(row, op, text:format(...), hint)
end

-- ---- axes ----

local function is_list(v)
  return type(v) == "table" and not core.kind(v) and getmetatable(v) == nil
end

-- The options of a reduction: an axis, a list of axes, or a table with `axis`, `keep` and these names.
local function read_options(op, spec, ...)
  if is_list(spec) and spec[1] == nil then
    core.options(op, spec, "axis", "keep", ...)
    return spec
  end
  return { axis = spec }
end

-- x with the axes behind the others, as one; all of them unless told. With it what gives a result the axes that are
-- kept.
local function reduced_last(op, x, options)
  local rank, goes, rest, axes = #x.shape, {}, {}, {}
  local list = options.axis
  if list == nil then
    list = {}
    for i = 1, rank do
      list[i] = i
    end
  end
  for _, axis in ipairs(is_list(list) and list or { list }) do
    local k = core.control_axis(x, axis, op)
    if goes[k] then
      fail("ARG", op, nil, "axis %d occurs twice", k)
    end
    goes[k], axes[#axes + 1] = true, k
  end
  local kept, shape = {}, x.shape
  for i = 1, rank do
    kept[i] = goes[i] and 1 or shape[i]
    if not goes[i] then
      rest[#rest + 1] = i
    end
  end
  table.sort(axes)
  local moved = x
  if #axes == 0 then
    moved = x:reshape(1)
  elseif rank > 1 then
    local to = table.move(axes, 1, #axes, #rest + 1, { table.unpack(rest) })
    moved = x:permute(to)
    moved = #axes > 1 and moved:flatten(#rest + 1) or moved
  end
  local keep = options.keep ~= nil and core.unless_false(op, options, "keep")
  return moved, function(y, front)
    if not keep then
      return y
    end
    return y:reshape(front and { front, table.unpack(kept) } or kept)
  end
end

local function floats_of(op, x)
  core.check_tensor(op, x)
  if x.dtype == "bool" then
    core.fail("DTYPE", op, ("x is %s, numbers are needed"):format(describe(x)), ':cast "f32"', "x", x)
  end
  return x.dtype:match "f%d" and x or x:cast "f32"
end

-- ---- quantiles ----

local ways = { linear = true, lower = true, higher = true, nearest = true, midpoint = true }

local function half_even(v)
  local low = math.floor(v)
  local rest = v - low
  return (rest > 0.5 or rest == 0.5 and low % 2 == 1) and low + 1 or low
end

-- Positions from 0 between which the quantile lies, and how far from the first one.
local function places(q, n, how)
  local at = q * (n - 1)
  local low, high = math.floor(at), math.ceil(at)
  if how == "lower" then
    return low, low, 0
  elseif how == "higher" then
    return high, high, 0
  elseif how == "nearest" then
    local near = half_even(at)
    return near, near, 0
  end
  return low, high, how == "midpoint" and high > low and 0.5 or at - low
end

local function between(a, b, share)
  return a * (1 - share) + b * share
end

-- The element at a position from 0 of the last axis.
local function at_place(sorted, k)
  local part = {}
  for i = 1, #sorted.shape - 1 do
    part[i] = {}
  end
  part[#sorted.shape] = k + 1
  return sorted[part]
end

-- Of n elements each, a number; NaN, which is the last one, is the quantile of what it is among.
local function fixed_quantile(sorted, q, n, how)
  local low, high, share = places(q, n, how)
  local a = at_place(sorted, low)
  local y = high == low and a or between(a, at_place(sorted, high), share)
  local last = at_place(sorted, n - 1)
  return dc.where(last:isnan(), last, y)
end

-- Of as many elements as `n` says, a tensor: one for all, or one for each row.
local function counted_quantile(op, sorted, q, n, how)
  local rank = #sorted.shape
  n = (n + dc.zeros "i32[]"):cast(sorted.dtype)
  local at = (n - 1) * q
  at = how == "lower" and at:floor() or how == "higher" and at:ceil() or how == "nearest" and at:round() or at
  local low, rows = at:floor(), {}
  for i = 1, rank - 1 do
    rows[i] = sorted.shape[i]
  end
  rows[rank] = 1
  local function element(k)
    k = k:cast "i32":maximum(0)
    k = #k.shape == 0 and k:expand(rows) or k:reshape(rows)
    return core.pick(op, sorted, k, rank, rank - 1):sum(-1)
  end
  local a = element(low)
  if how ~= "linear" and how ~= "midpoint" then
    return a
  end
  local share = at - low
  share = how == "midpoint" and dc.where(share:gt(0), 0.5, share) or share
  return dc.where(share:gt(0), between(a, element(at:ceil()), share), a)
end

local function check_share(op, q, most)
  if type(q) ~= "number" or not (q >= 0 and q <= most) then
    fail("ARG", op, most == 1 and ":percentile counts from 0 to 100" or nil,
      "q is a number from 0 to %d, or a list of them, not %s", most, core.shown(q))
  end
  return q / most
end

-- x as it is sorted, and quantiles of it. `skip`: without NaN.
local function quantiles(op, x, q, most, options, skip)
  x = floats_of(op, x)
  local how = options.interpolation
  if how == nil then
    how = "linear"
  end
  if not ways[how] then
    fail("ARG", op, nil, 'interpolation is "linear", "lower", "higher", "nearest" or "midpoint", not %s',
      core.shown(how))
  end
  local narrow
  narrow, x = core.in_f32(x)
  local moved, keeping = reduced_last(op, x, options)
  local n = moved.shape[#moved.shape]
  if n == 0 then
    core.fail("ARG", op, ("%s has no elements to choose from"):format(describe(x)), nil, "x", x)
  end
  local sorted = moved:sort(-1)
  local function one(v)
    v = check_share(op, v, most)
    if skip then
      return counted_quantile(op, sorted, v, (~sorted:isnan()):sum(-1), how)
    elseif core.is_size(n) then
      local last = moved:max(-1)
      return dc.where(last:isnan(), last, counted_quantile(op, sorted, v, n:cast "i32", how))
    end
    return fixed_quantile(sorted, v, n, how)
  end
  if not is_list(q) then
    return narrow(keeping(one(q)))
  end
  local list = {}
  for i, v in ipairs(q) do
    list[i] = one(v)
  end
  if #list == 0 then
    fail("ARG", op, nil, "q is an empty list")
  end
  return narrow(keeping(dc.stack(list, 1), #list))
end

function order.quantile(x, q, axis)
  local y = quantiles("quantile", x, q, 1, read_options("quantile", axis, "interpolation"))
  return y
end

function order.percentile(x, q, axis)
  local y = quantiles("percentile", x, q, 100, read_options("percentile", axis, "interpolation"))
  return y
end

function order.nanquantile(x, q, axis)
  local y = quantiles("nanquantile", x, q, 1, read_options("nanquantile", axis, "interpolation"), true)
  return y
end

function order.median(x, axis)
  local y = quantiles("median", x, 0.5, 1, read_options("median", axis))
  return y
end

function order.nanmedian(x, axis)
  local y = quantiles("nanmedian", x, 0.5, 1, read_options("nanmedian", axis), true)
  return y
end

function order.kthvalue(x, k, axis)
  local op = "kthvalue"
  core.check_tensor(op, x)
  local options = read_options(op, axis)
  if options.axis == nil then
    options.axis = -1
  end
  local moved, keeping = reduced_last(op, x, options)
  local n = moved.shape[#moved.shape]
  local most = core.is_size(n) and core.size_range(n) or n
  if math.type(k) ~= "integer" or k < 1 or k > most then
    core.fail("ARG", op, ("k is a whole number from 1 to %s, not %s"):format(tostring(most), core.shown(k)),
      "the smallest is number 1", "x", x)
  end
  local at = at_place(moved:argsort(-1), k - 1)
  local wide = at.shape
  wide[#wide + 1] = 1
  local rank = #moved.shape
  local y = core.pick(op, moved, at:reshape(wide), rank, rank - 1):reshape(at.shape)
  return keeping(y), keeping(at)
end

-- ---- each value once ----

-- Whether an element along the last, sorted axis is another one than that before it; all NaN are one value.
local function is_new(op, sorted)
  local rank, n = #sorted.shape, sorted.shape[#sorted.shape]
  local place = dc.iota(n)
  local before = core.pick(op, sorted, (place - 1):maximum(0), rank, 0)
  local new = sorted:ne(before)
  if sorted.dtype:match "f%d" then
    new = new & ~(sorted:isnan() & before:isnan())
  end
  return new | place:eq(0)
end

-- The end of the first of the longest runs of equal elements.
function order.mode(x, axis)
  local op = "mode"
  core.check_tensor(op, x)
  if core.is_complex(x.dtype) then
    core.fail("DTYPE", op, ("x is %s; complex numbers have no order"):format(describe(x)), "x:abs() has one", "x", x)
  end
  local options = read_options(op, axis)
  if options.axis == nil then
    options.axis = -1
  end
  local moved, keeping = reduced_last(op, x, options)
  local rank, n = #moved.shape, moved.shape[#moved.shape]
  if n == 0 then
    core.fail("ARG", op, ("%s has no elements to choose from"):format(describe(x)), nil, "x", x)
  end
  local perm = moved:argsort(-1)
  local place = dc.iota(n)
  local start = dc.where(is_new(op, core.pick(op, moved, perm, rank, rank - 1)), place, 0):cummax(-1)
  local last = (place - start):argmax(rank)
  local one = last.shape
  one[rank] = 1
  local at = core.pick(op, perm, last:reshape(one), rank, rank - 1)
  local y = core.pick(op, moved, at, rank, rank - 1)
  return keeping(y:reshape(last.shape)), keeping(at:reshape(last.shape))
end

function order.unique(x, options)
  local op = "unique"
  core.check_tensor(op, x)
  core.options(op, options, "bound", "fill", "more")
  local shape = x.shape
  local flat = #shape == 0 and x:reshape(1) or x:flatten()
  local n = flat.shape[1]
  if n == 0 then
    return core.compacted(op, flat, dc.zeros "bool[0]", options, 0)
  end
  local perm = flat:argsort()
  local sorted = core.pick(op, flat, perm, 1, 0)
  local new = is_new(op, sorted)
  local fill = options and options.fill
  if fill == nil then
    fill = x.dtype ~= "bool" and 0
  end
  local values, count = core.compacted(op, sorted, new, options, fill)
  local group = new:cumsum(1) - 1
  local none = dc.full("i32[]", 0)
  local inverse = core.place(op, "set", none:expand { n }, perm, group, 1, 0):reshape(shape)
  local counts = core.place(op, "add", none:expand(values.shape), group, dc.full("i32[]", 1), 1, 0)
  return values, count, inverse, counts
end

return core.entries(order)
