-- Tensors as pictures: which axis is which, what is black and what is white.
--
--   core.picture_of(op, x, options)   { h, w, c, n, sn, sh, sw, sc, low, high }: images, how far their elements are
--                                     apart, and the range of values
--   core.paint(op, x, picture, size)  pixels, width, height, and how many values are NaN, infinite, -infinite

require "deepc.operands"
local _, core = ...

local layouts = { HW = true, HWC = true, CHW = true, NHW = true, NHWC = true, NCHW = true }

local function channels(n)
  return n == 1 or n == 3 or n == 4
end

local function unclear(op, x, text, hint)
  core.fail("DIMS", op, text:format(core.describe(x)), hint, "image", x)
end

-- The layout of a shape, where it is not given: channels are an axis of 1, 3 or 4.
local function guess(op, x)
  local shape = x.shape
  local rank = #shape
  if rank == 2 then
    return "HW"
  elseif rank ~= 3 and rank ~= 4 then
    unclear(op, x, "an image is [h, w], with 1, 3 or 4 channels before or behind, or a batch of these, not %s")
  end
  local last, first = channels(shape[rank]), channels(shape[rank - 2])
  local prefix = rank == 4 and "N" or ""
  if last and first then
    unclear(op, x, "the channels of %s may be two axes", ('layout = "%sHWC" or "%sCHW"'):format(prefix, prefix))
  elseif not last and not first then
    unclear(op, x, "no axis of %s can be channels, of which an image has 1, 3 or 4",
      rank == 3 and 'layout = "NHW" for a batch of images' or nil)
  end
  return prefix .. (last and "HWC" or "CHW")
end

local function read_layout(op, x, layout)
  if layout == nil then
    return guess(op, x)
  elseif type(layout) ~= "string" or not layouts[layout] then
    core.fail("ARG", op, ('layout is "HW", "HWC", "CHW", "NHW", "NHWC" or "NCHW", not %s'):format(core.shown(layout)),
      type(layout) == "string" and layouts[layout:upper()] and ("\"%s\""):format(layout:upper()) or nil)
  elseif #layout ~= #x.shape then
    unclear(op, x, ('layout = "%s" is for %d axes, the image is %%s'):format(layout, #layout))
  end
  return layout
end

-- The range of values that is shown, from black to white: { low, high }, "auto" for the least and the largest.
local function read_range(op, x, range, otherwise)
  if range == nil then
    range = otherwise
  end
  if range == "auto" then
    local s = core.statistics(op, x, 0)
    return s.low, s.high
  elseif type(range) == "table" and type(range[1]) == "number" and type(range[2]) == "number" and range[1] < range[2]
    and range[2] - range[1] < math.huge then
    return range[1] + 0.0, range[2] + 0.0
  end
  core.fail("ARG", op, ('range is { low, high }, two numbers, or "auto", not %s'):format(type(range) == "table"
    and ("{ %s, %s }"):format(core.shown(range[1]), core.shown(range[2])) or core.shown(range)))
end

function core.picture_of(op, x, options, otherwise)
  if not core.kind(x) then
    core.fail("ARG", op, ("an image is needed, a tensor, not %s"):format(core.describe(x)))
  elseif core.is_complex(x.dtype) then
    core.fail("DTYPE", op, ("%s has no picture: real numbers are needed"):format(core.describe(x)), "x:abs()",
      "image", x)
  end
  local layout = read_layout(op, x, options and options.layout)
  local p, step = { n = 1, c = 1, sn = 0, sc = 0 }, 1
  for i = #layout, 1, -1 do
    local axis, size = layout:sub(i, i):lower(), x.shape[i]
    p[axis], p["s" .. axis] = size, step
    step = step * size
  end
  if step == 0 then
    unclear(op, x, "an image without pixels: %s")
  elseif not channels(p.c) then
    unclear(op, x, ("an image has 1, 3 or 4 channels, not %d: %%s"):format(p.c))
  end
  local byte = x.dtype == "u8" and { 0, 255 } or x.dtype == "bool" and { 0, 1 }
  p.low, p.high = read_range(op, x, options and options.range, byte or otherwise)
  return p
end

-- size: { height, width, columns, gap, channels }.
function core.paint(op, x, p, size)
  local geometry = {}
  for _, t in ipairs { p, size } do
    for key, value in pairs(t) do
      geometry[key] = value
    end
  end
  local low, high = p.low, p.high
  if low == high then -- one value everywhere: in the middle
    low, high = low - 0.5, high + 0.5
  end
  return core.picture(op, x, geometry, low, high)
end

-- Columns of a grid of n images, as near to a square as it gets.
function core.grid_columns(op, n, columns)
  if columns == nil then
    return math.ceil(n ^ 0.5)
  end
  core.check_size(op, "columns", columns)
  return columns
end

return core.picture_of
