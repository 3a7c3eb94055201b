-- Matrices of floats of 8 bits (OCP 8-bit floating point specification): e4m3, finite, up to 448, e5m2 up to 57344.
-- How they are multiplied, and the scales that files have beside them. The table of internals gets it as `float8`.
--
-- A matrix is codes, u8[rows, columns], and a scale that they are multiplied by: of all of them, [], [1] or [1, 1];
-- of each row, [rows] or [rows, 1]; or of blocks of 128 x 128, [rows / 128, columns / 128], rounded up.

local dc = require "deepc"
require "deepc.operands"
local _, core = ...

local float8 = {}

local BLOCK = 128

-- What a code is as a pattern of f16 - its sign, exponent and fraction in their places - is smaller by this: the
-- exponents of e4m3 count from 7, those of f16 and e5m2 from 15.
local SMALLER = { f8_e4m3 = 256, f8_e5m2 = 1 }

-- What safetensors call them; a cell of codes has its type in `of`.
float8.names = { f8_e4m3 = "F8_E4M3", f8_e5m2 = "F8_E5M2" }
float8.of = setmetatable({}, { __mode = "k" })
float8.largest = { f8_e4m3 = 448, f8_e5m2 = 57344 }

-- The numbers of codes, smaller by that; the NaN of e4m3 becomes 480.
local function halves(type, codes)
  if type == "f8_e5m2" then
    return (codes:cast "u16" << 8):half_float()
  end
  return ((codes:cast "i8":cast "i16" << 7) & -16512):cast "u16":half_float()
end

-- The numbers of codes of any sizes, f32.
function float8.values(type, codes)
  local numbers = halves(type, codes)
  if type == "f8_e5m2" then
    return numbers
  end
  return dc.where((codes & 127):eq(127), 0 / 0, numbers * SMALLER[type])
end

-- ---- scales ----

-- How many rows and columns share an element of a scale of these sizes; nil: it is none of such a matrix.
function float8.shares(rows, columns, shape)
  local n = 1
  for _, size in ipairs(shape) do
    n = n * size
  end
  if n == 1 then
    return rows, columns
  elseif shape[1] == rows and (#shape == 1 or #shape == 2 and shape[2] == 1) then
    return 1, columns
  elseif #shape == 2 and shape[1] == (rows + BLOCK - 1) // BLOCK and shape[2] == (columns + BLOCK - 1) // BLOCK then
    return BLOCK, BLOCK
  end
end

-- Each element of an axis so many times side by side, `size` of them.
local function spread(x, axis, times, size)
  local shape = x.shape
  if times == 1 or shape[axis] == 1 then
    return x
  end
  local inside = table.move(shape, 1, axis, 1, {})
  inside[axis + 1] = 1
  table.move(shape, axis + 1, #shape, axis + 2, inside)
  local outside = table.move(inside, 1, #inside, 1, {})
  outside[axis + 1], shape[axis] = times, shape[axis] * times
  local y = x:reshape(inside):expand(outside):reshape(shape)
  return shape[axis] == size and y or y:slice { [axis] = { 1, size } }
end

-- A scale as f32[a, b], an element for each block of high x wide.
local function as_matrix(scale, rows, columns)
  local high, wide = float8.shares(rows, columns, scale.shape)
  return scale:cast "f32":reshape((rows + high - 1) // high, (columns + wide - 1) // wide), high, wide
end

-- A scale as what [rows, columns] are multiplied by: f32[rows or 1, columns or 1].
function float8.spread(scale, rows, columns)
  local s, high, wide = as_matrix(scale, rows, columns)
  return spread(spread(s, 1, high, rows), 2, wide, columns)
end

-- ---- matrices ----

-- A matrix { type, codes, scale, rows, columns } as f32[rows, columns].
function float8.matrix(m)
  return float8.values(m.type, m.codes) * float8.spread(m.scale, m.rows, m.columns)
end

-- Rows of a matrix by number, integers[n]: f32[n, columns].
function float8.rows(m, positions)
  local s, high, wide = as_matrix(m.scale, m.rows, m.columns)
  s = s.shape[1] == 1 and s or s:take(high == 1 and positions or positions // high, 1)
  return float8.values(m.type, m.codes:take(positions, 1)) * spread(s, 2, wide, m.columns)
end

-- x f32[n, columns] times the matrix turned. Sums are of what kernels decode where they multiply: nothing has the
-- numbers of the matrix. Scales of rows come behind the sum, those of blocks behind the sums of their columns.
function float8.product(m, x)
  local rows, columns = m.rows, m.columns
  local s, high, wide = as_matrix(m.scale, rows, columns)
  local numbers, parts = halves(m.type, m.codes), s.shape[2]
  local y
  if parts == 1 then
    y = (x:reshape(-1, 1, columns) * numbers):sum(3) * SMALLER[m.type]
    return y * spread(s, 1, high, rows):reshape(-1)
  elseif columns % wide ~= 0 then
    y = (x:reshape(-1, 1, columns) * (numbers * float8.spread(m.scale, rows, columns))):sum(3)
    return y * SMALLER[m.type]
  end
  y = (x:reshape(-1, 1, parts, wide) * numbers:reshape(rows, parts, wide)):sum(4) * spread(s, 1, high, rows)
  return y:sum(3) * SMALLER[m.type]
end

-- ---- files ----

-- What files have beside weights of 8 bits: "weight_scale_inv" is what DeepSeek calls the scale of blocks, by which
-- elements are multiplied, too.
local SUFFIXES = { "_scale", "_scale_inv" }

local function is_float8(file, name)
  return SMALLER[select(5, core.file_about(file, name))] ~= nil
end

-- By name: of floats of 8 bits the scale that stands beside them. `has` are the names of the file, each true.
function float8.scales(file, has)
  local scales = {}
  for name in pairs(has) do
    for _, suffix in ipairs(SUFFIXES) do
      local base = name:sub(1, -#suffix - 1)
      if name:sub(-#suffix) == suffix and has[base] and is_float8(file, base) then
        scales[base] = name
      end
    end
  end
  return scales
end

-- The names of what belongs to weights of 8 bits, and whose: scales, and those of what goes into a layer, which is
-- multiplied as it is here.
function float8.beside(file, has, scales)
  local beside = {}
  for base, name in pairs(scales) do
    beside[name] = base
  end
  for name in pairs(has) do
    local base = name:match "input_scale$" and name:gsub("input_scale$", "weight")
    if base and has[base] and is_float8(file, base) then
      beside[name] = base
    end
  end
  return beside
end

-- Sizes of a tensor as a matrix: its first axis, and all others.
local function as_sizes(shape)
  local columns = 1
  for i = 2, #shape do
    columns = columns * shape[i]
  end
  return shape[1] or 1, columns
end

-- Fails where a scale is none of the weights that it stands beside.
function float8.check_scale(op, path, file, name, scale)
  local kind, shape, _, dtype = core.file_about(file, scale)
  local rows, columns = as_sizes(core.file_shape(file, name))
  if not core.is_float(dtype) or not float8.shares(rows, columns, shape) then
    core.fail("MISFIT", op, ("%s: '%s' is %s[%s], no scale of '%s', %d x %d"):format(path, scale, dtype or kind,
      table.concat(shape, ", "), name, rows, columns), "one, one for each row, or one for each block of 128 x 128")
  end
end

-- x, elements of the tensor as the file has them, times its scale, which file_take has read; f32.
function float8.scaled(x, scale)
  local shape = x.shape
  local rows, columns = as_sizes(shape)
  return (x:cast "f32":reshape(rows, columns) * float8.spread(scale, rows, columns)):reshape(shape)
end

-- A cell that has been read, and the other way round if turned, times the scale.
function float8.scale_cell(cell, turned, scale)
  local x = turned and cell:transpose() or cell
  local y = float8.scaled(x, scale)
  y = turned and y:transpose() or y
  cell:set(cell.dtype == "f32" and y or y:cast(cell.dtype))
end

core.float8 = float8

return float8
