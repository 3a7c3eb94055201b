-- Pools over [batch, channels, dims...]: windows that move, windows that a size of the result asks for, whole images.

local dc = require "deepc"
local nn = require "deepc.nn.class"
local _, core = ...

local per_dim, window_text = core.per_dim, core.window_text

-- ---- windows that move ----

local function init_pool(op, n, self, window, options)
  self.window = per_dim(op, "the window", window, 1, n)
  self.stride = per_dim(op, "stride", options.stride or self.window, 1, n)
  self.padding = core.padding_of(op, options.padding, n)
  if self.padding == "same" then
    core.fail("ARG", op, ("padding is a number or a list of %s"):format(({ "one", "two", "three" })[n]))
  end
  for _, key in ipairs { "ceil_mode", "count_padding", "return_indices" } do
    if options[key] ~= nil and type(options[key]) ~= "boolean" then
      core.fail("ARG", op, ("%s is true or false, not %s"):format(key, core.shown(options[key])))
    end
  end
  self.ceil_mode = options.ceil_mode or false
end

local function describe(self)
  return ("%s %s"):format(getmetatable(self).__name, window_text(self.window))
end

local function max_class(n, f)
  local op = ("nn.MaxPool%dd"):format(n)
  local class = nn.class(op)

  function class:init(window, options)
    core.options(op, options, "stride", "padding", "dilation", "ceil_mode", "return_indices")
    options = options or {}
    init_pool(op, n, self, window, options)
    self.dilation = per_dim(op, "dilation", options.dilation or 1, 1, n)
    self.return_indices = options.return_indices or false
  end
  class.describe = describe

  function class:forward(x)
    local options = { stride = self.stride, padding = self.padding, dilation = self.dilation,
      ceil_mode = self.ceil_mode, return_indices = self.return_indices }
    if self.return_indices then
      local y, indices = f(x, self.window, options)
      return y, indices
    end
    local y = f(x, self.window, options)
    return y
  end
  return class
end

---The largest element of each window: dc.max_pool2d(x, window, options).
---
---    nn.MaxPool2d(2)
---
---Options: stride (that of the window), padding (0), dilation (1), ceil_mode (false), return_indices (false: true gives
---a second tensor, for nn.MaxUnpool2d).
---
---Errors: DC0101 for options; when it is called, as dc.max_pool2d.
---@class deepc.nn.MaxPool2d: deepc.nn.Layer
---@overload fun(window: deepc.PerDim, options?: table): deepc.nn.MaxPool2d
nn.MaxPool2d = max_class(2, dc.max_pool2d)

---nn.MaxPool2d for one dim.
---
---    nn.MaxPool1d(2)
---
---Errors: DC0101 for options; when it is called, as dc.max_pool1d.
---@class deepc.nn.MaxPool1d: deepc.nn.Layer
---@overload fun(window: deepc.PerDim, options?: table): deepc.nn.MaxPool1d
nn.MaxPool1d = max_class(1, dc.max_pool1d)

---nn.MaxPool2d for three dims.
---
---    nn.MaxPool3d(2)
---
---Errors: DC0101 for options; when it is called, as dc.max_pool3d.
---@class deepc.nn.MaxPool3d: deepc.nn.Layer
---@overload fun(window: deepc.PerDim, options?: table): deepc.nn.MaxPool3d
nn.MaxPool3d = max_class(3, dc.max_pool3d)

local function mean_class(n, f)
  local op = ("nn.AvgPool%dd"):format(n)
  local class = nn.class(op)

  function class:init(window, options)
    core.options(op, options, "stride", "padding", "count_padding", "ceil_mode", "divisor_override")
    options = options or {}
    init_pool(op, n, self, window, options)
    self.count_padding = options.count_padding ~= false
    if options.divisor_override ~= nil then
      core.check_size(op, "divisor_override", options.divisor_override)
    end
    self.divisor_override = options.divisor_override
  end
  class.describe = describe

  function class:forward(x)
    local y = f(x, self.window, { stride = self.stride, padding = self.padding, count_padding = self.count_padding,
      ceil_mode = self.ceil_mode, divisor_override = self.divisor_override })
    return y
  end
  return class
end

---The mean of each window: dc.avg_pool2d(x, window, options).
---
---    nn.AvgPool2d(2)
---
---Options: stride (that of the window), padding (0), count_padding (true: padding counts as zeros; torch's
---count_include_pad), ceil_mode (false), divisor_override.
---
---Errors: DC0101 for options; when it is called, as dc.avg_pool2d.
---@class deepc.nn.AvgPool2d: deepc.nn.Layer
---@overload fun(window: deepc.PerDim, options?: table): deepc.nn.AvgPool2d
nn.AvgPool2d = mean_class(2, dc.avg_pool2d)

---nn.AvgPool2d for one dim.
---
---    nn.AvgPool1d(2)
---
---Errors: DC0101 for options; when it is called, as dc.avg_pool1d.
---@class deepc.nn.AvgPool1d: deepc.nn.Layer
---@overload fun(window: deepc.PerDim, options?: table): deepc.nn.AvgPool1d
nn.AvgPool1d = mean_class(1, dc.avg_pool1d)

---nn.AvgPool2d for three dims.
---
---    nn.AvgPool3d(2)
---
---Errors: DC0101 for options; when it is called, as dc.avg_pool3d.
---@class deepc.nn.AvgPool3d: deepc.nn.Layer
---@overload fun(window: deepc.PerDim, options?: table): deepc.nn.AvgPool3d
nn.AvgPool3d = mean_class(3, dc.avg_pool3d)

local function power_class(n, f)
  local op = ("nn.LPPool%dd"):format(n)
  local class = nn.class(op)

  function class:init(power, window, options)
    core.options(op, options, "stride", "ceil_mode")
    if type(power) ~= "number" or not (power > 0 and power < math.huge) then
      core.fail("ARG", op, ("the power is a positive number, not %s"):format(core.shown(power)))
    end
    init_pool(op, n, self, window, options or {})
    self.power = power
  end
  class.describe = describe

  function class:forward(x)
    core.check_floats(op, x)
    local terms = 1
    for i = 1, n do
      terms = terms * self.window[i]
    end
    local narrow, wide = core.in_f32(x)
    local powers = self.power == 2 and wide * wide or wide ^ self.power
    local sum = f(powers, self.window, { stride = self.stride, ceil_mode = self.ceil_mode }) * terms
    return narrow(self.power == 2 and sum:sqrt() or sum ^ (1 / self.power))
  end
  return class
end

---The norm of each window: (sum of x^p)^(1/p); NaN where the sum is negative (p odd). Where a window of ceil_mode
---reaches over the end, the mean of what is there counts as often as the window has elements, as in PyTorch.
---
---    nn.LPPool2d(2, 3, { stride = 2 })
---
---Arguments: p, the window. Options: stride (that of the window), ceil_mode (false).
---
---Errors: DC0101 for p and options; when it is called, DC0202 for what is no float, and as dc.avg_pool2d.
---@class deepc.nn.LPPool2d: deepc.nn.Layer
---@overload fun(power: number, window: deepc.PerDim, options?: table): deepc.nn.LPPool2d
nn.LPPool2d = power_class(2, dc.avg_pool2d)

---nn.LPPool2d for one dim.
---
---    nn.LPPool1d(2, 3)
---
---Errors: those of nn.LPPool2d.
---@class deepc.nn.LPPool1d: deepc.nn.Layer
---@overload fun(power: number, window: deepc.PerDim, options?: table): deepc.nn.LPPool1d
nn.LPPool1d = power_class(1, dc.avg_pool1d)

---nn.LPPool2d for three dims.
---
---    nn.LPPool3d(2, 2)
---
---Errors: those of nn.LPPool2d.
---@class deepc.nn.LPPool3d: deepc.nn.Layer
---@overload fun(power: number, window: deepc.PerDim, options?: table): deepc.nn.LPPool3d
nn.LPPool3d = power_class(3, dc.avg_pool3d)

-- ---- results of a given size ----
--
-- Place i of k on n elements sees those from floor(i n / k) to ceil((i + 1) n / k), as in PyTorch. Dims are done one
-- after the other; where k divides n the windows tile.

local MOST_WINDOW = 256 -- of dc.max_pool1d ...

-- First elements of the windows, from 0, and elements behind the last.
local function windows(n, k)
  local first, behind = {}, {}
  for i = 1, k do
    first[i] = (i - 1) * n // k
    behind[i] = -(-i * n // k)
  end
  return first, behind
end

-- x with axis `axis` as the last one of three: what is before it, the axis, what is behind it.
local function as_middle(x, axis)
  local before, behind = 1, 1
  for i, size in ipairs(x.shape) do
    if i < axis then
      before = before * size
    elseif i > axis then
      behind = behind * size
    end
  end
  return before, behind
end

local function with_size(shape, axis, k)
  local list = { table.unpack(shape) }
  list[axis] = k
  return list
end

-- The mean along one axis, as a product with the weights of a window in each column.
local function mean_along(x, axis, k)
  local shape = x.shape
  local n = shape[axis]
  if k == n then
    return x
  elseif n % k == 0 then
    local split = { table.unpack(shape, 1, axis - 1) }
    split[axis], split[axis + 1] = k, n // k
    for i = axis + 1, #shape do
      split[i + 1] = shape[i]
    end
    return (x:reshape(split):mean(axis + 1))
  end
  local first, behind = windows(n, k)
  local place = dc.iota(("i32[%d, 1]"):format(n), 1)
  first = core.anywhere(dc.tensor(first, ("i32[%d]"):format(k)))
  behind = core.anywhere(dc.tensor(behind, ("i32[%d]"):format(k)))
  local inside = place:ge(first) & place:lt(behind)
  local weights = dc.where(inside, 1 / (behind - first):cast(x.dtype), 0)
  if axis == #shape then
    return (x:matmul(weights))
  end
  local before, rest = as_middle(x, axis)
  return (weights:transpose():matmul(x:reshape(before, n, rest)):reshape(with_size(shape, axis, k)))
end

local MOST_PHASES = 16

local function divisor(a, b)
  while b ~= 0 do
    a, b = b, a % b
  end
  return a
end

-- The same, where the lengths of windows come again after few of them: those of one length are a pool that moves by the
-- elements of one turn.
local function max_by_phases(x, axis, k, turns)
  local shape, first, behind = x.shape, windows(x.shape[axis], k)
  local n = shape[axis]
  local before, rest = as_middle(x, axis)
  local places, step, parts = k // turns, n // turns, {}
  x = x:reshape(1, before, n, rest)
  for p = 1, places do
    local length = behind[p] - first[p]
    local seen = x[{ {}, {}, { first[p] + 1, first[p] + (turns - 1) * step + length } }]
    parts[p] = dc.max_pool2d(seen, { length, 1 }, { stride = { turns > 1 and step or length, 1 } })
  end
  if turns == 1 then
    return (dc.concat(parts, 3):reshape(with_size(shape, axis, k)))
  end
  return (dc.stack(parts, 4):reshape(with_size(shape, axis, k)))
end

-- The first of the largest elements along one axis in each of k windows: all windows with as many elements as the
-- longest, side by side, in which a last element that stands there again changes nothing.
local function max_along(x, axis, k)
  local shape = x.shape
  local n = shape[axis]
  if k == n then
    return x
  end
  local window, before, rest = n // k, as_middle(x, axis)
  local turns = divisor(n, k)
  if n % k ~= 0 and k // turns <= MOST_PHASES and window < MOST_WINDOW - 1 then
    return max_by_phases(x, axis, k, turns)
  elseif n % k ~= 0 then
    local first, behind = windows(n, k)
    local list = {}
    window = 0
    for i = 1, k do
      window = math.max(window, behind[i] - first[i])
    end
    for i = 1, k do
      for t = 0, window - 1 do
        list[#list + 1] = math.min(first[i] + t, behind[i] - 1)
      end
    end
    x = x:take(core.anywhere(dc.tensor(list, ("i32[%d]"):format(#list))), axis)
  end
  if window > MOST_WINDOW then
    return (x:reshape(before, k, window, rest):max(3):reshape(with_size(shape, axis, k)))
  end
  local y = dc.max_pool2d(x:reshape(1, before, k * window, rest), { window, 1 })
  return (y:reshape(with_size(shape, axis, k)))
end

core.pool_axes = { "length", "height, width", "depth, height, width" }

-- x reduced along its last n axes to the sizes wanted; false keeps an axis.
local function adaptive(op, n, x, sizes, along)
  core.check_tensor(op, x)
  local shape = x.shape
  if #shape ~= n + 2 then
    core.fail("DIMS", op, ("x is %s[%s]; [batch, channels, %s] is needed"):format(x.dtype, core.sizes(shape),
      core.pool_axes[n]), nil, "x", x)
  elseif not core.is_float(x.dtype) then
    core.fail("DTYPE", op, ("x is %s[%s]; floats are needed"):format(x.dtype, core.sizes(shape)),
      ':cast "f32" converts', "x", x)
  end
  local narrow, y = core.in_f32(x)
  for i = n, 1, -1 do
    local axis, k = 2 + i, sizes[i]
    if k and core.is_size(shape[axis]) then
      core.fail("DIMS", op, ("axis %d of %s[%s] has a size known when the function runs only"):format(axis, x.dtype,
        core.sizes(shape)), nil, "x", x)
    elseif k and shape[axis] == 0 then
      core.fail("DIMS", op, ("axis %d of %s[%s] has no elements"):format(axis, x.dtype, core.sizes(shape)), nil, "x", x)
    elseif k then
      y = along(y, axis, k)
    end
  end
  return narrow(y)
end

local MOST_PLACES = 1 << 20

-- A list of n sizes, of which false keeps that of x.
local function read_sizes(op, size, n)
  local what, list = "the size of the result", {}
  if type(size) ~= "table" or #size ~= n then
    list = per_dim(op, what, size, 1, n)
  else
    for i = 1, n do
      list[i] = size[i] and per_dim(op, what, size[i], 1, 1)[1]
    end
  end
  for i = 1, n do
    if list[i] and list[i] > MOST_PLACES then
      core.fail("ARG", op, ("%s is %d; %d is the most"):format(what, list[i], MOST_PLACES))
    end
  end
  return list
end

local function adaptive_class(name, n, f)
  local class = nn.class(name)
  function class:init(size)
    self.size = read_sizes(name, size, n)
  end

  function class:describe()
    local list = {}
    for i, k in ipairs(self.size) do
      list[i] = k or "any"
    end
    return ("%s %s"):format(name, window_text(list))
  end

  function class:forward(x)
    local y = f(x, self.size)
    return y
  end
  return class
end

---The mean of windows that give a result of this size, whatever that of x: place i of k on n elements sees those from
---floor(i n / k) to ceil((i + 1) n / k). torch.nn.functional.adaptive_avg_pool2d.
---
---    nn.adaptive_avg_pool2d(dc.zeros "f32[8, 16, 30, 30]", 7)
---
---Errors: DC0301 for another number of axes, DC0101 for the size.
---@param x deepc.Tensor floats
---@param size integer|(integer|false)[] false keeps the size of a dim
---@return deepc.Tensor
function nn.adaptive_avg_pool2d(x, size)
  local op = "adaptive_avg_pool2d"
  local y = adaptive(op, 2, x, read_sizes(op, size, 2), mean_along)
  return y
end

---nn.adaptive_avg_pool2d for one dim.
---
---    nn.adaptive_avg_pool1d(dc.zeros "f32[8, 16, 30]", 7)
---
---Errors: as nn.adaptive_avg_pool2d.
---@param x deepc.Tensor floats
---@param size integer|(integer|false)[] false keeps the size of a dim
---@return deepc.Tensor
function nn.adaptive_avg_pool1d(x, size)
  local op = "adaptive_avg_pool1d"
  local y = adaptive(op, 1, x, read_sizes(op, size, 1), mean_along)
  return y
end

---nn.adaptive_avg_pool2d for three dims.
---
---    nn.adaptive_avg_pool3d(dc.zeros "f32[1, 2, 6, 6, 6]", 4)
---
---Errors: as nn.adaptive_avg_pool2d.
---@param x deepc.Tensor floats
---@param size integer|(integer|false)[] false keeps the size of a dim
---@return deepc.Tensor
function nn.adaptive_avg_pool3d(x, size)
  local op = "adaptive_avg_pool3d"
  local y = adaptive(op, 3, x, read_sizes(op, size, 3), mean_along)
  return y
end

---The largest element of each window of nn.adaptive_avg_pool2d; the gradient goes to the first of equals, in windows of
---more than 256 elements of an axis to all of them alike. torch.nn.functional.adaptive_max_pool2d.
---
---    nn.adaptive_max_pool2d(dc.zeros "f32[8, 16, 30, 30]", 7)
---
---Errors: as nn.adaptive_avg_pool2d.
---@param x deepc.Tensor floats
---@param size integer|(integer|false)[] false keeps the size of a dim
---@return deepc.Tensor
function nn.adaptive_max_pool2d(x, size)
  local op = "adaptive_max_pool2d"
  local y = adaptive(op, 2, x, read_sizes(op, size, 2), max_along)
  return y
end

---nn.adaptive_max_pool2d for one dim.
---
---    nn.adaptive_max_pool1d(dc.zeros "f32[8, 16, 30]", 7)
---
---Errors: as nn.adaptive_avg_pool2d.
---@param x deepc.Tensor floats
---@param size integer|(integer|false)[] false keeps the size of a dim
---@return deepc.Tensor
function nn.adaptive_max_pool1d(x, size)
  local op = "adaptive_max_pool1d"
  local y = adaptive(op, 1, x, read_sizes(op, size, 1), max_along)
  return y
end

---nn.adaptive_max_pool2d for three dims.
---
---    nn.adaptive_max_pool3d(dc.zeros "f32[1, 2, 6, 6, 6]", 4)
---
---Errors: as nn.adaptive_avg_pool2d.
---@param x deepc.Tensor floats
---@param size integer|(integer|false)[] false keeps the size of a dim
---@return deepc.Tensor
function nn.adaptive_max_pool3d(x, size)
  local op = "adaptive_max_pool3d"
  local y = adaptive(op, 3, x, read_sizes(op, size, 3), max_along)
  return y
end

---nn.adaptive_avg_pool2d.
---
---    nn.AdaptiveAvgPool2d(7)
---@class deepc.nn.AdaptiveAvgPool2d: deepc.nn.Layer
---@overload fun(size: integer|(integer|false)[]): deepc.nn.AdaptiveAvgPool2d
nn.AdaptiveAvgPool2d = adaptive_class("nn.AdaptiveAvgPool2d", 2, nn.adaptive_avg_pool2d)

---nn.adaptive_avg_pool1d.
---
---    nn.AdaptiveAvgPool1d(7)
---@class deepc.nn.AdaptiveAvgPool1d: deepc.nn.Layer
---@overload fun(size: integer|(integer|false)[]): deepc.nn.AdaptiveAvgPool1d
nn.AdaptiveAvgPool1d = adaptive_class("nn.AdaptiveAvgPool1d", 1, nn.adaptive_avg_pool1d)

---nn.adaptive_avg_pool3d.
---
---    nn.AdaptiveAvgPool3d { 4, 4, 2 }
---@class deepc.nn.AdaptiveAvgPool3d: deepc.nn.Layer
---@overload fun(size: integer|(integer|false)[]): deepc.nn.AdaptiveAvgPool3d
nn.AdaptiveAvgPool3d = adaptive_class("nn.AdaptiveAvgPool3d", 3, nn.adaptive_avg_pool3d)

---nn.adaptive_max_pool2d.
---
---    nn.AdaptiveMaxPool2d { 7, false }
---@class deepc.nn.AdaptiveMaxPool2d: deepc.nn.Layer
---@overload fun(size: integer|(integer|false)[]): deepc.nn.AdaptiveMaxPool2d
nn.AdaptiveMaxPool2d = adaptive_class("nn.AdaptiveMaxPool2d", 2, nn.adaptive_max_pool2d)

---nn.adaptive_max_pool1d.
---
---    nn.AdaptiveMaxPool1d(7)
---@class deepc.nn.AdaptiveMaxPool1d: deepc.nn.Layer
---@overload fun(size: integer|(integer|false)[]): deepc.nn.AdaptiveMaxPool1d
nn.AdaptiveMaxPool1d = adaptive_class("nn.AdaptiveMaxPool1d", 1, nn.adaptive_max_pool1d)

---nn.adaptive_max_pool3d.
---
---    nn.AdaptiveMaxPool3d(4)
---@class deepc.nn.AdaptiveMaxPool3d: deepc.nn.Layer
---@overload fun(size: integer|(integer|false)[]): deepc.nn.AdaptiveMaxPool3d
nn.AdaptiveMaxPool3d = adaptive_class("nn.AdaptiveMaxPool3d", 3, nn.adaptive_max_pool3d)

-- ---- whole images ----

-- A class whose layers reduce all axes from the third on.
local function global_class(name, f)
  return core.activation_class(name, function(x)
    core.check_tensor(name, x)
    local shape, axes = x.shape, {}
    for i = 3, #shape do
      axes[#axes + 1] = i
    end
    if #axes == 0 then
      core.fail("DIMS", name, ("x is %s[%s]; [batch, channels, ...] is needed"):format(x.dtype, core.sizes(shape)), nil,
        "x", x)
    end
    local y = f(x, axes)
    return y
  end)
end

---The mean of each channel: [batch, channels] of [batch, channels, ...].
---
---    nn.GlobalAvgPool()
---@class deepc.nn.GlobalAvgPool: deepc.nn.Layer
nn.GlobalAvgPool = global_class("nn.GlobalAvgPool", dc.mean)

---The largest element of each channel: [batch, channels] of [batch, channels, ...].
---
---    nn.GlobalMaxPool()
---@class deepc.nn.GlobalMaxPool: deepc.nn.Layer
nn.GlobalMaxPool = global_class("nn.GlobalMaxPool", dc.max)
