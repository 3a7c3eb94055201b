-- How far rows are from each other: nn.normalize, nn.cosine_similarity, nn.pairwise_distance. For all pairs: dc.cdist.

local nn = require "deepc.nn.class"
local _, core = ...
require "deepc.distances"

local describe = core.describe

local function check_eps(op, eps)
  if type(eps) ~= "number" or eps ~= eps or eps < 0 then
    core.fail("ARG", op, ("eps is a number from 0 on, not %s"):format(core.shown(eps)))
  end
  return eps
end

-- The axis of the option; without one axis 2, as in PyTorch, or the only one there is.
local function read_axis(op, x, axis)
  if #x.shape == 0 then
    core.fail("DIMS", op, ("%s has no axis"):format(describe(x)), nil, "x", x)
  end
  return (core.control_axis(x, axis == nil and math.min(2, #x.shape) or axis, op))
end

local function check_two(op, a, b)
  core.check_floats(op, a, "x")
  core.check_floats(op, b, "y")
  if a.dtype ~= b.dtype then
    core.fail("DTYPE", op, ("x is %s, y %s"):format(describe(a), describe(b)), ":cast makes them equal", "x", a, "y", b)
  end
end

-- As large as the operation of both makes it.
local function stretched(x, shape)
  local own = { table.unpack(x.shape) }
  for _ = #own + 1, #shape do
    table.insert(own, 1, 1)
  end
  return x:reshape(own):expand(shape)
end

---x / max(norm of x, eps) along an axis (F.normalize of PyTorch).
---
---    nn.normalize(dc.tensor { { 3, 4 } })
---
---Options: p, the order of the norm (2; math.huge is the largest), axis (2, or the only one there is), eps (1e-12).
---
---Errors: DC0103 for the axis, DC0202 for what is no float, DC0101 for options.
---@param x deepc.Tensor floats
---@param options? { p?: number, axis?: deepc.Axis, eps?: number }
---@return deepc.Tensor
function nn.normalize(x, options)
  local op = "normalize"
  core.check_floats(op, x)
  core.options(op, options, "p", "axis", "eps")
  options = options or {}
  local p, eps = core.check_order(op, options.p or 2), check_eps(op, options.eps or 1e-12)
  local axis = read_axis(op, x, options.axis)
  local narrow, wide = core.in_f32(x)
  local y = narrow(wide / core.p_norm(wide, p, axis, true):maximum(eps))
  return y
end

---The cosine of the angle between x and y along an axis: the product of both, each divided by max(its norm, eps)
---(F.cosine_similarity of PyTorch).
---
---    nn.cosine_similarity(dc.tensor { { 1, 0 } }, dc.tensor { { 1, 1 } })
---
---Options: axis (2, or the only one there is), eps (1e-8).
---
---Errors: DC0301 for shapes that do not fit, DC0103 for the axis, DC0202 for dtypes, DC0101 for options.
---@param x deepc.Tensor floats
---@param y deepc.Tensor of the dtype of x
---@param options? { axis?: deepc.Axis, eps?: number }
---@return deepc.Tensor
function nn.cosine_similarity(x, y, options)
  local op = "cosine_similarity"
  check_two(op, x, y)
  core.options(op, options, "axis", "eps")
  options = options or {}
  local eps = check_eps(op, options.eps or 1e-8)
  local narrow, a, b = core.in_f32(x, y)
  local shape = (a * b).shape -- refuses what does not stretch
  local axis = read_axis(op, #y.shape > #x.shape and y or x, options.axis)
  local function unit(v)
    v = stretched(v, shape)
    return v / core.p_norm(v, 2, axis, true):maximum(eps)
  end
  local cosine = narrow((unit(a) * unit(b)):sum(axis))
  return cosine
end

---The norm of x - y + eps along the last axis (F.pairwise_distance of PyTorch).
---
---    nn.pairwise_distance(dc.tensor { { 1, 2 } }, dc.tensor { { 4, 6 } })
---
---Options: p, the order of the norm (2), eps (1e-6), keep (false; true: the axis stays, with size 1).
---
---Errors: DC0301 for shapes that do not fit, DC0202 for dtypes, DC0101 for options.
---@param x deepc.Tensor floats
---@param y deepc.Tensor of the dtype of x
---@param options? { p?: number, eps?: number, keep?: boolean }
---@return deepc.Tensor
function nn.pairwise_distance(x, y, options)
  local op = "pairwise_distance"
  check_two(op, x, y)
  core.options(op, options, "p", "eps", "keep")
  options = options or {}
  local p, eps = core.check_order(op, options.p or 2), check_eps(op, options.eps or 1e-6)
  local keep = options.keep ~= nil and core.unless_false(op, options, "keep")
  local narrow, a, b = core.in_f32(x, y)
  local d = a - b
  read_axis(op, d, nil)
  local distance = narrow(core.p_norm(d + eps, p, -1, keep))
  return distance
end
