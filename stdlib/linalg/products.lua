-- Powers, the exponential, products of several matrices.

local linalg = require "deepc.linalg.base"
local _, core = ...
local base = core.linalg

local function keep_names(y, names)
  return names and base.named(y, names[#names - 1], names[#names]) or y
end

---The exponentials of square matrices, 1 + a + a a / 2 + ... (torch.linalg.matrix_exp, scipy.linalg.expm): by
---scaling, Padé approximants and squaring (Higham, 2005), in f64 whatever the dtype.
---
---    linalg.matrix_exp(dc.tensor { { 0, 1 }, { -1, 0 } })
---
---Errors: DC0202 for integers, DC0301 for what is no square.
---@param a deepc.Tensor floats [..., n, n]
---@return deepc.Tensor [..., n, n]
function linalg.matrix_exp(a)
  local op = "matrix_exp"
  base.check_matrix(op, a, "a", true)
  local names = base.names(a)
  local back, x = core.in_f32(a)
  return (keep_names(back(core.host_operation("matrix_exp", op, x)), names))
end

---Square matrices to an integer power, by squaring; below 0 powers of the inverse (torch.linalg.matrix_power,
---np.linalg.matrix_power).
---
---    linalg.matrix_power(dc.tensor { { 1, 1 }, { 1, 0 } }, 10)
---
---Errors: DC0202 for integers, DC0301 for what is no square, DC0101 for a power that is no integer, DC0703 for a
---singular matrix and a power below 0.
---@param a deepc.Tensor floats [..., n, n]
---@param n integer
---@param options? deepc.linalg.Check
---@return deepc.Tensor [..., n, n]
function linalg.matrix_power(a, n, options)
  local op = "matrix_power"
  core.options(op, options, "check")
  base.check_matrix(op, a, "a", true)
  if math.type(n) ~= "integer" then
    core.fail("ARG", op, ("the power is an integer, not %s"):format(core.shown(n)))
  end
  local checked, names = core.unless_false(op, options, "check"), base.names(a)
  local back, x = core.in_f32(a)
  if n == 0 then
    return (keep_names(back(base.identities(x)), names))
  elseif n < 0 then
    x = base.inv(op, x, checked, a)
  end
  local left, y = math.abs(n), nil
  while left > 0 do
    if left % 2 == 1 then
      y = y and y:matmul(x) or x
    end
    left = left // 2
    x = left > 0 and x:matmul(x) or x
  end
  return (keep_names(back(n == 1 and y * 1 or y), names))
end

-- ---- products of several matrices ----

-- Sizes of a chain: of matrix i rows[i] x rows[i + 1].
local function chain(op, list)
  local rows, first = {}, list[1].shape
  for i, x in ipairs(list) do
    local shape = x.shape
    local inner, outer = shape[1], shape[2]
    if i > 1 and rows[i] ~= inner then
      local text = "inner dims differ: the last axis of matrix %d = %s against axis 1 of matrix %d = %s"
      core.fail("DIMS", op, text:format(i - 1, tostring(rows[i]), i, tostring(inner)), nil, "left", list[i - 1],
        "right", x)
    end
    rows[i], rows[i + 1] = rows[i] or first[1], outer
  end
  return rows
end

local function number_of(size)
  if core.is_size(size) then
    local _, most = core.size_range(size)
    return most
  end
  return size
end

-- Where to split matrices i to k, for the fewest multiplications (Godbole, 1973).
local function splits(rows, n)
  local cost, at = {}, {}
  for i = 1, n do
    cost[i], at[i] = { [i] = 0.0 }, {}
  end
  for length = 2, n do
    for i = 1, n - length + 1 do
      local k = i + length - 1
      for s = i, k - 1 do
        local c = cost[i][s] + cost[s + 1][k] + 1.0 * rows[i] * rows[s + 1] * rows[k + 1]
        if not cost[i][k] or c < cost[i][k] then
          cost[i][k], at[i][k] = c, s
        end
      end
    end
  end
  return at
end

local function multiply(list, at, i, k)
  if i == k then
    return list[i]
  end
  local s = at[i][k]
  return multiply(list, at, i, s):matmul(multiply(list, at, s + 1, k))
end

---The product of two matrices or more, in the order that needs the fewest multiplications (torch.linalg.multi_dot,
---np.linalg.multi_dot). The first and the last may be vectors.
---
---    linalg.multi_dot { dc.ones "f32[2, 30]", dc.ones "f32[30, 5]", dc.ones "f32[5]" }
---
---Errors: DC0101 for fewer than two, DC0201 for several dtypes, DC0301 for sizes that do not fit.
---@param list deepc.Tensor[] floats, each of two axes
---@return deepc.Tensor
function linalg.multi_dot(list)
  local op = "multi_dot"
  if type(list) ~= "table" or #list < 2 then
    core.fail("ARG", op, ("a list of two tensors or more is needed, not %s"):format(
      type(list) == "table" and ("one of %d"):format(#list) or core.describe(list)))
  end
  local all, n = {}, #list
  for i, x in ipairs(list) do
    core.check_floats(op, x, ("matrix %d"):format(i))
    base.check_alike(op, list[1], x, "matrix 1", ("matrix %d"):format(i))
    local rank = #x.shape
    if rank ~= 2 and not (rank == 1 and (i == 1 or i == n)) then
      core.fail("DIMS", op, ("matrix %d is %s; two axes are needed, the first and the last may have one"):format(i,
        core.describe(x)), nil, "of", x)
    end
    all[i] = x
  end
  local back
  back, all = (function(f, ...) return f, { ... } end)(core.in_f32(table.unpack(all)))
  local row, column = #list[1].shape == 1, #list[n].shape == 1
  all[1] = row and all[1]:reshape(1, -1) or all[1]
  all[n] = column and all[n]:reshape(-1, 1) or all[n]
  local rows = chain(op, all)
  for i = 1, n + 1 do
    rows[i] = number_of(rows[i])
  end
  local y = multiply(all, splits(rows, n), 1, n)
  if column then
    y = base.pick(y, 1)
  end
  if row then
    y = base.pick(y, 1, column and 1 or 2)
  end
  return (back(y))
end

return linalg
