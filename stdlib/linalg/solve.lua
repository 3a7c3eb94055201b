-- Systems of equations: square, triangular, by factors, least squares; inverses.

local linalg = require "deepc.linalg.base"
local _, core = ...
local base = core.linalg

-- ---- right-hand sides ----

-- Is b one vector for each matrix of a? As in PyTorch: of one axis, or of all sizes of a but the last.
local function is_vector(a, b)
  local x, y = a.shape, b.shape
  if #y ~= #x - 1 or #y < 2 then
    return #y == 1
  end
  for i = 1, #y do
    if x[i] ~= y[i] then
      return false
    end
  end
  return true
end

local function column(b)
  local shape = b.shape
  shape[#shape + 1] = 1
  return b:reshape(shape)
end

-- Operands of a x = b: b as matrices, whether it was vectors, and what brings results back. `axis` of a is that of b's
-- rows, from the end.
local function read_sides(op, a, b, axis, vectors)
  core.check_floats(op, b, "b")
  base.check_alike(op, a, b, "a", "b")
  if vectors and is_vector(a, b) then
    local x, y = a.shape[#a.shape + 1 - axis], b.shape[#b.shape]
    if x ~= y then
      core.fail("DIMS", op, ("axis %d of a = %s against axis %d of b = %s"):format(#a.shape + 1 - axis, tostring(x),
        #b.shape, tostring(y)), nil, "a", a, "b", b)
    end
    return column(b), true
  end
  base.check_matrix(op, b, "b")
  local x, y = a.shape[#a.shape + 1 - axis], b.shape[#b.shape - 1]
  if x ~= y then
    local hint = b.shape[#b.shape] == x and "rows of b go with those of a: b:transpose()" or nil
    core.fail("DIMS", op, ("axis %d of a = %s against axis %d of b = %s"):format(#a.shape + 1 - axis, tostring(x),
      #b.shape - 1, tostring(y)), hint, "a", a, "b", b)
  end
  return b, false
end

-- f(a, b) with one batch: where a alone has none, all columns of b go beside each other.
local function with_batches(op, a, b, f)
  local x, y = a.shape, b.shape
  local columns = #x == 2 and #y > 2
  for i = 1, #y do
    columns = columns and not core.is_size(y[i])
  end
  if not columns then
    local wide_a, wide_b = base.stretch_batches(op, a, b, "a", "b")
    return f(wide_a, wide_b)
  end
  local there, back = { #y - 1 }, {}
  for i = 1, #y do
    if i ~= #y - 1 then
      there[#there + 1] = i
    end
  end
  for i, axis in ipairs(there) do
    back[axis] = i
  end
  local moved = b:permute(there)
  local sizes = moved.shape
  local solved = f(a, moved:reshape(sizes[1], -1))
  sizes[1] = solved.shape[1]
  return solved:reshape(sizes):permute(back)
end

-- x as b was, with its names for columns and the name of the axis of a that rows of x go with.
local function finish(x, a, b, vector, row_axis)
  local of_a, of_b = base.names(a), base.names(b)
  local row = of_a and of_a[#of_a + 1 - row_axis]
  if vector then
    x = base.pick(x, 1)
    return row and base.named(x, row) or x
  end
  if row or of_b then
    x = base.named(x, row, of_b and of_b[#of_b])
  end
  return x
end

-- ---- square systems ----

---The x with a x = b, by LU with rows exchanged (torch.linalg.solve, np.linalg.solve, jnp.linalg.solve). b is a
---matrix, or a vector for each matrix: where it has one axis, or the sizes of a without the last, as in PyTorch.
---Batches stretch.
---
---    linalg.solve(dc.tensor { { 2, 1 }, { 1, 3 } }, dc.tensor { 1, 2 })
---
---Of the gradient, that of b is one more solution with the same factors, that of a an outer product of both.
---
---Errors: DC0202 for integers, DC0201 for two dtypes, DC0301 for sizes that do not fit, DC0703 for a singular matrix.
---@param a deepc.Tensor floats [..., n, n]
---@param b deepc.Tensor [..., n, k], or [..., n]
---@param options? deepc.linalg.Check
---@return deepc.Tensor of the shape of b
function linalg.solve(a, b, options)
  local op = "solve"
  core.options(op, options, "check")
  base.check_matrix(op, a, "a", true)
  local sides, vector = read_sides(op, a, b, 2, true)
  local checked = core.unless_false(op, options, "check")
  local back, x, y = core.in_f32(a, sides)
  local lu = base.lu(op, x, checked, a)
  local solved = with_batches(op, x, y, function(m, k)
    local factors = lu
    if not rawequal(m, x) then
      factors = base.stretch(lu, base.batch_of(m, 2), 2)
    end
    return core.host_operation("lu_solve", op, m, factors, k, false, true)
  end)
  return (back(finish(solved, a, b, vector, 1)))
end

---The inverses of square matrices (torch.linalg.inv, np.linalg.inv). linalg.solve(a, b) is less work than the inverse
---times b, and more exact.
---
---    linalg.inv(dc.tensor { { 2, 1 }, { 1, 3 } })
---
---Errors: DC0202 for integers, DC0301 for what is no square, DC0703 for a singular matrix.
---@param a deepc.Tensor floats [..., n, n]
---@param options? deepc.linalg.Check
---@return deepc.Tensor [..., n, n]
function linalg.inv(a, options)
  local op = "inv"
  core.options(op, options, "check")
  base.check_matrix(op, a, "a", true)
  local checked, names = core.unless_false(op, options, "check"), base.names(a)
  local back, x = core.in_f32(a)
  local y = back(base.inv(op, x, checked, a))
  return names and base.named(y, names[#names], names[#names - 1]) or y
end

---The same as linalg.inv.
---
---    linalg.inverse(dc.tensor { { 2, 1 }, { 1, 3 } })
---
---Errors: as linalg.inv.
---@param a deepc.Tensor floats [..., n, n]
---@param options? deepc.linalg.Check
---@return deepc.Tensor [..., n, n]
function linalg.inverse(a, options)
  local y = linalg.inv(a, options)
  return y
end

-- Of floats that the host takes.
function base.inv(op, x, checked, shown)
  local lu = base.lu(op, x, checked, shown)
  return core.host_operation("lu_solve", op, x, lu, base.identities(x), false, true)
end

-- ---- triangular systems ----

-- Is there a 0 on the diagonal, or what is as good as one?
local function check_triangle(op, a, shown)
  if a.shape[#a.shape] > 0 then
    base.check(op, "singular", base.no_pivots(base.diagonal(a)), shown, a)
  end
end

-- op(a) x = b, x op(a) = b with left = false.
local function solve_triangle(op, a, b, upper, transposed, unit, left)
  if left then
    return (core.host_operation("triangular_solve", op, a, b, upper, transposed, unit))
  end
  return (core.host_operation("triangular_solve", op, a, b:transpose(), upper, not transposed, unit):transpose())
end

---The x with a x = b of a triangular matrix (torch.linalg.solve_triangular, scipy.linalg.solve_triangular). The lower
---triangle of a is read, with `upper` the upper one; `transposed`: a^T x = b; `unit`: the diagonal counts as ones;
---`left` = false: x a = b, of matrices b. b as in linalg.solve. SciPy and PyTorch have to be told `lower`, `upper`.
---
---    linalg.triangular_solve(dc.tensor { { 2, 0 }, { 1, 3 } }, dc.tensor { 4, 5 })
---
---Errors: as linalg.solve; with { check = false } a 0 on the diagonal gives infinity or NaN.
---@param a deepc.Tensor floats [..., n, n]
---@param b deepc.Tensor [..., n, k], or [..., n]; with left = false [..., k, n]
---@param options? { upper?: boolean, transposed?: boolean, unit?: boolean, left?: boolean, check?: boolean }
---@return deepc.Tensor of the shape of b
function linalg.triangular_solve(a, b, options)
  local op = "triangular_solve"
  core.options(op, options, "upper", "transposed", "unit", "left", "check")
  base.check_matrix(op, a, "a", true)
  local upper, transposed = base.flag(op, options, "upper"), base.flag(op, options, "transposed")
  local unit, left = base.flag(op, options, "unit"), core.unless_false(op, options, "left")
  local sides, vector = b, false
  if left then
    sides, vector = read_sides(op, a, b, 2, true)
  else
    core.check_tensor(op, b, "b")
    base.check_matrix(op, b, "b")
    base.check_alike(op, a, b, "a", "b")
    local x, y = a.shape[#a.shape - 1], b.shape[#b.shape]
    if x ~= y then
      core.fail("DIMS", op, ("axis %d of a = %s against axis %d of b = %s"):format(#a.shape - 1, tostring(x), #b.shape,
        tostring(y)), nil, "a", a, "b", b)
    end
  end
  local back, x, y = core.in_f32(a, sides)
  if core.unless_false(op, options, "check") and not unit then
    check_triangle(op, x, a)
  end
  if not left then
    local wide_a, wide_b = base.stretch_batches(op, x, y, "a", "b")
    return (back(solve_triangle(op, wide_a, wide_b, upper, transposed, unit, false)))
  end
  local solved = with_batches(op, x, y, function(m, k)
    return solve_triangle(op, m, k, upper, transposed, unit, true)
  end)
  return (back(finish(solved, a, b, vector, transposed and 2 or 1)))
end

---The x with a x = b from what linalg.lu_factor gave of a (torch.linalg.lu_solve, scipy.linalg.lu_solve); with
---`transposed` a^T x = b.
---
---    local lu, rows = linalg.lu_factor(dc.tensor { { 2, 1 }, { 1, 3 } })
---    linalg.lu_solve(lu, rows, dc.tensor { 1, 2 })
---
---A singular matrix gives infinity or NaN. Where a is needed for a gradient, linalg.solve(a, b) takes it with less
---work.
---
---Errors: DC0202, DC0201 for dtypes, DC0301 for sizes that do not fit.
---@param lu deepc.Tensor floats [..., n, n]
---@param rows deepc.Tensor i32 [..., n]
---@param b deepc.Tensor [..., n, k], or [..., n]
---@param options? { transposed?: boolean }
---@return deepc.Tensor of the shape of b
function linalg.lu_solve(lu, rows, b, options)
  local op = "lu_solve"
  core.options(op, options, "transposed")
  local transposed = base.flag(op, options, "transposed")
  base.check_matrix(op, lu, "lu", true)
  core.check_tensor(op, rows, "rows")
  local pivots = core.counts_of(rows)
  if not pivots or core.sizes(rows.shape) ~= core.sizes(lu.shape, #lu.shape - 1) then
    core.fail("DIMS", op, ("rows are %s; what linalg.lu_factor gave beside lu is needed, i32[%s]"):format(
      core.describe(rows), core.sizes(lu.shape, #lu.shape - 1)), nil, "lu", lu, "rows", rows)
  end
  rows = pivots
  local sides, vector = read_sides(op, lu, b, 2, true)
  local back, x, y = core.in_f32(lu, sides)
  x, y = base.stretch_batches(op, x, y, "lu", "b")
  local order = base.stretch(rows, base.batch_of(x, 2), 1)
  local nb, solved = #x.shape - 2, y
  if transposed then
    solved = solve_triangle(op, x, solved, true, true, false, true)
    solved = solve_triangle(op, x, solved, false, true, true, true)
    order = order:argsort()
  end
  solved = core.pick(op, solved, order, nb + 1, nb)
  if not transposed then
    solved = solve_triangle(op, x, solved, false, false, true, true)
    solved = solve_triangle(op, x, solved, true, false, false, true)
  end
  return (back(finish(solved, lu, b, vector, 1)))
end

---The x with a x = b from the Cholesky factor of a: linalg.cholesky_solve(linalg.cholesky(a), b)
---(torch.cholesky_solve(b, l), scipy.linalg.cho_solve). With `upper` l is the upper triangular factor.
---
---    local l = linalg.cholesky(dc.tensor { { 4, 2 }, { 2, 5 } })
---    linalg.cholesky_solve(l, dc.tensor { 1, 2 })
---
---Errors: DC0202, DC0201 for dtypes, DC0301 for sizes that do not fit.
---@param l deepc.Tensor floats [..., n, n]
---@param b deepc.Tensor [..., n, k], or [..., n]
---@param options? { upper?: boolean }
---@return deepc.Tensor of the shape of b
function linalg.cholesky_solve(l, b, options)
  local op = "cholesky_solve"
  core.options(op, options, "upper")
  local upper = base.flag(op, options, "upper")
  base.check_matrix(op, l, "l", true)
  local sides, vector = read_sides(op, l, b, 2, true)
  local back, x, y = core.in_f32(l, sides)
  local solved = with_batches(op, x, y, function(m, k)
    local half = solve_triangle(op, m, k, upper, upper, false, true)
    return solve_triangle(op, m, half, upper, not upper, false, true)
  end)
  return (back(finish(solved, l, b, vector, 1)))
end

---The inverses of matrices from their Cholesky factors (torch.cholesky_inverse).
---
---    linalg.cholesky_inverse(linalg.cholesky(dc.tensor { { 4, 2 }, { 2, 5 } }))
---
---Errors: DC0202 for integers, DC0301 for what is no square.
---@param l deepc.Tensor floats [..., n, n]
---@param options? { upper?: boolean }
---@return deepc.Tensor [..., n, n]
function linalg.cholesky_inverse(l, options)
  local op = "cholesky_inverse"
  core.options(op, options, "upper")
  local upper = base.flag(op, options, "upper")
  base.check_matrix(op, l, "l", true)
  local back, x = core.in_f32(l)
  local half = solve_triangle(op, x, base.identities(x), upper, upper, false, true)
  return (back(solve_triangle(op, x, half, upper, not upper, false, true)))
end

-- ---- least squares ----

---The x for which a x is nearest to b, in squares; of several the smallest (torch.linalg.lstsq with the driver "gelsy",
---np.linalg.lstsq, scipy.linalg.lstsq; their other results are `(b - a:matmul(x)):square():sum(-2)`,
---linalg.matrix_rank and linalg.svdvals). Any rank: by QR with columns exchanged, where what is below `rtol` times the
---largest counts as 0; eps times the larger size unless given. b as in linalg.solve.
---
---    linalg.lstsq(dc.tensor { { 1, 0 }, { 1, 1 }, { 1, 2 } }, dc.tensor { 1, 3, 4 })
---
---The gradient holds for changes that keep the rank (Golub and Pereyra, 1973).
---
---Errors: DC0202, DC0201 for dtypes, DC0301 for sizes that do not fit, DC0703 for infinity and NaN.
---@param a deepc.Tensor floats [..., m, n]
---@param b deepc.Tensor [..., m, k], or [..., m]
---@param options? { rtol?: number, check?: boolean }
---@return deepc.Tensor [..., n, k], or [..., n]
function linalg.lstsq(a, b, options)
  local op = "lstsq"
  core.options(op, options, "rtol", "check")
  base.check_matrix(op, a, "a")
  local sides, vector = read_sides(op, a, b, 2, true)
  local back, x, y = core.in_f32(a, sides)
  local rtol = base.tolerance(op, options, "rtol") or base.default_rtol(x)
  local checked = core.unless_false(op, options, "check")
  local solved = with_batches(op, x, y, function(m, k)
    local all = core.host_operation("lstsq", op, m, k, rtol + 0.0)
    local shape = all.shape
    if checked and shape[#shape] > 0 and shape[#shape - 1] > 0 then
      base.check(op, "no factors", base.pick(base.pick(all, 1), 1):isnan(), a, all)
    end
    return all
  end)
  return (back(finish(solved, a, b, vector, 1)))
end

---The Moore-Penrose inverses of matrices of any shape and rank, by singular values (torch.linalg.pinv, np.linalg.pinv).
---Those up to `rtol` times the largest count as 0; eps times the larger size unless given. `hermitian`: the matrix is
---symmetric, and its lower triangle is read.
---
---    linalg.pinv(dc.tensor { { 1, 2 }, { 2, 4 }, { 0, 0 } })
---
---The gradient holds for changes that keep the rank (Golub and Pereyra, 1973).
---
---Errors: DC0202 for integers, DC0703 for infinity and NaN.
---@param a deepc.Tensor floats [..., m, n]
---@param options? { rtol?: number, hermitian?: boolean, check?: boolean }
---@return deepc.Tensor [..., n, m]
function linalg.pinv(a, options)
  local op = "pinv"
  core.options(op, options, "rtol", "hermitian", "check")
  local hermitian = base.flag(op, options, "hermitian")
  base.check_matrix(op, a, "a", hermitian)
  local names = base.names(a)
  local back, x = core.in_f32(a)
  local rtol = base.tolerance(op, options, "rtol") or base.default_rtol(x)
  if hermitian then
    x = x:tril() + x:tril(-1):transpose()
  end
  local y = core.host_operation("pinv", op, x, rtol + 0.0)
  local m, n = a.shape[#a.shape - 1], a.shape[#a.shape]
  if core.unless_false(op, options, "check") and m > 0 and n > 0 then
    base.check(op, "no factors", base.pick(base.pick(y, 1), 1):isnan(), a, y)
  end
  y = back(y)
  return names and base.named(y, names[#names], names[#names - 1]) or y
end

return linalg
