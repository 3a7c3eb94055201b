-- Norms of any order and distances of all pairs: dc.cdist, and what nn/similarity.lua and losses need of it. Its
-- annotation is in api/arrange.lua.

local dc = require "deepc"
local _, core = ...
require "deepc.operands"

local describe = core.describe

local function check_order(op, p)
  if type(p) ~= "number" or p ~= p or p < 0 then
    core.fail("ARG", op, ("p is a number from 0 on, or math.huge, not %s"):format(core.shown(p)))
  end
  return p
end

-- x ^ p of numbers from 0 on; the gradient at 0 is 0, also where that of the power is infinite.
function core.power(x, p)
  local positive = x:gt(0)
  return dc.where(positive, dc.where(positive, x, 1) ^ p, 0)
end

-- The norm of order p along an axis.
function core.p_norm(x, p, axis, keep)
  local along = { axis = axis, keep = keep }
  if p == 2 then
    return x:norm(along)
  elseif p == 0 then
    return x:ne(0):cast(x.dtype):sum(along)
  elseif p == 1 or x:size(axis) == 0 then
    return x:abs():sum(along)
  elseif p == math.huge then
    return x:abs():max(along)
  end
  return core.power(core.power(x:abs(), p):sum(along), 1 / p)
end

local distances = {}

function distances.cdist(x, y, options)
  local op = "cdist"
  core.check_floats(op, x, "x")
  core.check_floats(op, y, "y")
  core.options(op, options, "p")
  local p = check_order(op, options and options.p or 2)
  local m, n = x.shape, y.shape
  if #m < 2 or #n < 2 or m[#m] ~= n[#n] then
    core.fail("DIMS", op, ("x is %s, y %s; [..., rows, size] with one size are needed"):format(describe(x),
      describe(y)), nil, "x", x, "y", y)
  elseif x.dtype ~= y.dtype then
    core.fail("DTYPE", op, ("x is %s, y %s"):format(describe(x), describe(y)), ":cast makes them equal", "x", x, "y", y)
  end
  m, n = { table.unpack(m) }, { table.unpack(n) }
  table.insert(m, #m, 1)
  table.insert(n, #n - 1, 1)
  local narrow, left, right = core.in_f32(x, y)
  local distance = narrow(core.p_norm(left:reshape(m) - right:reshape(n), p, -1))
  return distance
end

core.check_order = check_order

return core.entries(distances)
