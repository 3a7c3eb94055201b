-- The reverse of a max pool: each number back where it was found.

local dc = require "deepc"
local nn = require "deepc.nn.class"
local _, core = ...
require "deepc.indexing"

local per_dim, window_text = core.per_dim, core.window_text

local function describe(x)
  return ("%s[%s]"):format(x.dtype, core.sizes(x.shape))
end

-- The sizes behind the channels: those wanted, or the least that give x.
local function sizes_of(op, n, x, window, stride, padding, want)
  local list = {}
  local least = x.shape
  for i = 1, n do
    local k = least[2 + i]
    if core.is_size(k) then
      core.fail("DIMS", op, ("axis %d of %s has a size known when the function runs only"):format(2 + i, describe(x)),
        nil, "x", x)
    end
    list[i] = (k - 1) * stride[i] - 2 * padding[i] + window[i]
  end
  if want == nil then
    return list
  end
  local given = type(want) == "table" and #want == n + 2 and { table.unpack(want, 3) } or want
  given = per_dim(op, "output_size", given, 1, n)
  for i = 1, n do
    local low, high = list[i] - stride[i] + 1, list[i] + stride[i] - 1
    if given[i] < low or given[i] > high then
      core.fail("ARG", op, ("output_size of %d for axis %d; a pool from %d to %d elements gives the %d of x"):format(
        given[i], 2 + i, math.max(low, 1), high, least[2 + i]), nil, "x", x)
    end
  end
  return given
end

local function check_operands(op, n, x, indices)
  core.check_tensor(op, x, "x")
  if indices == nil then
    core.fail("ARG", op, "indices are needed", "a max pool with { return_indices = true } gives them", "x", x)
  end
  core.check_tensor(op, indices, "indices")
  local same = #x.shape == #indices.shape
  for i = 1, same and #x.shape or 0 do
    same = same and x.shape[i] == indices.shape[i]
  end
  if #x.shape ~= n + 2 then
    core.fail("DIMS", op, ("x is %s; [batch, channels, %s] is needed"):format(describe(x),
      core.pool_axes[n]), nil, "x", x)
  elseif not same then
    core.fail("DIMS", op, ("x is %s, indices are %s; one for each number is needed"):format(describe(x),
      describe(indices)), nil, "x", x, "indices", indices)
  end
end

local function unpool(op, n, x, indices, window, options)
  core.options(op, options, "stride", "padding", "output_size")
  options = options or {}
  check_operands(op, n, x, indices)
  window = per_dim(op, "the window", window, 1, n)
  local stride = per_dim(op, "stride", options.stride or window, 1, n)
  local padding = per_dim(op, "padding", options.padding or 0, 0, n)
  local sizes, count = sizes_of(op, n, x, window, stride, padding, options.output_size), 1
  for i = 1, n do
    count = count * sizes[i]
  end
  local front = { x.shape[1], x.shape[2] }
  local empty = dc.full(x.dtype .. "[]", 0):expand { front[1], front[2], count }
  local index = core.index(indices, op):flatten(3)
  index = core.checked_index(op, index, empty, 3)
  return (core.place(op, "set", empty, index, x:flatten(3), 3, 2):reshape { front[1], front[2], table.unpack(sizes) })
end

---Each number of x at the place of its channel that its index tells, zeros elsewhere: the reverse of a max pool with
---return_indices (torch.nn.functional.max_unpool2d). Where an index occurs twice the last number stays.
---
---    local y, indices = dc.max_pool2d(dc.iota "f32[1, 1, 4, 4]", 2, { return_indices = true })
---    nn.max_unpool2d(y, indices, 2)
---
---Options: stride (that of the window), padding (0), as of the pool; output_size (the least that the pool makes x of).
---
---Errors: DC0301 for the shapes, DC0101 for options, DC0701 for an index outside, at run time.
---@param x deepc.Tensor [batch, channels, height, width]
---@param indices deepc.Tensor integers of the shape of x, from 0, counted over height and width
---@param window deepc.PerDim
---@param options? { stride?: deepc.PerDim, padding?: deepc.PerDim, output_size?: integer[] }
---@return deepc.Tensor [batch, channels, ...]
function nn.max_unpool2d(x, indices, window, options)
  local y = unpool("max_unpool2d", 2, x, indices, window, options)
  return y
end

---nn.max_unpool2d for one dim.
---
---    nn.max_unpool1d(dc.tensor { { { 5, 7 } } }, dc.tensor({ { { 1, 2 } } }, "i32"), 2)
---
---Errors: as nn.max_unpool2d.
---@param x deepc.Tensor [batch, channels, length]
---@param indices deepc.Tensor
---@param window deepc.PerDim
---@param options? { stride?: deepc.PerDim, padding?: deepc.PerDim, output_size?: integer[] }
---@return deepc.Tensor
function nn.max_unpool1d(x, indices, window, options)
  local y = unpool("max_unpool1d", 1, x, indices, window, options)
  return y
end

---nn.max_unpool2d for three dims.
---
---    local y, indices = dc.max_pool3d(dc.iota "f32[1, 1, 2, 2, 2]", 2, { return_indices = true })
---    nn.max_unpool3d(y, indices, 2)
---
---Errors: as nn.max_unpool2d.
---@param x deepc.Tensor [batch, channels, depth, height, width]
---@param indices deepc.Tensor
---@param window deepc.PerDim
---@param options? { stride?: deepc.PerDim, padding?: deepc.PerDim, output_size?: integer[] }
---@return deepc.Tensor
function nn.max_unpool3d(x, indices, window, options)
  local y = unpool("max_unpool3d", 3, x, indices, window, options)
  return y
end

local function unpool_class(n, f)
  local op = ("nn.MaxUnpool%dd"):format(n)
  local class = nn.class(op)

  function class:init(window, options)
    core.options(op, options, "stride", "padding")
    options = options or {}
    self.window = per_dim(op, "the window", window, 1, n)
    self.stride = per_dim(op, "stride", options.stride or self.window, 1, n)
    self.padding = per_dim(op, "padding", options.padding or 0, 0, n)
  end

  function class:describe()
    return ("%s %s"):format(op, window_text(self.window))
  end

  function class:forward(x, indices, options)
    core.options(op, options, "output_size")
    local y = f(x, indices, self.window, { stride = self.stride, padding = self.padding,
      output_size = options and options.output_size })
    return y
  end
  return class
end

---nn.max_unpool2d as a layer of two tensors; the size of the result may be a third.
---
---    local pool, unpool = nn.MaxPool2d(2, { return_indices = true }), nn.MaxUnpool2d(2)
---    local y, indices = pool(dc.iota "f32[1, 1, 5, 5]")
---    unpool(y, indices, { output_size = { 5, 5 } })
---
---Options: stride (that of the window), padding (0).
---
---Errors: DC0101 for options; when it is called, as nn.max_unpool2d.
---@class deepc.nn.MaxUnpool2d: deepc.nn.Layer
---@overload fun(window: deepc.PerDim, options?: table): deepc.nn.MaxUnpool2d
nn.MaxUnpool2d = unpool_class(2, nn.max_unpool2d)

---nn.MaxUnpool2d for one dim.
---
---    nn.MaxUnpool1d(2)
---
---Errors: those of nn.MaxUnpool2d.
---@class deepc.nn.MaxUnpool1d: deepc.nn.Layer
---@overload fun(window: deepc.PerDim, options?: table): deepc.nn.MaxUnpool1d
nn.MaxUnpool1d = unpool_class(1, nn.max_unpool1d)

---nn.MaxUnpool2d for three dims.
---
---    nn.MaxUnpool3d(2)
---
---Errors: those of nn.MaxUnpool2d.
---@class deepc.nn.MaxUnpool3d: deepc.nn.Layer
---@overload fun(window: deepc.PerDim, options?: table): deepc.nn.MaxUnpool3d
nn.MaxUnpool3d = unpool_class(3, nn.max_unpool3d)
