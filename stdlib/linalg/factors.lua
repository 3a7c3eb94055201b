-- Factors of matrices: Cholesky, LU, QR, eigenvalues of symmetric matrices, singular values.

local dc = require "deepc"
local linalg = require "deepc.linalg.base"
local _, core = ...
local base = core.linalg

---Whether a matrix that has no such factors is an error, which is found out at run time; with false NaN comes out.
---@alias deepc.linalg.Check { check?: boolean }

-- ---- Cholesky ----

---The lower triangular matrix L with L L^T = a, of a symmetric positive definite matrix (torch.linalg.cholesky,
---np.linalg.cholesky, scipy.linalg.cholesky). The lower triangle of a is read; with `upper` the upper one, and the
---upper triangular U with U^T U = a comes out.
---
---    linalg.cholesky(dc.tensor { { 4, 2 }, { 2, 5 } })
---
---The gradient is symmetric.
---
---Errors: DC0202 for integers, DC0301 for what is no square, DC0703 for a matrix that is not positive definite.
---@param a deepc.Tensor floats [..., n, n]
---@param options? { upper?: boolean, check?: boolean }
---@return deepc.Tensor [..., n, n]
function linalg.cholesky(a, options)
  local op = "cholesky"
  core.options(op, options, "upper", "check")
  base.check_matrix(op, a, "a", true)
  local upper, checked = base.flag(op, options, "upper"), core.unless_false(op, options, "check")
  local names = base.names(a)
  local back, x = core.in_f32(a)
  local l = core.host_operation("cholesky", op, upper and x:transpose() or x)
  local n = a.shape[#a.shape]
  if checked and n > 0 then
    base.check(op, "not definite", base.pick(base.pick(l, 1), 1):isnan(), a, l)
  end
  l = back(upper and l:transpose() or l)
  return names and base.named(l, names[#names - 1], names[#names]) or l
end

-- ---- LU ----

-- The packed factors of the transposes of square matrices, transposed, as systems and determinants take them, and a
-- test of them. Row n + 1 has the numbers of rows. Nothing is turned for them: libraries have matrices by columns.
function base.lu(op, a, checked, shown)
  local lu = core.host_operation("lu", op, a, true)
  local n = a.shape[#a.shape]
  if checked and n > 0 then
    local none = base.no_pivots(base.diagonal(base.range(lu, 2, 1, n)))
    base.check(op, "singular", none, shown or a, lu)
  end
  return lu
end

-- The factors in one matrix, and the rows of a that theirs are.
local function lu_parts(op, a)
  base.check_matrix(op, a, "a", true)
  local back, x = core.in_f32(a)
  local n = a.shape[#a.shape]
  local lu = core.host_operation("lu", op, x, false)
  return back(base.range(lu, 2, 1, n)), base.pick(lu, n + 1, 2):cast "i32"
end

---The factors of square matrices with rows exchanged, both in one matrix: U, and below its diagonal L without its
---diagonal of ones (torch.linalg.lu_factor, scipy.linalg.lu_factor). Row i of L U is row `rows[i]` of a, counted
---from 0; those libraries give the exchanges one after the other instead. For linalg.lu_solve.
---
---    local lu, rows = linalg.lu_factor(dc.tensor { { 1, 2 }, { 3, 4 } })
---
---A singular matrix has a 0 on the diagonal of U.
---
---Errors: DC0202 for integers, DC0301 for what is no square.
---@param a deepc.Tensor floats [..., n, n]
---@return deepc.Tensor lu [..., n, n]
---@return deepc.Tensor rows i32 [..., n]
function linalg.lu_factor(a)
  local lu, rows = lu_parts("lu_factor", a)
  return lu, rows
end

---The factors of square matrices with a = P L U: a permutation, a lower triangular matrix with ones on its diagonal, an
---upper triangular one (torch.linalg.lu, scipy.linalg.lu). With `rows` the first result has the rows of a in the order
---that L U has them in, counted from 0.
---
---    local p, l, u = linalg.lu(dc.tensor { { 1, 2 }, { 3, 4 } })
---    local rows = linalg.lu(dc.tensor { { 1, 2 }, { 3, 4 } }, { rows = true })
---
---Errors: DC0202 for integers, DC0301 for what is no square.
---@param a deepc.Tensor floats [..., n, n]
---@param options? { rows?: boolean }
---@return deepc.Tensor p [..., n, n] of the dtype of a; with `rows` i32 [..., n]
---@return deepc.Tensor l [..., n, n]
---@return deepc.Tensor u [..., n, n]
function linalg.lu(a, options)
  local op = "lu"
  core.options(op, options, "rows")
  local as_rows = base.flag(op, options, "rows")
  local lu, p = lu_parts(op, a)
  local one = base.identities(lu)
  if not as_rows then -- row i of the product is row p[i] of a
    p = p:one_hot(a.shape[#a.shape], a.dtype):transpose()
  end
  return p, lu:tril(-1) + one, (lu:triu())
end

-- ---- QR ----

local modes = { reduced = true, complete = true, r = true }

---Q with orthonormal columns and R upper triangular with q:matmul(r) = a (torch.linalg.qr, np.linalg.qr,
---scipy.linalg.qr with mode="economic"). With mode "r" R alone; with "complete" Q is square, k = m, and R has zeros
---below its first n rows. Signs are those of LAPACK: the diagonal of R may be negative.
---
---    local q, r = linalg.qr(dc.tensor { { 1, 2 }, { 3, 4 }, { 5, 6 } })
---    local q, r = linalg.qr(dc.tensor { { 1, 2 }, { 3, 4 }, { 5, 6 } }, { mode = "complete" })
---
---The gradient needs full rank: columns that depend on others give infinity or NaN. With mode "complete" a matrix of
---more rows than columns has none, as in PyTorch: further columns of Q are any that complete it.
---
---Errors: DC0202 for integers; DC0101 for another mode, and for such a gradient.
---@param a deepc.Tensor floats [..., m, n]
---@param options? { mode?: "reduced"|"complete"|"r" }
---@return deepc.Tensor q [..., m, k] with k = min(m, n); with mode "r" R
---@return deepc.Tensor r [..., k, n]
function linalg.qr(a, options)
  local op = "qr"
  core.options(op, options, "mode")
  local mode = options and options.mode or "reduced"
  base.check_matrix(op, a, "a")
  if not modes[mode] then
    core.fail("ARG", op, ('mode is "reduced", "complete" or "r", not %s'):format(core.shown(mode)))
  end
  local names = base.names(a)
  local back, x = core.in_f32(a)
  local m, n = a.shape[#a.shape - 1], a.shape[#a.shape]
  local more = mode == "complete" and m > n
  local k = more and m or math.min(m, n)
  local packed = core.host_operation("qr", op, x, more)
  local q, r = back(base.unpack(packed, 1, m, k)), back(base.unpack(packed, m * k + 1, k, n))
  if names then
    q, r = base.named(q, names[#names - 1], false), base.named(r, names[#names])
  end
  if mode == "r" then
    return r
  end
  return q, r
end

-- ---- eigenvalues ----

-- Of a symmetric matrix the triangle that is read is the lower one.
local function read_symmetric(op, a, options)
  core.options(op, options, "upper", "check")
  base.check_matrix(op, a, "a", true)
  local back, x = core.in_f32(a)
  return back, base.flag(op, options, "upper") and x:transpose() or x, core.unless_false(op, options, "check")
end

-- Values without a NaN in front: what has no factors has NaN alone.
local function check_values(op, checked, values, shown, factors)
  if checked and values.shape[#values.shape] ~= 0 then
    base.check(op, "no factors", base.pick(values, 1):isnan(), shown, factors)
  end
end

---The eigenvalues of symmetric matrices in ascending order, and their eigenvectors as columns: a = v diag(w) v^T
---(torch.linalg.eigh, np.linalg.eigh, scipy.linalg.eigh). The lower triangle is read, with `upper` the upper one.
---
---    local w, v = linalg.eigh(dc.tensor { { 2, 1 }, { 1, 2 } })
---
---Signs of vectors, and vectors of equal eigenvalues, are arbitrary; a function of such vectors has an infinite
---gradient or NaN, unless it does not depend on the choice.
---
---Errors: DC0202 for integers, DC0301 for what is no square, DC0703 for infinity and NaN.
---@param a deepc.Tensor floats [..., n, n]
---@param options? { upper?: boolean, check?: boolean }
---@return deepc.Tensor w [..., n]
---@return deepc.Tensor v [..., n, n]
function linalg.eigh(a, options)
  local op = "eigh"
  local back, x, checked = read_symmetric(op, a, options)
  local packed = core.host_operation("eigh", op, x)
  local n = a.shape[#a.shape]
  local w = base.pick(packed, 1, 2)
  check_values(op, checked, w, a, packed)
  return back(w), back(base.range(packed, 2, 2, n + 1))
end

---The eigenvalues of symmetric matrices in ascending order (torch.linalg.eigvalsh, np.linalg.eigvalsh). The lower
---triangle is read, with `upper` the upper one. Less work than linalg.eigh; gradients of equal eigenvalues are finite.
---
---    linalg.eigvalsh(dc.tensor { { 2, 1 }, { 1, 2 } })
---
---Errors: as linalg.eigh.
---@param a deepc.Tensor floats [..., n, n]
---@param options? { upper?: boolean, check?: boolean }
---@return deepc.Tensor [..., n]
function linalg.eigvalsh(a, options)
  local op = "eigvalsh"
  local back, x, checked = read_symmetric(op, a, options)
  local w = core.host_operation("eigvalsh", op, x)
  check_values(op, checked, w, a, w)
  return (back(w))
end

---The eigenvalues of any square matrix, complex ones, and its eigenvectors of norm 1 as columns: a v = v diag(w)
---(torch.linalg.eig, np.linalg.eig, scipy.linalg.eig). They are in the order of LAPACK, conjugate ones side by side. Of
---symmetric matrices linalg.eigh has real ones in ascending order, with less work.
---
---    local w, v = linalg.eig(dc.tensor { { 0, -1 }, { 1, 0 } })
---    w:imag()
---
---Vectors have any phase: what a loss gains by another one does not count in its gradient, which PyTorch refuses. Equal
---eigenvalues give infinity or NaN (Boeddeker and others, 2017).
---
---Errors: DC0202 for integers, DC0301 for what is no square, DC0703 for infinity and NaN.
---@param a deepc.Tensor floats [..., n, n]
---@param options? deepc.linalg.Check
---@return deepc.Tensor w complex [..., n]
---@return deepc.Tensor v complex [..., n, n]
function linalg.eig(a, options)
  local op = "eig"
  core.options(op, options, "check")
  base.check_matrix(op, a, "a", true)
  local _, x = core.in_f32(a)
  local packed = core.host_operation("eig", op, x)
  local all, n = packed:view_as_complex(), a.shape[#a.shape]
  local w = base.pick(all, 1, 2)
  check_values(op, core.unless_false(op, options, "check"), w, a, packed)
  return w, base.range(all, 2, 2, n + 1)
end

---The eigenvalues of any square matrix, complex ones, in the order of LAPACK (torch.linalg.eigvals, np.linalg.eigvals,
---scipy.linalg.eigvals). Less work than linalg.eig.
---
---    linalg.eigvals(dc.tensor { { 0, -1 }, { 1, 0 } })
---
---Errors: as linalg.eig.
---@param a deepc.Tensor floats [..., n, n]
---@param options? deepc.linalg.Check
---@return deepc.Tensor complex [..., n]
function linalg.eigvals(a, options)
  local op = "eigvals"
  core.options(op, options, "check")
  base.check_matrix(op, a, "a", true)
  local _, x = core.in_f32(a)
  local packed = core.host_operation("eigvals", op, x)
  local w = packed:view_as_complex()
  check_values(op, core.unless_false(op, options, "check"), w, a, packed)
  return w
end

-- ---- singular values ----

-- x, whose columns are orthonormal, with further ones that make it square: those of its complete Q.
local function completed(op, x)
  local m, k = x.shape[#x.shape - 1], x.shape[#x.shape]
  if m == k then
    return x
  end
  local q = base.unpack(core.host_operation("qr", op, dc.stop_gradient(x), true), 1, m, m)
  return dc.concat({ x, base.range(q, 1, k + 1, m) }, #x.shape)
end

---The singular values in descending order between orthonormal vectors: u diag(s) vh = a, with k = min(m, n) columns
---of u and rows of vh (torch.linalg.svd, np.linalg.svd, scipy.linalg.svd, all with full_matrices=False). With `full` u
---and vh are square (full_matrices=True).
---
---    local u, s, vh = linalg.svd(dc.tensor { { 3, 0 }, { 4, 5 } })
---    local u, s, vh = linalg.svd(dc.tensor { { 3, 0 }, { 4, 5 }, { 1, 2 } }, { full = true })
---
---Signs of vectors, and vectors of equal singular values, are arbitrary, as in linalg.eigh; so are the further ones of
---`full`, whose gradient is 0 as in PyTorch.
---
---Errors: DC0202 for integers, DC0703 for infinity and NaN.
---@param a deepc.Tensor floats [..., m, n]
---@param options? { full?: boolean, check?: boolean }
---@return deepc.Tensor u [..., m, k]; with `full` [..., m, m]
---@return deepc.Tensor s [..., k]
---@return deepc.Tensor vh [..., k, n]; with `full` [..., n, n]
function linalg.svd(a, options)
  local op = "svd"
  core.options(op, options, "full", "check")
  base.check_matrix(op, a, "a")
  local full = base.flag(op, options, "full")
  local names = base.names(a)
  local back, x = core.in_f32(a)
  local m, n = a.shape[#a.shape - 1], a.shape[#a.shape]
  local k = math.min(m, n)
  local packed = core.host_operation("svd", op, x)
  local s = base.range(packed, 1, m * k + 1, m * k + k)
  check_values(op, core.unless_false(op, options, "check"), s, a, packed)
  local u, vh = base.unpack(packed, 1, m, k), base.unpack(packed, m * k + k + 1, k, n)
  if full then
    u, vh = completed(op, u), completed(op, vh:transpose()):transpose()
  end
  u, vh = back(u), back(vh)
  if names then
    u, vh = base.named(u, names[#names - 1], false), base.named(vh, names[#names])
  end
  return u, back(s), vh
end

-- Of floats that the host takes; without the test of options.
function base.svdvals(op, a, checked, shown)
  local s = core.host_operation("svdvals", op, a)
  check_values(op, checked, s, shown or a, s)
  return s
end

---The singular values in descending order (torch.linalg.svdvals, scipy.linalg.svdvals). Less work than linalg.svd;
---gradients of equal ones are finite.
---
---    linalg.svdvals(dc.tensor { { 3, 0 }, { 4, 5 } })
---
---Errors: DC0202 for integers, DC0703 for infinity and NaN.
---@param a deepc.Tensor floats [..., m, n]
---@param options? deepc.linalg.Check
---@return deepc.Tensor [..., min(m, n)]
function linalg.svdvals(a, options)
  local op = "svdvals"
  core.options(op, options, "check")
  base.check_matrix(op, a, "a")
  local back, x = core.in_f32(a)
  local s = base.svdvals(op, x, core.unless_false(op, options, "check"), a)
  return (back(s))
end

return linalg
