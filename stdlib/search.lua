-- Positions in what is sorted, and what is made of them. Their annotations are in api/indexing.lua.
--
-- A binary search as so many gathers as the axis needs, for all elements side by side: no loop, and no branch.

local dc = require "deepc"
local _, core = ...
require "deepc.operands"

local searching = {}

local describe = core.describe

local function fail(row, op, hint, text, ...)
  core.fail(row, op, text:format(...), hint)
end

-- Is the element of the sorted axis left of v? NaN is behind all numbers.
local function is_before(v, right)
  local float = v.dtype:match "f%d"
  local nan = float and v:isnan()
  if right then
    return function(a) return float and a:le(v) | nan or a:le(v) end
  end
  return function(a) return float and a:lt(v) | nan & a:eq(a) or a:lt(v) end
end

-- How many elements of the last axis of `sorted` are before v; with `right` those equal to it, too.
function core.search(op, sorted, v, right)
  local rank = #sorted.shape
  local n, before = sorted.shape[rank], is_before(v, right)
  local function reads(i) return before(core.pick(op, sorted, i, rank, rank - 1)) end
  local at = dc.full("i32[]", 0):expand(v.shape)
  if core.is_size(n) then -- by powers of two
    local _, most = core.size_range(n)
    local step = 1
    while step * 2 <= most do
      step = step * 2
    end
    while step >= 1 do
      local next_at = at + step
      local inside = next_at:le(n:cast "i32")
      at = dc.where(inside & reads(next_at - 1), next_at, at)
      step = step // 2
    end
    return at
  end
  while n > 1 do
    local half = n // 2
    at = dc.where(reads(at + (half - 1)), at + half, at)
    n = n - half
  end
  return n == 0 and at or dc.where(reads(at), at + 1, at)
end

-- Values beside the sorted ones, of their dtype; tables and numbers become tensors.
local function as_tensor(op, what, v, like)
  if type(v) == "number" then
    return dc.full(like.dtype .. "[]", v)
  elseif type(v) == "table" and not core.kind(v) then
    v = core.anywhere(dc.tensor(v, like.dtype))
  end
  core.check_tensor(op, v, what)
  if v.dtype ~= like.dtype then
    core.fail("DTYPE", op, ("dtypes differ: %s and %s"):format(describe(like), describe(v)), ":cast makes them equal",
      "left", like, "right", v)
  end
  return v
end

-- One sorted axis for all values, or one for each row of both.
local function check_rows(op, sorted, v)
  local a, b = sorted.shape, v.shape
  local fits = #a == 1 or #a == #b
  for i = 1, #a - 1 do
    fits = fits and a[i] == b[i]
  end
  if #a == 0 or not fits then
    core.fail("DIMS", op, ("%s for values %s; one sorted axis, or one for each row of the values, is needed"):format(
      describe(sorted), describe(v)), nil, "sorted", sorted, "values", v)
  end
end

local function side_of(op, options)
  local v = options and options.right
  return v ~= nil and core.unless_false(op, options, "right")
end

function searching.searchsorted(sorted, values, options)
  local op = "searchsorted"
  core.options(op, options, "right", "sorter")
  core.check_tensor(op, sorted)
  values = as_tensor(op, "values", values, sorted)
  check_rows(op, sorted, values)
  local sorter = options and options.sorter
  if sorter ~= nil then
    sorter = core.index(sorter, op)
    core.check_index(sorter, sorted, -1, op)
    sorted = core.pick(op, sorted, sorter, #sorted.shape, #sorted.shape - 1)
  end
  local y = core.search(op, sorted, values, side_of(op, options))
  return y
end

local function check_edges(op, edges)
  if #edges.shape ~= 1 then
    core.fail("DIMS", op, ("edges are %s; one axis is needed"):format(describe(edges)), nil, "edges", edges)
  end
end

function searching.bucketize(x, edges, options)
  local op = "bucketize"
  core.options(op, options, "right")
  core.check_tensor(op, x)
  edges = as_tensor(op, "edges", edges, x)
  check_edges(op, edges)
  local y = core.search(op, edges, x, side_of(op, options))
  return y
end

function searching.digitize(x, edges, options)
  local op = "digitize"
  core.options(op, options, "right", "descending")
  core.check_tensor(op, x)
  edges = as_tensor(op, "edges", edges, x)
  check_edges(op, edges)
  local right = side_of(op, options)
  local descending = options and options.descending ~= nil and core.unless_false(op, options, "descending")
  if not descending then
    local y = core.search(op, edges, x, not right)
    return y
  end
  local y = core.search(op, edges:flip(1), x, not right)
  local n = edges.shape[1]
  return (core.is_size(n) and n:cast "i32" or n) - y
end

-- ---- interpolation ----

local function check_points(op, xp, fp)
  if #xp.shape ~= 1 or #fp.shape ~= 1 or xp.shape[1] ~= fp.shape[1] then
    core.fail("DIMS", op, ("points are %s, values %s; one axis of the same size is needed"):format(describe(xp),
      describe(fp)), nil, "points", xp, "values", fp)
  elseif core.is_size(xp.shape[1]) then
    core.fail("EXTENT", op, ("the number of points, axis 1 of %s, has to be known"):format(describe(xp)), nil, "points",
      xp)
  elseif xp.shape[1] == 0 then
    core.fail("ARG", op, "there are no points", nil, "points", xp)
  end
end

-- Beyond an end: what the options say, else the value of that end.
local function end_value(op, options, key, of, x)
  local v = options and options[key]
  if v == nil then
    return of
  elseif type(v) ~= "number" then
    fail("ARG", op, nil, "%s is a number, not %s", key, core.shown(v))
  end
  return dc.full(x.dtype .. "[]", v)
end

function searching.interp(x, xp, fp, options)
  local op = "interp"
  core.options(op, options, "left", "right")
  core.check_floats(op, x)
  xp, fp = as_tensor(op, "points", xp, x), as_tensor(op, "values", fp, x)
  check_points(op, xp, fp)
  local narrow
  narrow, x, xp, fp = core.in_f32(x, xp, fp)
  local n = xp.shape[1]
  local first, last = xp[1], xp[n]
  local left, right = end_value(op, options, "left", fp[1], x), end_value(op, options, "right", fp[n], x)
  local y = fp[n]
  if n > 1 then
    local k = (core.search(op, xp, x, true) - 1):clamp(0, n - 2)
    local function at(of, i) return core.pick(op, of, i, 1, 0) end
    local x0, x1, f0, f1 = at(xp, k), at(xp, k + 1), at(fp, k), at(fp, k + 1)
    y = f0 + (x - x0) * ((f1 - f0) / dc.where(x1:eq(x0), 1, x1 - x0))
    y = dc.where(x:eq(last), fp[n], y)
  end
  y = dc.where(x:gt(last), right, dc.where(x:lt(first), left, y))
  if n == 1 then
    y = dc.where(x:isnan(), x, y)
  end
  return narrow(y)
end

return core.entries(searching)
