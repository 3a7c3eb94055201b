-- Patches of images as columns, and back: unfold and fold (im2col and col2im).

local nn = require "deepc.nn.class"
local _, core = ...
require "deepc.arrange"

local describe = core.describe

local function fail(row, op, x, text, ...)
  core.fail(row, op, text:format(...), nil, "x", x)
end

-- An integer from `least` on for each dim, out of one for all or a list.
local function each_dim(op, what, v, dims, least)
  local list = {}
  for k = 1, dims do
    list[k] = v
    if type(v) == "table" then
      list[k] = #v == dims and v[k] or nil
    end
    if math.type(list[k]) ~= "integer" or list[k] < least then
      core.fail("ARG", op, ("%s is an integer from %d on, or a list of %d, not %s"):format(what, least, dims,
        type(v) == "table" and #v ~= dims and "a list of " .. #v or core.shown(list[k])))
    end
  end
  return list
end

local function read_window(op, window, options, dims)
  core.options(op, options, "stride", "padding", "dilation")
  options = options or {}
  local function option(key, normal, least)
    local v = options[key]
    return each_dim(op, key, v == nil and normal or v, dims, least)
  end
  return {
    size = each_dim(op, "the window", window, dims, 1), stride = option("stride", 1, 1),
    padding = option("padding", 0, 0), dilation = option("dilation", 1, 1),
  }
end

-- By dim how many windows an axis of so many elements has.
local function count_windows(op, x, w, sizes)
  local counts = {}
  for k, n in ipairs(sizes) do
    local room = n + 2 * w.padding[k] - (w.size[k] - 1) * w.dilation[k] - 1
    counts[k] = room // w.stride[k] + 1
    if room < 0 then
      fail("DIMS", op, x, "a window of %d elements, %d apart, is larger than the %d of dim %d with its padding",
        w.size[k], w.dilation[k], n + 2 * w.padding[k], k)
    end
  end
  return counts
end

local function product(list, from, to)
  local n = 1
  for k = from or 1, to or #list do
    n = n * list[k]
  end
  return n
end

---The patches of images: x of [batch, channels, height, width] becomes [batch, channels * elements of a window, number
---of windows], one column for each place of the window (F.unfold of PyTorch, im2col). Any number of dims from 1 to 3.
---
---    nn.unfold(dc.ones "f32[1, 3, 8, 8]", 3, { padding = 1 })
---
---Options, a number or one for each dim: stride (1), padding (0), dilation (1). x:unfold(axis, size, step) has windows
---along one axis.
---
---Errors: DC0301 for other numbers of dims and for a window that is too large, DC0101 for options.
---@param x deepc.Tensor
---@param window integer|integer[]
---@param options? { stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[] }
---@return deepc.Tensor
function nn.unfold(x, window, options)
  local op = "unfold"
  local dims = core.spatial(op, x)
  local w = read_window(op, window, options, dims)
  local shape, sizes, margins = x.shape, {}, {}
  for k = 1, dims do
    sizes[k] = shape[k + 2]
    margins[k + 2] = { w.padding[k], w.padding[k] }
  end
  local counts = count_windows(op, x, w, sizes)
  local y = x:rename({ [1] = false, [2] = false }):pad(margins)
  for k = 1, dims do -- behind the channels the windows' elements, in front of the places
    y = core.windows(y, 2 * k + 1, w.size[k], w.stride[k], w.dilation[k], k + 2)
  end
  y = y:reshape(shape[1], shape[2] * product(w.size), product(counts))
  return y
end

-- Elements of the axis, `step` apart, from number `first` (from 0) of so many on; zeros elsewhere.
local function spread(x, axis, first, step, total)
  local n, shape = x.shape[axis], { table.unpack(x.shape) }
  table.insert(shape, axis + 1, 1)
  local long = { table.unpack(x.shape) }
  long[axis] = n * step
  local y = x:reshape(shape):pad({ [axis + 1] = { 0, step - 1 } }):reshape(long)
  local span = (n - 1) * step + 1
  return y:slice({ [axis] = { 1, span } }):pad { [axis] = { first, total - first - span } }
end

---The adjoint of nn.unfold: columns of [batch, channels * elements of a window, number of windows] are added up to
---images of [batch, channels, height, width] (F.fold of PyTorch, col2im). What several windows cover has the sum of
---theirs.
---
---    nn.fold(dc.ones "f32[1, 9, 36]", { 8, 8 }, 3)
---
---Options as those of nn.unfold.
---
---Errors: DC0301 where the numbers of columns or rows do not fit, DC0101 for options.
---@param x deepc.Tensor
---@param size integer[] of the images: { height, width }
---@param window integer|integer[]
---@param options? { stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[] }
---@return deepc.Tensor
function nn.fold(x, size, window, options)
  local op = "fold"
  core.check_tensor(op, x)
  if type(size) ~= "table" or #size < 1 or #size > 3 then
    core.fail("ARG", op, "the size of the images is a list of 1 to 3, such as { height, width }, not " ..
      core.shown(size))
  end
  local dims = #size
  size = each_dim(op, "the size", size, dims, 1)
  local w = read_window(op, window, options, dims)
  local shape, counts = x.shape, count_windows(op, x, w, size)
  local elements, columns = product(w.size), product(counts)
  if #shape ~= 3 or shape[2] % elements ~= 0 or shape[3] ~= columns then
    fail("DIMS", op, x, "x is %s; [batch, channels * %d, %d] is needed", describe(x), elements, columns)
  end
  local channels = shape[2] // elements
  local apart = { shape[1], channels, table.unpack(w.size) }
  for k = 1, dims do
    apart[dims + 2 + k] = counts[k]
  end
  local y = x:rename({ [1] = false, [2] = false, [3] = false }):reshape(apart)
  for k = 1, dims do -- the window's axis of the dim is the third one, its places stand behind those that are left
    local total, axis, sum = size[k] + 2 * w.padding[k], dims - k + 3, nil
    for i = 1, w.size[k] do
      local part = y:slice({ [3] = { i, i } })
      local shape_of = { table.unpack(part.shape) }
      table.remove(shape_of, 3)
      part = spread(part:reshape(shape_of), axis, (i - 1) * w.dilation[k], w.stride[k], total)
      sum = sum and sum + part or part
    end
    y = sum:slice({ [axis] = { w.padding[k] + 1, w.padding[k] + size[k] } }):movedim(axis, -1)
  end
  return y:expand(y.shape)
end
