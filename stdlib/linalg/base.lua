-- What the functions of linear algebra share: how matrices and options are read, batches that stretch, parts of packed
-- results, tests of what came out.
--
-- The host computes factors (core.host_operation; core/host/linalg.c) of the last two axes, those in front are a batch.

local dc = require "deepc"
require "deepc.operands"
local _, core = ...

---Linear algebra over the last two axes; those in front of them are a batch.
---
---    local linalg = require "deepc.linalg"
---    local x = linalg.solve(dc.tensor { { 2, 1 }, { 1, 3 } }, dc.tensor { 1, 2 })
---@class deepc.linalg
local linalg = {}

-- For the other files of this folder.
local base = {}
core.linalg = base

-- ---- operands ----

-- Refuses what is no matrix of floats, or no square one.
function base.check_matrix(op, x, what, square)
  if core.kind(x) and core.is_complex(x.dtype) then
    core.fail("DTYPE", op, ("%s is %s, floats are needed"):format(what, core.describe(x)),
      "linear algebra is not there for complex matrices", what, x)
  end
  core.check_floats(op, x, what)
  local shape = x.shape
  local rank = #shape
  if rank < 2 then
    core.fail("DIMS", op, ("%s is %s; a matrix has two axes, those in front are a batch"):format(what,
      core.describe(x)), nil, what, x)
  end
  for axis = rank - 1, rank do
    if core.is_size(shape[axis]) then
      core.fail("EXTENT", op, ("axis %d of %s has a size known at run time, and a fixed size is needed"):format(axis,
        core.describe(x)), "a batch, the axes in front of the last two, may have any size", what, x)
    end
  end
  if square and shape[rank] ~= shape[rank - 1] then
    core.fail("DIMS", op, ("%s is %s, which is no square: axis %d = %d, axis %d = %d"):format(what, core.describe(x),
      rank - 1, shape[rank - 1], rank, shape[rank]), nil, what, x)
  end
end

-- Refuses operands of several dtypes.
function base.check_alike(op, a, b, a_name, b_name)
  if a.dtype ~= b.dtype then
    core.fail("DTYPE", op, ("%s is %s, %s is %s"):format(a_name, core.describe(a), b_name, core.describe(b)),
      (':cast "%s"'):format(a.dtype), a_name, a, b_name, b)
  end
end

-- An option that is false unless it is given as true.
function base.flag(op, options, key)
  local v = options and options[key]
  if v ~= nil and type(v) ~= "boolean" then
    core.fail("ARG", op, ("%s is true or false, not %s"):format(key, core.shown(v)))
  end
  return v == true
end

-- A number from 0, or nil.
function base.tolerance(op, options, key)
  local v = options and options[key]
  if v ~= nil and (type(v) ~= "number" or not (v >= 0 and v < math.huge)) then
    core.fail("ARG", op, ("%s is a number from 0, not %s"):format(key, core.shown(v)))
  end
  return v
end

local epsilon = { f32 = 2.0 ^ -23, f64 = 2.0 ^ -52 }

-- What counts as 0 beside the largest singular value where nothing is said: rounding errors of the size of the matrix.
function base.default_rtol(x)
  local shape = x.shape
  return epsilon[x.dtype] * math.max(shape[#shape - 1], shape[#shape])
end

-- ---- names ----

-- The names of the axes of x, false where there is none; nil if no axis has a name.
function base.names(x)
  local list = core.describe(x):match "%[(.*)%]$"
  if not list or not list:find "%a" then
    return nil
  end
  local names = {}
  for dim in list:gmatch "[^,]+" do
    names[#names + 1] = dim:match "^%s*(%a[%w_]*)" or false
  end
  return names
end

-- x with these names for its last axes, "" or false where there is none; they keep those that they have otherwise.
function base.named(x, ...)
  local last, rank = table.pack(...), #x.shape
  for i = 1, last.n do
    if last[i] then
      x = x:rename({ [rank - last.n + i] = last[i] })
    end
  end
  return x
end

-- ---- batches ----

local function same_sizes(a, b, n)
  for i = 1, n do
    if a[i] ~= b[i] then
      return false
    end
  end
  return true
end

-- Axes in front of the last n as one shape; nil where they do not fit, and the axis from the right, with both sizes.
local function joint_batch(a, b, n)
  local na, nb = #a - n, #b - n
  local out = {}
  for i = 1, math.max(na, nb) do
    local x, y = rawget(a, na + 1 - i) or 1, rawget(b, nb + 1 - i) or 1 -- below 1 a shape raises
    if x ~= y and x ~= 1 and y ~= 1 then
      return nil, i, x, y
    end
    table.insert(out, 1, x == 1 and y or x)
  end
  return out
end

-- x with these axes in front of its last n.
local function stretch(x, batch, n)
  local shape, want, with = x.shape, { table.unpack(batch) }, {}
  for i = 1, #batch - (#shape - n) do
    with[i] = 1
  end
  table.move(shape, 1, #shape, #with + 1, with)
  table.move(shape, #shape - n + 1, #shape, #want + 1, want)
  if #with == #shape and same_sizes(shape, want, #want) then
    return x
  end
  return (#with == #shape and x or x:reshape(with)):expand(want)
end

base.stretch = stretch

-- Both with the same batch, as products have them; the last n axes of each stay.
function base.stretch_batches(op, a, b, a_name, b_name, n)
  n = n or 2
  local batch, axis, x, y = joint_batch(a.shape, b.shape, n)
  if not batch then
    core.fail("DIMS", op, ("batches differ: axis %d of %s = %s against axis %d of %s = %s"):format(
      #a.shape - n + 1 - axis, a_name, tostring(x), #b.shape - n + 1 - axis, b_name, tostring(y)), nil, a_name, a,
      b_name, b)
  end
  return stretch(a, batch, n), stretch(b, batch, n)
end

-- The sizes in front of the last n axes.
function base.batch_of(x, n)
  local shape = x.shape
  return { table.unpack(shape, 1, #shape - n) }
end

-- An identity for each matrix of x.
function base.identities(x)
  local n = x.shape[#x.shape]
  local one = dc.eye(("%s[%d, %d]"):format(x.dtype, n, n))
  return #x.shape > 2 and stretch(one, base.batch_of(x, 2), 2) or one
end

-- ---- parts of packed results ----

-- Element k of the last axis, which goes; along another one with `axis` from the end.
function base.pick(x, k, axis)
  local index, rank = {}, #x.shape
  for i = 1, rank do
    index[i] = {}
  end
  index[rank + 1 - (axis or 1)] = k
  return x[index]
end

-- Elements first to last of an axis, counted from the end.
function base.range(x, axis, first, last)
  return x:slice { [-axis] = { first, last } }
end

-- A matrix of m rows and n columns that begins at element `first` of the last axis.
function base.unpack(x, first, m, n)
  local shape = base.batch_of(x, 1)
  shape[#shape + 1], shape[#shape + 2] = m, n
  return base.range(x, 1, first, first + m * n - 1):reshape(shape)
end

function base.diagonal(x)
  return (dc.einsum("... i i -> ... i", x))
end

-- ---- tests ----

-- A pivot with no finite reciprocal: 0, and numbers up to 2^-128 of f32, 2^-1024 of f64. Some libraries multiply by
-- reciprocals, others divide; none makes a solution of it that is to be trusted.
function base.no_pivots(x)
  return x:abs():le(x.dtype == "f64" and 0x1p-1024 or 0x1p-128):any(-1)
end

-- Raises at run time where a matrix is flagged; `factors` are what the flags come of, `shown` is what messages tell of.
function base.check(op, kind, flags, shown, factors)
  for _, size in ipairs(flags.shape) do
    if size == 0 then
      return
    end
  end
  core.check_matrices(flags:cast "i32", op, kind, shown, factors)
end

return linalg
