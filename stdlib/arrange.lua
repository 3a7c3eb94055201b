-- Functions that arrange elements: diagonals, repetition, grids, windows, products of vectors. Their annotations are in
-- api/arrange.lua.
--
-- They are movements and products that there are already, so all dtypes, gradients and sizes known at run time come
-- with those. An axis whose size changes loses its name.

local dc = require "deepc"
local _, core = ...
require "deepc.operands"

local arrange = {}

local describe = core.describe

local function fail(row, op, hint, text, ...)
  core.fail(row, op, text:format(...), hint)
end

local function fail_about(row, op, x, hint, text, ...)
  core.fail(row, op, text:format(...), hint, "of", x)
end

local function integer(op, what, v, least)
  if math.type(v) ~= "integer" or v < (least or math.mininteger) then
    fail("ARG", op, nil, least and "%s is an integer from %d on, not %s" or "%s is an integer, not %s", what,
      least and least or core.shown(v), core.shown(v))
  end
  return v
end

local function sizes_of(x)
  return { table.unpack(x.shape) }
end

local function known(op, x, axis)
  if core.is_size(x.shape[axis]) then
    fail_about("EXTENT", op, x, nil, "the size of axis %d of %s is known when the function runs only", axis,
      describe(x))
  end
  return x.shape[axis]
end

-- Without names.
local function unnamed(x)
  local none = {}
  for k = 1, #x.shape do
    none[k] = false
  end
  return #none > 0 and x:rename(none) or x
end

-- The names of the axes, false for none.
local function names_of(x)
  local names = {}
  for k = 1, #x.shape do
    local _, name = core.control_axis(x, k, "size")
    names[k] = name or false
  end
  return names
end

-- x of this shape, with these names (false: none).
local function shaped(x, shape, names)
  local y = unnamed(x):reshape(shape)
  return next(names) and y:rename(names) or y
end

local function check_vector(op, what, x)
  core.check_tensor(op, x, what)
  if #x.shape ~= 1 then
    core.fail("DIMS", op, ("%s is %s; a vector is needed"):format(what, describe(x)),
      #x.shape > 1 and ":flatten() makes one axis of all" or nil, what, x)
  end
end

local function check_dtypes(op, a, b)
  if a.dtype ~= b.dtype then
    core.fail("DTYPE", op, ("dtypes differ: %s and %s"):format(describe(a), describe(b)), ":cast makes them equal",
      "left", a, "right", b)
  end
end

-- ---- diagonals ----

-- The two axes; the first two unless given.
local function two_axes(op, x, a, b)
  if #x.shape < 2 then
    fail_about("ARG", op, x, nil, "two axes are needed, %s has %d", describe(x), #x.shape)
  end
  a = core.control_axis(x, a == nil and 1 or a, op)
  b = core.control_axis(x, b == nil and 2 or b, op)
  if a == b then
    fail_about("ARG", op, x, nil, "axis %d is given twice", a)
  end
  return a, b
end

-- The two axes become one, and every (m + 1)-th element of that is on the diagonal.
local function diagonal_of(op, x, offset, a, b)
  a, b = two_axes(op, x, a, b)
  integer(op, "the offset", offset)
  local n, m = known(op, x, a), known(op, x, b)
  local count = math.max(0, offset >= 0 and math.min(n, m - offset) or math.min(n + offset, m))
  local order, shape = {}, {}
  for k = 1, #x.shape do
    if k ~= a and k ~= b then
      order[#order + 1] = k
      shape[#shape + 1] = x.shape[k]
    end
  end
  local rest = #shape
  order[rest + 1], order[rest + 2] = a, b
  local names = names_of(x:permute(order))
  local same = names[rest + 1] == names[rest + 2] and names[rest + 1] or false
  shape[rest + 1] = n * m
  names[rest + 1], names[rest + 2] = count == n and same, nil
  local flat = unnamed(x:permute(order)):reshape(shape)
  local first = offset >= 0 and offset + 1 or -offset * m + 1
  local range = count > 0 and { first, first + (count - 1) * (m + 1), m + 1 } or { 1, 0 }
  return flat:slice { [rest + 1] = range }:rename(names)
end

function arrange.diagonal(x, offset, axis1, axis2)
  core.check_tensor("diagonal", x)
  local y = diagonal_of("diagonal", x, offset or 0, axis1, axis2)
  return y
end

-- Of a path it is another function: stdlib/trace.lua.
function arrange.trace(x, offset, axis1, axis2)
  if type(x) == "string" then
    require "deepc.trace"
    if axis1 ~= nil or axis2 ~= nil then
      core.fail("SURPLUS", "trace", "a path and options are taken")
    end
    local recording = core.record_trace(x, offset)
    return recording
  end
  core.check_tensor("trace", x)
  local y = diagonal_of("trace", x, offset or 0, axis1, axis2):sum(-1)
  return y
end

-- Zeros with x on a diagonal: each element with n + |offset| zeros behind it, as rows of one element less.
local function matrix_of(x, offset)
  local op = "diag"
  local n, off = known(op, x, 1), math.abs(offset)
  local side = n + off
  local before = offset >= 0 and offset or off * side
  local behind = math.max(0, side * side - before - n * (side + 1))
  local y = unnamed(x):reshape(n, 1):pad { [2] = { 0, side } }:flatten():pad { { before, behind } }
  return y:slice { { 1, side * side } }:reshape(side, side)
end

function arrange.diag(x, offset)
  core.check_tensor("diag", x)
  offset = integer("diag", "the offset", offset or 0)
  local rank = #x.shape
  if rank ~= 1 and rank ~= 2 then
    fail_about("DIMS", "diag", x, rank > 2 and "x:diagonal(offset, axis1, axis2) is for more axes" or nil,
      "a vector or a matrix is needed, not %s", describe(x))
  end
  local y = rank == 1 and matrix_of(x, offset) or rank == 2 and diagonal_of("diag", x, offset)
  return y
end

-- ---- products ----

function arrange.outer(a, b)
  check_vector("outer", "left", a)
  check_vector("outer", "right", b)
  local y = a:reshape(#a, 1) * b
  return y
end

function arrange.kron(a, b)
  local op = "kron"
  core.check_tensor(op, a, "left")
  core.check_tensor(op, b, "right")
  check_dtypes(op, a, b)
  local rank = math.max(#a.shape, #b.shape)
  if rank == 0 then
    local y = a * b
    return y
  elseif 2 * rank > 8 then
    core.fail("ARG", op, ("at most 4 axes are possible, there are %d"):format(rank), nil, "left", a, "right", b)
  end
  local left, right, out = {}, {}, {}
  for k = 1, rank do
    local n, m = rawget(a.shape, k - rank + #a.shape) or 1, rawget(b.shape, k - rank + #b.shape) or 1
    left[2 * k - 1], left[2 * k], right[2 * k - 1], right[2 * k] = n, 1, 1, m
    out[k] = n * m
  end
  local y = (unnamed(a):reshape(left) * unnamed(b):reshape(right)):reshape(out)
  return y
end

-- Vectors alone: of matrices, PyTorch refuses it and NumPy multiplies them.
local function dot(op, a, b)
  for what, x in pairs { left = a, right = b } do
    core.check_tensor(op, x, what)
  end
  if #a.shape ~= 1 or #b.shape ~= 1 then
    core.fail("DIMS", op, ("vectors are needed, not %s and %s"):format(describe(a), describe(b)),
      "a:matmul(b) multiplies matrices, a:inner(b) sums over the last axes", "left", a, "right", b)
  end
  check_dtypes(op, a, b)
  if #a ~= #b then
    core.fail("DIMS", op, ("sizes differ: %s and %s"):format(describe(a), describe(b)), nil, "left", a, "right", b)
  end
  return dc.einsum("i, i ->", a, b)
end

function arrange.dot(a, b)
  local y = dot("dot", a, b)
  return y
end

function arrange.vdot(a, b)
  local y = dot("vdot", core.kind(a) and core.is_complex(a.dtype) and a:conj() or a, b)
  return y
end

function arrange.inner(a, b)
  local op = "inner"
  core.check_tensor(op, a, "left")
  core.check_tensor(op, b, "right")
  check_dtypes(op, a, b)
  local n, m = #a.shape, #b.shape
  if n == 0 or m == 0 then
    local y = a * b
    return y
  elseif a.shape[n] ~= b.shape[m] then
    core.fail("DIMS", op, ("the last axes differ: %s and %s"):format(describe(a), describe(b)), nil, "left", a, "right",
      b)
  end
  local left, right, out = {}, {}, {}
  for k = 1, n - 1 do
    left[k], out[#out + 1] = "a" .. k, "a" .. k
  end
  for k = 1, m - 1 do
    right[k], out[#out + 1] = "b" .. k, "b" .. k
  end
  local function word(list) return table.concat(list, " ") end
  local y = dc.einsum(("%s k, %s k -> %s"):format(word(left), word(right), word(out)), a, b)
  return y
end

-- By axis the elements that follow and those that come before: a[k + 1] b[k + 2] - a[k + 2] b[k + 1].
function arrange.cross(a, b, axis)
  local op = "cross"
  core.check_tensor(op, a, "left")
  core.check_tensor(op, b, "right")
  check_dtypes(op, a, b)
  for what, x in pairs { left = a, right = b } do
    local k = core.control_axis(x, axis == nil and -1 or axis, op)
    if x.shape[k] ~= 3 then
      core.fail("DIMS", op, ("axis %d of %s has %s elements, 3 are needed"):format(k, describe(x),
        tostring(x.shape[k])), nil, what, x)
    end
  end
  local function turned(x, by)
    return x:roll(by, core.control_axis(x, axis == nil and -1 or axis, op))
  end
  local narrow, l, r = core.in_f32(a, b)
  local y = narrow(turned(l, -1) * turned(r, -2) - turned(l, -2) * turned(r, -1))
  return y
end

-- ---- grids ----

function arrange.meshgrid(list, options)
  local op = "meshgrid"
  core.options(op, options, "indexing")
  local indexing = options and options.indexing or "ij"
  if indexing ~= "ij" and indexing ~= "xy" then
    fail("ARG", op, nil, 'indexing is "ij" or "xy", not %s', core.shown(indexing))
  elseif type(list) ~= "table" or #list == 0 then
    fail("ARG", op, nil, "a list of vectors is needed, as in dc.meshgrid { x, y }, not %s", describe(list))
  end
  local n, shape, out = #list, {}, {}
  local function place(i) -- the axis along which vector i goes
    return indexing == "xy" and i < 3 and n > 1 and 3 - i or i
  end
  for i = 1, n do
    check_vector(op, "vector " .. i, list[i])
    shape[place(i)] = list[i].shape[1]
  end
  for i = 1, n do
    local own = {}
    for k = 1, n do
      own[k] = k == place(i) and shape[k] or 1
    end
    out[i] = unnamed(list[i]):reshape(own):expand(shape)
  end
  return table.unpack(out)
end

-- ---- repetition ----

-- x as often as that along the axis: a new axis in front of it is stretched, and both become one.
local function repeated(x, axis, times, inside)
  local shape, names = sizes_of(x), names_of(x)
  local apart, wide = sizes_of(x), sizes_of(x)
  local at = inside and axis + 1 or axis
  table.insert(apart, at, 1)
  table.insert(wide, at, times)
  shape[axis] = x.shape[axis] * times
  names[axis] = times == 1 and names[axis] or false
  return shaped(unnamed(x):reshape(apart):expand(wide), shape, names)
end

function arrange.tile(x, ...)
  local op = "tile"
  core.check_tensor(op, x)
  local times = type((...)) == "table" and select("#", ...) == 1 and { table.unpack((...)) } or { ... }
  if #times == 0 then
    fail("ARG", op, nil, "how often along each axis is needed, as in x:tile(2, 3)")
  end
  for i, n in ipairs(times) do
    integer(op, "a number of times", n, 0)
    times[i] = n
  end
  local rank = math.max(#x.shape, #times)
  local shape = sizes_of(x)
  for _ = #shape + 1, rank do
    table.insert(shape, 1, 1)
  end
  if #x.shape < rank then
    x = x:reshape(shape)
  end
  for k = 1, rank do
    local n = times[k - rank + #times] or 1
    if n ~= 1 then
      x = repeated(x, k, n)
    end
  end
  local y = x:expand(x.shape)
  return y
end

-- Of a list of counts, one for each element, the positions that are taken.
local function positions(op, x, axis, counts)
  local n, at = known(op, x, axis), {}
  if #counts ~= n then
    fail_about("DIMS", op, x, nil, "%d counts for the %d elements of axis %d", #counts, n, axis)
  end
  for i, count in ipairs(counts) do
    for _ = 1, integer(op, "a count", count, 0) do
      at[#at + 1] = i - 1
    end
  end
  return at
end

function arrange.repeat_interleave(x, times, axis)
  local op = "repeat_interleave"
  core.check_tensor(op, x)
  if axis == nil then
    x, axis = x:flatten(), 1
  end
  axis = core.control_axis(x, axis, op)
  if core.kind(times) then
    fail_about("ARG", op, x, "the sizes of a result are known before any data: a list of counts, or one for all",
      "the counts are %s, numbers are needed", describe(times))
  elseif type(times) ~= "table" then
    local y = repeated(x, axis, integer(op, "the number of times", times, 0), true)
    return y
  end
  local at = positions(op, x, axis, times)
  local y = #at > 0 and core.pick(op, x, core.index(at, op), axis, 0) or repeated(x, axis, 0)
  return y
end

-- ---- order of axes ----

local function list_of(v)
  return type(v) == "table" and v or { v }
end

function arrange.movedim(x, from, to)
  local op = "movedim"
  core.check_tensor(op, x)
  local source, target, order, moved = list_of(from), list_of(to), {}, {}
  if #source ~= #target then
    fail("ARG", op, nil, "%d axes are to go to %d places", #source, #target)
  end
  for i = 1, #source do
    local a, b = core.control_axis(x, source[i], op), core.control_axis(x, target[i], op)
    if moved[a] or order[b] then
      fail_about("ARG", op, x, nil, "axis %d is given twice", moved[a] and a or b)
    end
    moved[a], order[b] = true, a
  end
  local k = 1
  for place = 1, #x.shape do
    while moved[k] do
      k = k + 1
    end
    if not order[place] then
      order[place] = k
      k = k + 1
    end
  end
  local y = x:permute(order)
  return y
end

function arrange.rot90(x, times, axes)
  local op = "rot90"
  core.check_tensor(op, x)
  times = integer(op, "the number of quarters", times or 1) % 4
  axes = axes or { 1, 2 }
  if type(axes) ~= "table" or #axes ~= 2 then
    fail("ARG", op, nil, "a list of two axes is needed, not %s", core.shown(axes))
  end
  local a, b = two_axes(op, x, axes[1], axes[2])
  local turned = {
    [0] = function() return x:expand(x.shape) end,
    function() return x:flip(b):transpose(a, b) end,
    function() return x:flip { a, b } end,
    function() return x:flip(a):transpose(a, b) end,
  }
  local y = turned[times]()
  return y
end

-- ---- windows ----

-- More elements of a window than this are gathered; fewer are slices, whose gradient is no scatter.
local SLICES = 32

-- Windows along an axis whose elements are `dilation` apart, as a new axis `at` of the result. Those that touch and do
-- not overlap are a reshape.
function core.windows(x, axis, size, step, dilation, at)
  local n = x.shape[axis]
  local count = (n - (size - 1) * dilation - 1) // step + 1
  if step == size and dilation == 1 then
    local shape = { table.unpack(x.shape) }
    shape[axis] = count
    table.insert(shape, axis + 1, size)
    local y = unnamed(x):slice({ [axis] = { 1, count * step } }):reshape(shape)
    local names = names_of(x)
    names[axis] = size == 1 and names[axis]
    table.insert(names, axis + 1, false)
    return y:rename(names):movedim(axis + 1, at)
  elseif size > SLICES then
    local places = dc.iota(("i32[%d, 1]"):format(count), 1) * step + dc.iota(size) * dilation
    return core.pick("unfold", x, places, axis, 0):movedim(axis + 1, at)
  end
  local pieces = {}
  for k = 1, size do
    local first = (k - 1) * dilation + 1
    pieces[k] = x:slice { [axis] = { first, first + (count - 1) * step, step } }
  end
  return dc.stack(pieces, at)
end

function arrange.unfold(x, axis, size, step)
  local op = "unfold"
  core.check_tensor(op, x)
  axis = core.control_axis(x, axis, op)
  integer(op, "the size of a window", size, 1)
  step = integer(op, "the step", step or 1, 1)
  local n = known(op, x, axis)
  if size > n then
    fail_about("DIMS", op, x, nil, "a window of %d is larger than axis %d of %s", size, axis, describe(x))
  elseif #x.shape == 8 then
    fail_about("ARG", op, x, nil, "%s has 8 axes, the windows would be one more", describe(x))
  end
  local y = core.windows(x, axis, size, step, 1, #x.shape + 1)
  return y
end

return core.entries(arrange)
