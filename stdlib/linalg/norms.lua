-- Norms of vectors and matrices.

local linalg = require "deepc.linalg.base"
local dc = require "deepc"
local _, core = ...
local base = core.linalg

-- ---- vectors ----

local function check_order(op, ord)
  if type(ord) ~= "number" or ord ~= ord then
    core.fail("ARG", op, ("ord is a number, not %s"):format(core.shown(ord)))
  end
end

-- (sum |x|^p)^(1/p), whose gradient at 0 is 0.
local function power_norm(x, p, how)
  local sum = (x:abs() ^ p):sum(how)
  local zero = sum:eq(0)
  return (dc.where(zero, 0, dc.where(zero, 1, sum) ^ (1 / p)))
end

-- Of floats of 32 bits or more; `how` as reductions take it.
local function vector_norm(x, ord, how)
  if ord == 2 then
    return x:norm(how)
  elseif ord == 1 then
    return x:abs():sum(how)
  elseif ord == math.huge then
    return x:abs():max(how)
  elseif ord == -math.huge then
    return x:abs():min(how)
  elseif ord == 0 then
    return x:ne(0):cast(x.dtype):sum(how)
  end
  return power_norm(x, ord, how)
end

-- Axes and `keep` as reductions take them; nil for all axes.
local function reduction(op, options)
  core.options(op, options, "axis", "keep")
  options = options or {}
  local keep = base.flag(op, options, "keep")
  if options.axis == nil then
    return keep and { keep = true } or nil
  end
  return { axis = options.axis, keep = keep }
end

---The norm of vectors: (sum |x|^ord)^(1/ord); 2 unless given, math.huge and -math.huge the largest and the smallest
---absolute value, 0 how many are not 0 (torch.linalg.vector_norm, np.linalg.vector_norm). Over all axes, or those
---given. The gradient at 0 is 0.
---
---    linalg.vector_norm(dc.tensor { 3, 4 })     linalg.vector_norm(dc.ones "f32[2, 3]", 1, { axis = 2 })
---
---Errors: DC0202 for integers, DC0103, DC0104 for axes, DC0101 for an order that is no number.
---@param x deepc.Tensor floats
---@param ord? number 2
---@param options? { axis?: deepc.Axes, keep?: boolean }
---@return deepc.Tensor
function linalg.vector_norm(x, ord, options)
  local op = "vector_norm"
  core.check_floats(op, x, "x")
  ord = ord == nil and 2 or ord
  check_order(op, ord)
  local how = reduction(op, options)
  local back, y = core.in_f32(x)
  return (back(vector_norm(y, ord, how)))
end

-- ---- matrices ----

local orders = { [1] = true, [-1] = true, [2] = true, [-2] = true, [math.huge] = true, [-math.huge] = true, fro = true,
  nuc = true }

function base.check_matrix_order(op, what, ord)
  if not orders[ord] then
    core.fail("ARG", op, ('%s is "fro", "nuc", 1, -1, 2, -2, math.huge or -math.huge, not %s'):format(what,
      core.shown(ord)))
  end
end

-- Of the last two axes.
function base.matrix_norm(op, x, ord, checked, shown)
  if ord == "fro" then
    return (x:norm { -1, -2 })
  elseif ord == "nuc" then
    return (base.svdvals(op, x, checked, shown):sum(-1))
  elseif ord == 2 or ord == -2 then
    local s = base.svdvals(op, x, checked, shown)
    return (ord == 2 and s:max(-1) or s:min(-1))
  end
  local columns = ord == 1 or ord == -1
  local sums = x:abs():sum(columns and -2 or -1)
  return (ord > 0 and sums:max(-1) or sums:min(-1))
end

-- Two axes as numbers from 1.
local function two_axes(op, x, axes)
  if type(axes) ~= "table" or #axes ~= 2 then
    core.fail("ARG", op, ("axis is a list of two axes, not %s"):format(core.describe(axes)))
  end
  local a, b = core.control_axis(x, axes[1], op), core.control_axis(x, axes[2], op)
  if a == b then
    core.fail("ARG", op, ("axis %d stands there twice"):format(a))
  end
  return a, b
end

-- x with these axes behind the others.
local function to_end(x, a, b)
  local order, rank = {}, #x.shape
  if a == rank - 1 and b == rank then
    return x
  end
  for i = 1, rank do
    if i ~= a and i ~= b then
      order[#order + 1] = i
    end
  end
  order[#order + 1], order[#order + 2] = a, b
  return x:permute(order)
end

local function norm_of_axes(op, x, ord, a, b, keep, checked)
  local back, wide = core.in_f32(x)
  local moved = to_end(wide, a, b)
  if ord ~= "fro" then
    base.check_matrix(op, moved, "x")
  end
  local y = base.matrix_norm(op, moved, ord, checked, x)
  if keep then
    local sizes = x.shape
    sizes[a], sizes[b] = 1, 1
    y = y:reshape(sizes)
  end
  return (back(y))
end

---The norm of matrices (torch.linalg.matrix_norm, np.linalg.matrix_norm): "fro", the root of the sum of squares,
---unless given; "nuc" the sum of the singular values, 2 and -2 the largest and smallest of them; 1 and -1 the largest
---and smallest sum of absolute values of a column, math.huge and -math.huge of a row. Of the last two axes, or those
---given.
---
---    linalg.matrix_norm(dc.tensor { { 3, 0 }, { 0, 4 } }, "nuc")
---
---Errors: DC0202 for integers, DC0103 for axes, DC0101 for another order, DC0703 for infinity and NaN where singular
---values are needed.
---@param x deepc.Tensor floats [..., m, n]
---@param ord? number|"fro"|"nuc" "fro"
---@param options? { axis?: deepc.Axis[], keep?: boolean, check?: boolean }
---@return deepc.Tensor [...]
function linalg.matrix_norm(x, ord, options)
  local op = "matrix_norm"
  core.options(op, options, "axis", "keep", "check")
  core.check_floats(op, x, "x")
  ord = ord == nil and "fro" or ord
  base.check_matrix_order(op, "ord", ord)
  if #x.shape < 2 then
    base.check_matrix(op, x, "x")
  end
  local a, b = two_axes(op, x, options and options.axis or { -2, -1 })
  return (norm_of_axes(op, x, ord, a, b, base.flag(op, options, "keep"), core.unless_false(op, options, "check")))
end

---The norm of vectors or of matrices, as np.linalg.norm and torch.linalg.norm have it: without an order the root of the
---sum of squares over all axes, or those given; with one of vectors where there is one axis, or one is given, and
---of matrices where there are two. Orders as in linalg.vector_norm and linalg.matrix_norm.
---
---    linalg.norm(dc.tensor { 3, 4 }, 1)     linalg.norm(dc.ones "f32[2, 2]", 2)
---
---Errors: as linalg.vector_norm and linalg.matrix_norm; DC0101 for an order of three axes or more.
---@param x deepc.Tensor floats
---@param ord? number|"fro"|"nuc"
---@param options? { axis?: deepc.Axes, keep?: boolean, check?: boolean }
---@return deepc.Tensor
function linalg.norm(x, ord, options)
  local op = "norm"
  core.options(op, options, "axis", "keep", "check")
  core.check_floats(op, x, "x")
  local axis, keep = options and options.axis, base.flag(op, options, "keep")
  local count = type(axis) == "table" and #axis or axis == nil and #x.shape or 1
  if ord ~= nil and (count == 2 and true or count ~= 1) then
    if count ~= 2 then
      core.fail("ARG", op, ("an order is for one axis or two, here are %d"):format(count),
        "{ axis = ... } says which; linalg.vector_norm goes over all", "x", x)
    end
    base.check_matrix_order(op, "ord", ord)
    local a, b = two_axes(op, x, axis or { 1, 2 })
    return (norm_of_axes(op, x, ord, a, b, keep, core.unless_false(op, options, "check")))
  end
  ord = ord == nil and 2 or ord
  check_order(op, ord)
  local back, y = core.in_f32(x)
  return (back(vector_norm(y, ord, reduction(op, { axis = axis, keep = keep }))))
end

return linalg
