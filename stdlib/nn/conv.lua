-- Convolutions over [batch, channels, dims...] as layers: of one, two and three dims, and transposed ones.

local dc = require "deepc"
local nn = require "deepc.nn.class"
local _, core = ...

-- ---- what is given for each dim ----

local WORDS = { "one", "two", "three" }

-- An integer from `least` on, for all n dims, or a list of n; as a list.
local function per_dim(op, what, v, least, n)
  local function check(size)
    if math.type(size) ~= "integer" or size < least then
      core.fail("ARG", op, ("%s is an integer from %d on, or a list of %s, not %s"):format(what, least, WORDS[n],
        core.shown(size)))
    end
  end
  if type(v) ~= "table" then
    check(v)
    v = { v, v, v }
  elseif #v ~= n then
    core.fail("ARG", op, ("%s is an integer or a list of %s, not a list of %d"):format(what, WORDS[n], #v),
      next(v) ~= nil and #v == 0 and ("options come behind it: %s(1, 8, 3, { padding = 1 })"):format(op) or nil)
  end
  local list = {}
  for i = 1, n do
    check(v[i])
    list[i] = v[i]
  end
  return list
end
core.per_dim = per_dim

-- "same", an integer, or a list of n, each an integer or a list of two: both sides of a dim.
function core.padding_of(op, v, n)
  if v == "same" then
    return v
  elseif v == "valid" then
    v = 0
  end
  local two = false
  for i = 1, type(v) == "table" and #v == n and n or 0 do
    two = two or type(v[i]) == "table"
  end
  if two then
    local list = {}
    for i = 1, n do
      list[i] = per_dim(op, "padding of a dim", v[i], 0, 2)
    end
    return list
  end
  return per_dim(op, "padding", v or 0, 0, n)
end

-- "3" for { 3, 3 }, "3x5".
function core.window_text(list)
  for i = 2, #list do
    if list[i] ~= list[1] then
      return table.concat(list, "x")
    end
  end
  return tostring(list[1])
end

local function all_ones(list)
  return core.window_text(list) == "1"
end

-- ---- convolutions ----

-- Checks what all have, and gives the layer its weight and bias; `transposed`: the weight is [inputs, outputs /
-- groups].
local function init_conv(op, self, n, transposed, inputs, outputs, window, options)
  core.check_size(op, "the number of inputs", inputs)
  core.check_size(op, "the number of outputs", outputs)
  local groups, size = options.groups or 1, per_dim(op, "the window", window, 1, n)
  core.check_size(op, "groups", groups)
  if inputs % groups ~= 0 or outputs % groups ~= 0 then
    core.fail("ARG", op, ("%d and %d channels do not divide into %d groups"):format(inputs, outputs, groups))
  end
  local first, second = outputs, inputs // groups
  if transposed then
    first, second = inputs, outputs // groups
  end
  local terms = second
  for i = 1, n do
    terms = terms * size[i]
  end
  local bound = terms ^ -0.5
  local function uniform(type_text)
    return dc.param(type_text, dc.rand(type_text, { low = -bound, high = bound }))
  end
  self.inputs, self.outputs, self.window, self.groups = inputs, outputs, size, groups
  self.stride = per_dim(op, "stride", options.stride or 1, 1, n)
  self.dilation = per_dim(op, "dilation", options.dilation or 1, 1, n)
  self.padding = core.padding_of(op, options.padding, n)
  if self.padding == "same" and (transposed or not all_ones(self.stride)) then
    core.fail("ARG", op, transposed and "padding is a number or a list" or 'padding "same" is for stride 1')
  end
  self.weight = uniform(("f32[%d, %d, %s]"):format(first, second, table.concat(size, ", ")))
  if core.unless_false(op, options, "bias") then
    self.bias = uniform(("f32[%d]"):format(outputs))
  end
end

local function add_bias(layer, y, n)
  if layer.bias then
    local sizes = { layer.outputs, 1, 1, 1 }
    y = y + layer.bias:reshape { table.unpack(sizes, 1, 1 + n) }
  end
  return y
end

local function describe(self)
  return ("%s %d -> %d, %s"):format(getmetatable(self).__name, self.inputs, self.outputs,
    core.window_text(self.window))
end

local MODES = { zeros = "constant", reflect = "reflect", replicate = "replicate", circular = "circular" }

-- Both sides of each dim, of which "same" has one more element behind where they differ.
local function same_margins(self, n)
  local list = {}
  for i = 1, n do
    local both = self.dilation[i] * (self.window[i] - 1)
    list[i] = { both // 2, both - both // 2 }
  end
  return list
end

-- The class of convolutions over n dims, each computed by f.
local function conv_class(n, f)
  local op = ("nn.Conv%dd"):format(n)
  local class = nn.class(op)

  function class:init(inputs, outputs, window, options)
    core.options(op, options, "stride", "padding", "padding_mode", "dilation", "groups", "bias")
    options = options or {}
    init_conv(op, self, n, false, inputs, outputs, window, options)
    self.padding_mode = options.padding_mode or "zeros"
    if not MODES[self.padding_mode] then
      core.fail("ARG", op, ('padding_mode is "zeros", "reflect", "replicate" or "circular", not %s'):format(
        core.shown(self.padding_mode)))
    end
  end
  class.describe = describe

  function class:forward(x)
    local padding = self.padding
    if self.padding_mode ~= "zeros" then
      padding = padding == "same" and same_margins(self, n) or padding
      x = x:pad(core.image_margins(op, x, padding, n), { mode = MODES[self.padding_mode] })
      padding = 0
    end
    local y = f(x, self.weight, { stride = self.stride, padding = padding, dilation = self.dilation,
      groups = self.groups })
    y = add_bias(self, y, n)
    return y
  end
  return class
end

---dc.conv2d(x, weight, options) + bias for x of [batch, inputs, height, width]; weight is
---f32[outputs, inputs / groups, height, width of the window]. Both start uniform in
---[-1/sqrt(n), 1/sqrt(n)) for n terms of a sum.
---
---    nn.Conv2d(1, 32, 3, { padding = 1 })
---
---Arguments: channels of x, channels of the result, the window. Options: stride (1), padding (0; a number, a list of
---two, "same" or "valid"), padding_mode ("zeros", "reflect", "replicate" or "circular"), dilation (1), groups (1),
---bias (true). Numbers are for both dims, lists have one for each.
---
---Errors: DC0101 for sizes and options; when it is called, as dc.conv2d.
---@class deepc.nn.Conv2d: deepc.nn.Layer
---@overload fun(inputs: integer, outputs: integer, window: deepc.PerDim, options?: table): deepc.nn.Conv2d
nn.Conv2d = conv_class(2, dc.conv2d)

---nn.Conv2d for one dim: x is [batch, inputs, length], weight f32[outputs, inputs / groups, window].
---
---    nn.Conv1d(64, 128, 5, { padding = "same" })
---
---Errors: DC0101 for sizes and options; when it is called, as dc.conv1d.
---@class deepc.nn.Conv1d: deepc.nn.Layer
---@overload fun(inputs: integer, outputs: integer, window: deepc.PerDim, options?: table): deepc.nn.Conv1d
nn.Conv1d = conv_class(1, dc.conv1d)

---nn.Conv2d for three dims: x is [batch, inputs, depth, height, width].
---
---    nn.Conv3d(1, 8, 3, { padding = 1 })
---
---Errors: DC0101 for sizes and options; when it is called, as dc.conv3d.
---@class deepc.nn.Conv3d: deepc.nn.Layer
---@overload fun(inputs: integer, outputs: integer, window: deepc.PerDim, options?: table): deepc.nn.Conv3d
nn.Conv3d = conv_class(3, dc.conv3d)

-- ---- transposed convolutions ----

local function transposed_class(n, f)
  local op = ("nn.ConvTranspose%dd"):format(n)
  local class = nn.class(op)

  function class:init(inputs, outputs, window, options)
    core.options(op, options, "stride", "padding", "output_padding", "dilation", "groups", "bias")
    options = options or {}
    init_conv(op, self, n, true, inputs, outputs, window, options)
    self.output_padding = per_dim(op, "output_padding", options.output_padding or 0, 0, n)
    for i, more in ipairs(self.output_padding) do
      if more > 0 and more >= math.max(self.stride[i], self.dilation[i]) then
        core.fail("ARG", op, ("output_padding of %d is not below the stride of %d or the dilation of %d"):format(more,
          self.stride[i], self.dilation[i]))
      end
    end
  end
  class.describe = describe

  function class:forward(x)
    local y = f(x, self.weight, { stride = self.stride, padding = self.padding, output_padding = self.output_padding,
      dilation = self.dilation, groups = self.groups })
    y = add_bias(self, y, n)
    return y
  end
  return class
end

---dc.conv_transpose2d(x, weight, options) + bias: a convolution the other way round, which makes images larger. x is
---[batch, inputs, height, width], weight f32[inputs, outputs / groups, height, width of the window]; each dim of the
---result has (size - 1) * stride - 2 * padding + dilation * (window - 1) + output_padding + 1 elements.
---
---    nn.ConvTranspose2d(64, 32, 4, { stride = 2, padding = 1 })
---
---Arguments: channels of x, channels of the result, the window. Options: stride (1), padding (0, what is cut from the
---result), output_padding (0), dilation (1), groups (1), bias (true). Numbers are for both dims, lists have one for
---each.
---
---Errors: DC0101 for sizes and options; when it is called, as dc.conv_transpose2d.
---@class deepc.nn.ConvTranspose2d: deepc.nn.Layer
---@overload fun(inputs: integer, outputs: integer, window: deepc.PerDim, options?: table): deepc.nn.ConvTranspose2d
nn.ConvTranspose2d = transposed_class(2, dc.conv_transpose2d)

---nn.ConvTranspose2d for one dim: x is [batch, inputs, length].
---
---    nn.ConvTranspose1d(64, 32, 4, { stride = 2, padding = 1 })
---
---Errors: DC0101 for sizes and options; when it is called, as dc.conv_transpose1d.
---@class deepc.nn.ConvTranspose1d: deepc.nn.Layer
---@overload fun(inputs: integer, outputs: integer, window: deepc.PerDim, options?: table): deepc.nn.ConvTranspose1d
nn.ConvTranspose1d = transposed_class(1, dc.conv_transpose1d)

---nn.ConvTranspose2d for three dims: x is [batch, inputs, depth, height, width].
---
---    nn.ConvTranspose3d(8, 4, 2, { stride = 2 })
---
---Errors: DC0101 for sizes and options; when it is called, as dc.conv_transpose3d.
---@class deepc.nn.ConvTranspose3d: deepc.nn.Layer
---@overload fun(inputs: integer, outputs: integer, window: deepc.PerDim, options?: table): deepc.nn.ConvTranspose3d
nn.ConvTranspose3d = transposed_class(3, dc.conv_transpose3d)

-- ---- channels and pixels ----

-- The sizes of x, which has batch and channels first and as many axes as are given.
local function image_shape(op, x, least)
  core.check_tensor(op, x)
  local shape = x.shape
  if #shape < least then
    core.fail("DIMS", op, ("x is %s[%s]; [batch, channels%s] is needed"):format(x.dtype, core.sizes(shape),
      least == 4 and ", height, width" or ", ..."), nil, "x", x)
  end
  return shape
end

local function check_divides(op, x, axis, n, by)
  if core.is_size(n) or n % by ~= 0 then
    core.fail("DIMS", op, ("axis %d of %s[%s] does not divide into parts of %d"):format(axis, x.dtype,
      core.sizes(x.shape), by), nil, "x", x)
  end
end

---Channels in so many groups become pixels: [batch, channels * r * r, height, width] to
---[batch, channels, height * r, width * r] (Shi et al., 2016). torch.nn.functional.pixel_shuffle.
---
---    nn.pixel_shuffle(dc.zeros "f32[1, 8, 3, 3]", 2)
---
---Errors: DC0301 where the channels do not divide into r * r.
---@param x deepc.Tensor
---@param factor integer r
---@return deepc.Tensor
function nn.pixel_shuffle(x, factor)
  local op = "pixel_shuffle"
  core.check_size(op, "the factor", factor)
  local b, c, h, w = table.unpack(image_shape(op, x, 4))
  check_divides(op, x, 2, c, factor < 1 << 16 and factor * factor or math.maxinteger)
  local y = x:reshape(b, c // (factor * factor), factor, factor, h, w):permute(1, 2, 5, 3, 6, 4)
    :reshape(b, c // (factor * factor), h * factor, w * factor)
  return y
end

---Pixels become channels: the inverse of nn.pixel_shuffle. torch.nn.functional.pixel_unshuffle.
---
---    nn.pixel_unshuffle(dc.zeros "f32[1, 2, 6, 6]", 2)
---
---Errors: DC0301 where height or width does not divide by the factor.
---@param x deepc.Tensor
---@param factor integer r
---@return deepc.Tensor
function nn.pixel_unshuffle(x, factor)
  local op = "pixel_unshuffle"
  core.check_size(op, "the factor", factor)
  local b, c, h, w = table.unpack(image_shape(op, x, 4))
  check_divides(op, x, 3, h, factor)
  check_divides(op, x, 4, w, factor)
  local y = x:reshape(b, c, h // factor, factor, w // factor, factor):permute(1, 2, 4, 6, 3, 5)
    :reshape(b, c * factor * factor, h // factor, w // factor)
  return y
end

---Channels, axis 2, in another order: the first of each group, then the second of each (Zhang et al., 2018).
---torch.nn.functional.channel_shuffle.
---
---    nn.channel_shuffle(dc.zeros "f32[1, 4, 3, 3]", 2)
---
---Errors: DC0301 where the channels do not divide into the groups.
---@param x deepc.Tensor
---@param groups integer
---@return deepc.Tensor
function nn.channel_shuffle(x, groups)
  local op = "channel_shuffle"
  core.check_size(op, "the number of groups", groups)
  local shape = image_shape(op, x, 2)
  check_divides(op, x, 2, shape[2], groups)
  local y = x:reshape(shape[1], groups, shape[2] // groups, table.unpack(shape, 3)):transpose(2, 3):reshape(shape)
  return y
end

-- A class whose layers are f(x, n).
local function of_one_number(name, what, f)
  local class = nn.class(name)
  function class:init(n)
    core.check_size(name, what, n)
    self.n = n
  end

  function class:describe()
    return ("%s %d"):format(name, self.n)
  end

  function class:forward(x)
    local y = f(x, self.n)
    return y
  end
  return class
end

---nn.pixel_shuffle.
---
---    nn.PixelShuffle(2)
---@class deepc.nn.PixelShuffle: deepc.nn.Layer
---@overload fun(factor: integer): deepc.nn.PixelShuffle
nn.PixelShuffle = of_one_number("nn.PixelShuffle", "the factor", nn.pixel_shuffle)

---nn.pixel_unshuffle.
---
---    nn.PixelUnshuffle(2)
---@class deepc.nn.PixelUnshuffle: deepc.nn.Layer
---@overload fun(factor: integer): deepc.nn.PixelUnshuffle
nn.PixelUnshuffle = of_one_number("nn.PixelUnshuffle", "the factor", nn.pixel_unshuffle)

---nn.channel_shuffle.
---
---    nn.ChannelShuffle(2)
---@class deepc.nn.ChannelShuffle: deepc.nn.Layer
---@overload fun(groups: integer): deepc.nn.ChannelShuffle
nn.ChannelShuffle = of_one_number("nn.ChannelShuffle", "the number of groups", nn.channel_shuffle)
