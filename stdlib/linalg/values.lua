-- Numbers that say something of a matrix: determinants, rank, condition.

local linalg = require "deepc.linalg.base"
local dc = require "deepc"
local _, core = ...
local base = core.linalg

-- ---- determinants ----

local function determinant(op, a, as_logarithm)
  base.check_matrix(op, a, "a", true)
  local back, x = core.in_f32(a)
  return back, core.host_operation("det", op, x, base.lu(op, x), as_logarithm, true)
end

---The determinants of square matrices, by LU (torch.linalg.det, np.linalg.det). Of a singular matrix 0; its gradient is
---right there, too, further gradients are NaN. linalg.slogdet does not overflow.
---
---    linalg.det(dc.tensor { { 2, 1 }, { 1, 3 } })
---
---Errors: DC0202 for integers, DC0301 for what is no square.
---@param a deepc.Tensor floats [..., n, n]
---@return deepc.Tensor [...]
function linalg.det(a)
  local back, y = determinant("det", a, false)
  return (back(y))
end

---The sign of the determinant of square matrices, 1, -1 or 0, and the logarithm of its absolute value
---(torch.linalg.slogdet, np.linalg.slogdet). Of a singular matrix 0 and -infinity, without a finite gradient. Of a
---positive definite one with a Cholesky factor l at hand it is 2 * dc.einsum("... i i -> ... i", l):log():sum(-1).
---
---    local sign, logabs = linalg.slogdet(dc.tensor { { 2, 1 }, { 1, 3 } })
---
---Errors: DC0202 for integers, DC0301 for what is no square.
---@param a deepc.Tensor floats [..., n, n]
---@return deepc.Tensor sign [...]
---@return deepc.Tensor logabs [...]
function linalg.slogdet(a)
  local back, y = determinant("slogdet", a, true)
  return back(base.pick(y, 1):stop_gradient()), back(base.pick(y, 2))
end

-- ---- rank, condition ----

---How many singular values there are above `atol` and above `rtol` times the largest (torch.linalg.matrix_rank,
---np.linalg.matrix_rank); eps times the larger size unless `rtol` or `atol` is given.
---
---    linalg.matrix_rank(dc.tensor { { 1, 2 }, { 2, 4 } })
---
---Errors: DC0202 for integers, DC0703 for infinity and NaN.
---@param a deepc.Tensor floats [..., m, n]
---@param options? { rtol?: number, atol?: number, check?: boolean }
---@return deepc.Tensor i32 [...]
function linalg.matrix_rank(a, options)
  local op = "matrix_rank"
  core.options(op, options, "rtol", "atol", "check")
  base.check_matrix(op, a, "a")
  local _, x = core.in_f32(a)
  local atol = base.tolerance(op, options, "atol")
  local rtol = base.tolerance(op, options, "rtol") or (atol and 0 or base.default_rtol(x))
  local s = base.svdvals(op, x, core.unless_false(op, options, "check"), a):stop_gradient()
  if s.shape[#s.shape] == 0 then
    return (s:gt(0):sum(-1))
  end
  local least = base.range(s, 1, 1, 1) * rtol
  return (s:gt(atol and least:maximum(atol) or least):sum(-1))
end

local by_values = { [2] = true, [-2] = true }

---How much a solution changes at most beside what it is of: the norm of a times that of its inverse
---(torch.linalg.cond, np.linalg.cond). `p` is 2 or -2 (of any shape: the largest singular value by the smallest, or
---the other way round), "fro", "nuc", 1, -1, math.huge, -math.huge. Infinity of a singular matrix.
---
---    linalg.cond(dc.tensor { { 1, 0 }, { 0, 1e-3 } })
---
---Errors: DC0202 for integers, DC0101 for another p, DC0301 for what is no square with a p but 2 and -2, DC0703 for
---infinity and NaN with p 2 and -2.
---@param a deepc.Tensor floats [..., n, n]
---@param p? number|"fro"|"nuc" 2
---@param options? deepc.linalg.Check
---@return deepc.Tensor [...]
function linalg.cond(a, p, options)
  local op = "cond"
  core.options(op, options, "check")
  p = p == nil and 2 or p
  base.check_matrix_order(op, "p", p)
  base.check_matrix(op, a, "a", not by_values[p])
  local checked = core.unless_false(op, options, "check")
  local back, x = core.in_f32(a)
  if by_values[p] then
    local s = base.svdvals(op, x, checked, a)
    local k = s.shape[#s.shape]
    if k == 0 then
      core.fail("DIMS", op, ("%s has no singular values"):format(core.describe(a)), nil, "a", a)
    end
    local large, small = base.pick(s, 1), base.pick(s, k)
    return (back(p == 2 and large / small or small / large))
  end
  local y = base.matrix_norm(op, x, p) * base.matrix_norm(op, base.inv(op, x, false), p)
  local finite = x:isfinite():all { -1, -2 }
  return (back(dc.where(finite & y:isnan(), math.huge, y)))
end

return linalg
