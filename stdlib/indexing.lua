-- Elements at integers that are data: element by element along an axis, rows, coordinates, segments. Their annotations
-- are in api/indexing.lua.
--
-- All are one gather, or scatters into one value (core/ir/ops.def), around movements. Integers count from 0 and are
-- tested where they are used, inside typed functions too.

local dc = require "deepc"
local _, core = ...
require "deepc.operands"

local indexing = {}

local describe = core.describe

local function fail(row, op, hint, text, ...)
  core.fail(row, op, text:format(...), hint)
end

-- The number of the axis of x, 1 unless given.
local function axis_of(op, x, axis)
  core.check_tensor(op, x)
  if axis == nil then
    axis = 1
  end
  local k = core.control_axis(x, axis, op)
  return k
end

-- Tests that integers are inside axis k of x. What comes back is inside, as kernels then see: a test of each by itself
-- is not needed.
function core.checked_index(op, index, x, k)
  core.check_index(index, x, k, op)
  local n = x.shape[k]
  if core.is_size(n) or n == 0 or n > 0x7fffffff or not index.dtype:match "32$" then
    return index
  end
  return index:clamp(0, n - 1)
end

local checked = core.checked_index

-- ---- how values are combined ----

local ways = { set = true, add = true, mul = true, max = true, min = true, mean = true }
local elsewhere = { sum = "add", prod = "mul", multiply = "mul", amax = "max", amin = "min", replace = "set" }

-- What the options say: how, and whether what is there takes part.
local function read_way(op, options, default)
  core.options(op, options, "reduce", "include_self")
  local how = default
  if options and options.reduce ~= nil then
    how = options.reduce
  end
  if not ways[how] then
    fail("ARG", op, elsewhere[how] and ('"%s" is "%s" here'):format(how, elsewhere[how]) or nil,
      'reduce is "set", "add", "mul", "max", "min" or "mean", not %s', core.shown(how))
  end
  return how, core.unless_false(op, options, "include_self")
end

local lowest = { bool = false, i8 = -0x80, i16 = -0x8000, i32 = -0x80000000, i64 = math.mininteger, u8 = 0, u16 = 0,
  u32 = 0, u64 = 0 }
local highest = { bool = true, i8 = 0x7f, i16 = 0x7fff, i32 = 0x7fffffff, i64 = math.maxinteger, u8 = 0xff,
  u16 = 0xffff, u32 = 0xffffffff }

-- What changes nothing: a scalar.
local function neutral(dtype, how)
  local scalar = dtype .. "[]"
  if how == "max" then
    return dc.full(scalar, lowest[dtype] == nil and -math.huge or lowest[dtype])
  elseif how ~= "min" then
    return dc.full(scalar, how == "mul" and 1 or 0)
  elseif dtype == "u64" then
    return ~dc.zeros(scalar)
  end
  return dc.full(scalar, highest[dtype] == nil and math.huge or highest[dtype])
end

local function zeros_like(x)
  return dc.full(x.dtype .. "[]", 0):expand(x.shape)
end

-- How many values come to each place: of the shape of x, or of its axis alone where places are rows.
local function counts(op, x, index, axis, batch)
  local one = dc.full(x.dtype .. "[]", 1)
  if batch > 0 or #x.shape == 1 then
    return core.place(op, "add", zeros_like(x), index, one, axis, batch)
  end
  local shape = x.shape
  local n = core.place(op, "add", dc.full(x.dtype .. "[]", 0):expand { shape[axis] }, index, one, 1, 0)
  for i = 1, #shape do
    shape[i] = i == axis and shape[i] or 1
  end
  return n:reshape(shape)
end

-- The mean of floats, and of integers as f32.
local function place_mean(op, x, index, v, axis, batch, with_self)
  if x.dtype ~= v.dtype then
    core.fail("DTYPE", op, ("dtypes differ: %s and %s"):format(describe(x), describe(v)), ":cast makes them equal", "x",
      x, "values", v)
  elseif not x.dtype:match "f%d" then
    x, v = x:cast "f32", v:cast "f32"
  end
  local narrow
  narrow, x, v = core.in_f32(x, v)
  local sum = core.place(op, "add", with_self and x or zeros_like(x), index, v, axis, batch)
  local n = counts(op, x, index, axis, batch)
  if with_self then
    return narrow(sum / (n + 1))
  end
  return narrow(dc.where(n:gt(0), sum / n:maximum(1), x))
end

-- x with values at the integers along the axis; `batch` axes in front are those of the integers, too.
local function place(op, how, with_self, x, index, v, axis, batch)
  if how == "mean" then
    return place_mean(op, x, index, v, axis, batch, with_self)
  elseif how ~= "set" and not with_self then
    x = core.place(op, "set", x, index, neutral(x.dtype, how), axis, batch)
  end
  return core.place(op, how, x, index, v, axis, batch)
end

local function values_of(op, x, v)
  if type(v) == "number" or type(v) == "boolean" then
    return dc.full(x.dtype .. "[]", v)
  end
  core.check_tensor(op, v, "values")
  return v
end

-- ---- element by element along an axis ----

-- Axis k behind the others, and back from there.
local function behind(x, k)
  local n, order = #x.shape, {}
  if k >= n then
    return x
  end
  for i = 1, n - 1 do
    order[i] = i < k and i or i + 1
  end
  order[n] = k
  return x:permute(order)
end

local function back(x, k)
  local n, order = #x.shape, {}
  if k >= n then
    return x
  end
  for i = 1, n do
    order[i] = i < k and i or i == k and n or i - 1
  end
  return x:permute(order)
end

local function check_rank(op, x, index, what)
  if #x.shape ~= #index.shape then
    core.fail("DIMS", op, ("x has %d axes, %s %d; as many are needed"):format(#x.shape, what, #index.shape),
      what == "index" and (op == "gather" and ":take(idx, axis) picks whole rows"
      or ":index_add and :put(idx, values, axis) take whole rows") or nil, "x", x, what, index)
  end
end

-- The sizes that both have but along axis k, and the names agree. Only the second stretches unless `both`.
local function common(op, x, index, k, both)
  local a, b = x.shape, index.shape
  local sx, sy = x.shape, index.shape
  for i = 1, #a do
    local _, m = core.control_axis(x, i, op)
    local _, n = core.control_axis(index, i, op)
    if i ~= k and m and n and m ~= n then
      core.fail("NAMES", op, ("axis %d: '%s' against '%s'"):format(i, m, n), nil, "x", x, "index", index)
    elseif i ~= k and a[i] ~= b[i] then
      if b[i] == 1 and not n then
        sy[i] = a[i]
      elseif a[i] == 1 and not m and both then
        sx[i] = b[i]
      else
        core.fail("DIMS", op, ("axis %d: %s against %s"):format(i, tostring(a[i]), tostring(b[i])),
          ("the integers are one for each element but along axis %d; an axis of size 1 stretches"):format(k), "x", x,
          "index", index)
      end
    end
  end
  return sx, sy
end

local function stretched(x, shape)
  for i, n in ipairs(x.shape) do
    if n ~= shape[i] then
      return x:expand(shape)
    end
  end
  return x
end

function indexing.gather(x, index, axis)
  local op = "gather"
  local k = axis_of(op, x, axis)
  index = core.index(index, op)
  check_rank(op, x, index, "index")
  local sx, sy = common(op, x, index, k, true)
  core.check_index(index, x, k, op)
  local n = #x.shape
  local y = core.pick(op, behind(stretched(x, sx), k), behind(stretched(index, sy), k), n, n - 1)
  return (back(y, k))
end

local function scatter(op, x, index, v, axis, how, with_self)
  local k = axis_of(op, x, axis)
  index, v = core.index(index, op), values_of(op, x, v)
  check_rank(op, x, index, "index")
  local _, sy = common(op, x, index, k, false)
  index = stretched(checked(op, index, x, k), sy)
  if #v.shape > 0 then
    check_rank(op, x, v, "values")
    v = behind(stretched(v, sy), k)
  end
  local n = #x.shape
  return (back(place(op, how, with_self, behind(x, k), behind(index, k), v, n, n - 1), k))
end

function indexing.scatter(x, index, values, axis, options)
  local how, with_self = read_way("scatter", options, "set")
  local y = scatter("scatter", x, index, values, axis, how, with_self)
  return y
end

function indexing.scatter_add(x, index, values, axis)
  local y = scatter("scatter_add", x, index, values, axis, "add", true)
  return y
end

-- ---- rows ----

local function place_rows(op, x, index, v, axis, how, with_self)
  local k = axis_of(op, x, axis)
  index, v = checked(op, core.index(index, op), x, k), values_of(op, x, v)
  return place(op, how, with_self, x, index, v, k, 0)
end

function indexing.index_add(x, index, values, axis, options)
  local op = "index_add"
  core.options(op, options, "alpha")
  local alpha = options and options.alpha
  core.check_tensor(op, x)
  values = values_of(op, x, values)
  local y = place_rows(op, x, index, alpha == nil and values or values * alpha, axis, "add", true)
  return y
end

function indexing.index_copy(x, index, values, axis)
  local y = place_rows("index_copy", x, index, values, axis, "set", true)
  return y
end

function indexing.index_fill(x, index, value, axis)
  local op = "index_fill"
  core.check_tensor(op, x)
  value = values_of(op, x, value)
  if #value.shape > 0 then
    core.fail("DIMS", op, ("the value is %s, one for all is needed"):format(describe(value)),
      ":index_copy and :put take one for each", "value", value)
  end
  local y = place_rows(op, x, index, value, axis, "set", true)
  return y
end

function indexing.index_reduce(x, index, values, axis, options)
  local how, with_self = read_way("index_reduce", options, "add")
  local y = place_rows("index_reduce", x, index, values, axis, how, with_self)
  return y
end

-- ---- coordinates ----

-- The number of the element that coordinates name, among those of the first axes of x.
local function flat_index(op, x, list)
  local n, all, most = #list, x.shape, 1
  if n == 0 or n > #all then
    core.fail("ARG", op, ("%d coordinates for %s; 1 to %d are needed"):format(n, describe(x), #all), nil, "x", x)
  end
  for i = 1, n do
    list[i] = checked(op, core.index(list[i], op), x, i)
    local _, bound = 0, all[i]
    if core.is_size(all[i]) then
      _, bound = core.size_range(all[i])
    end
    most = most * bound
  end
  local dtype = most < 0x80000000 and "i32" or "i64"
  local flat = list[1]
  if n > 1 then
    flat = flat:cast(dtype)
  end
  for i = 2, n do
    flat = flat * all[i] + list[i]:cast(dtype)
  end
  return n > 1 and x:flatten(1, n) or x, flat
end

local function list_of(op, index)
  if type(index) ~= "table" or core.kind(index) then
    fail("ARG", op, ("dc.%s takes one tensor, whose last axis has the coordinates"):format(
      op == "take_nd" and "gather_nd" or "scatter_nd"), "a list of integers, one for each axis, is needed, not %s",
      describe(index))
  end
  return { table.unpack(index) }
end

-- The coordinates in the last axis of an index, as a list.
local function along_last(op, index)
  index = core.index(index, op)
  local rank = #index.shape
  if rank == 0 then
    core.fail("ARG", op, "the index has no axis; its last one has the coordinates", nil, "index", index)
  end
  local n, list, part = index.shape[rank], {}, {}
  if core.is_size(n) then
    core.fail("EXTENT", op, "the number of coordinates, the size of the last axis, has to be known", nil, "index",
      index)
  end
  for i = 1, rank - 1 do
    part[i] = {}
  end
  for i = 1, n do
    part[rank] = i
    list[i] = index[part]
  end
  return list
end

local function pick_at(op, x, list)
  local flat, index = flat_index(op, x, list)
  return core.pick(op, flat, index, 1, 0)
end

local function place_at(op, x, list, v, options)
  local how, with_self = read_way(op, options, "set")
  v = values_of(op, x, v)
  local shape = x.shape
  local flat, index = flat_index(op, x, list)
  local y = place(op, how, with_self, flat, index, v, 1, 0)
  return #list > 1 and y:reshape(shape) or y
end

function indexing.take_nd(x, index)
  core.check_tensor("take_nd", x)
  local y = pick_at("take_nd", x, list_of("take_nd", index))
  return y
end

function indexing.gather_nd(x, index)
  core.check_tensor("gather_nd", x)
  local y = pick_at("gather_nd", x, along_last("gather_nd", index))
  return y
end

function indexing.put_nd(x, index, values, options)
  core.check_tensor("put_nd", x)
  local y = place_at("put_nd", x, list_of("put_nd", index), values, options)
  return y
end

function indexing.scatter_nd(x, index, values, options)
  core.check_tensor("scatter_nd", x)
  local y = place_at("scatter_nd", x, along_last("scatter_nd", index), values, options)
  return y
end

-- ---- segments ----

-- What the integers have the shape of: the first axes of x. Returns the sizes of the others, and their names.
local function check_segments(op, x, ids)
  local a, b, rest, names = x.shape, ids.shape, {}, {}
  local fits = #b > 0 and #b <= #a
  for i = 1, #b do
    fits = fits and a[i] == b[i]
  end
  if not fits then
    core.fail("DIMS", op, ("the integers are %s; they have the sizes of the first axes of %s"):format(describe(ids),
      describe(x)), nil, "x", x, "segments", ids)
  end
  for i = #b + 1, #a do
    local _, name = core.control_axis(x, i, op)
    rest[#rest + 1], names[#names + 1] = a[i], name or false
  end
  return rest, names
end

local function segments(op, how, x, ids, count, options)
  core.check_tensor(op, x)
  core.options(op, options, "fill")
  ids = core.index(ids, op)
  if not core.is_size(count) and (math.type(count) ~= "integer" or count < 0) then
    fail("ARG", op, "it is the size of the result, so it is known when the function is defined",
      "the number of segments is a whole number, not %s", core.shown(count))
  end
  local rest, names = check_segments(op, x, ids)
  local narrow = function(y) return y end
  if how == "mean" then
    x = x.dtype:match "f%d" and x or x:cast "f32"
    narrow, x = core.in_f32(x)
  elseif (how == "add" or how == "mul") and x.dtype:match "^[iu]" then -- as sums have it
    x = x:cast(x.dtype:match "^u" and "u64" or "i64")
  end
  local shape = { count, table.unpack(rest) }
  local start = neutral(x.dtype, how):expand(shape):rename { false, table.unpack(names) }
  ids = checked(op, ids, start, 1)
  local fill = options and options.fill
  local y = core.place(op, how == "mean" and "add" or how, start, ids, x, 1, 0)
  if how == "mean" or fill ~= nil then
    local ones = dc.full("f32[]", 0):expand(shape)
    local n = counts(op, ones, ids, 1, 0)
    y = how == "mean" and y / n:cast(y.dtype):maximum(1) or y
    y = fill ~= nil and dc.where(n:gt(0), y, fill) or y
  end
  return narrow(y)
end

for _, row in ipairs { { "sum", "add" }, { "prod", "mul" }, { "max", "max" }, { "min", "min" }, { "mean", "mean" } } do
  local op, how = "segment_" .. row[1], row[2]
  indexing[op] = function(x, ids, count, options)
    local y = segments(op, how, x, ids, count, options)
    return y
  end
end

return core.entries(indexing)
