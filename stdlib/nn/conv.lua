-- Layers for images: [batch, channels, height, width].

local dc = require "deepc"
local nn = require "deepc.nn.class"
local _, core = ...

-- A positive integer (or one from 0 on), for both dims, or a list of two; as a list.
local function pair(op, what, v, least)
  local list = type(v) == "table" and v or { v, v }
  if type(v) ~= "table" and math.type(v) ~= "integer" then
    core.fail("ARG", op, ("%s is an integer from %d on, or a list of two, not %s"):format(what, least, core.shown(v)))
  elseif #list ~= 2 then
    core.fail("ARG", op, ("%s is an integer or a list of two, not a list of %d"):format(what, #list))
  end
  for i = 1, 2 do
    if math.type(list[i]) ~= "integer" or list[i] < least then
      core.fail("ARG", op, ("%s is an integer from %d on, or a list of two, not %s"):format(what, least,
        core.shown(list[i])))
    end
  end
  return { list[1], list[2] }
end

-- "same", an integer, a list of two, or a list of two such lists: both sides of each dim.
local function padding(op, v)
  if v == "same" then
    return v
  end
  if type(v) == "table" and #v == 2 and type(v[1]) == "table" then
    return { pair(op, "padding of a dim", v[1], 0), pair(op, "padding of a dim", v[2], 0) }
  end
  return pair(op, "padding", v or 0, 0)
end

local function text_of(list)
  return list[1] == list[2] and tostring(list[1]) or list[1] .. "x" .. list[2]
end

-- ---- convolutions and pools ----

---dc.conv2d(x, weight, options) + bias for x of [batch, inputs, height, width]; weight is
---f32[outputs, inputs / groups, height, width of the window]. Both start uniform in
---[-1/sqrt(n), 1/sqrt(n)) for n terms of a sum.
---
---    nn.Conv2d(1, 32, 3, { padding = 1 })
---
---Options: stride (1), padding (0; a number, a list of two, or "same"), dilation (1), groups (1), bias
---(true). Numbers are for both dims, lists have one for each.
---
---Errors: DC0101 for sizes and options; when it is called, as dc.conv2d.
---@class deepc.nn.Conv2d: deepc.nn.Layer
local Conv2d = nn.class "nn.Conv2d"
nn.Conv2d = Conv2d

---@param inputs integer channels of x
---@param outputs integer channels of the result
---@param window integer|integer[] its height and width
---@param options? table see above
function Conv2d:init(inputs, outputs, window, options)
  local op = "nn.Conv2d"
  core.check_size(op, "the number of inputs", inputs)
  core.check_size(op, "the number of outputs", outputs)
  core.options(op, options, "stride", "padding", "dilation", "groups", "bias")
  options = options or {}
  local groups, size = options.groups or 1, pair(op, "the window", window, 1)
  core.check_size(op, "groups", groups)
  if inputs % groups ~= 0 or outputs % groups ~= 0 then
    core.fail("ARG", op, ("%d and %d channels do not divide into %d groups"):format(inputs, outputs, groups))
  end
  local bound = (inputs // groups * size[1] * size[2]) ^ -0.5
  local function uniform(type_text)
    return dc.param(type_text, dc.rand(type_text, { low = -bound, high = bound }))
  end
  self.inputs, self.outputs, self.window, self.groups = inputs, outputs, size, groups
  self.stride = pair(op, "stride", options.stride or 1, 1)
  self.dilation = pair(op, "dilation", options.dilation or 1, 1)
  self.padding = padding(op, options.padding)
  if self.padding == "same" and (self.stride[1] > 1 or self.stride[2] > 1) then
    core.fail("ARG", op, 'padding "same" is for stride 1')
  end
  self.weight = uniform(("f32[%d, %d, %d, %d]"):format(outputs, inputs // groups, size[1], size[2]))
  if core.unless_false(op, options, "bias") then
    self.bias = uniform(("f32[%d]"):format(outputs))
  end
end

function Conv2d:describe()
  return ("nn.Conv2d %d -> %d, %s"):format(self.inputs, self.outputs, text_of(self.window))
end

function Conv2d:forward(x)
  local y = dc.conv2d(x, self.weight,
    { stride = self.stride, padding = self.padding, dilation = self.dilation, groups = self.groups })
  if self.bias then
    y = y + self.bias:reshape(self.outputs, 1, 1)
  end
  return y
end

local function init_pool(op, self, window, options, ...)
  core.options(op, options, "stride", "padding", ...)
  options = options or {}
  self.window = pair(op, "the window", window, 1)
  self.stride = pair(op, "stride", options.stride or self.window, 1)
  self.padding = padding(op, options.padding)
  if self.padding == "same" then
    core.fail("ARG", op, "padding is a number or a list of two")
  end
end

---The largest element of each window: dc.max_pool2d(x, window, options).
---
---    nn.MaxPool2d(2)
---
---Options: stride (that of the window), padding (0), dilation (1).
---
---Errors: DC0101 for options; when it is called, as dc.max_pool2d.
---@class deepc.nn.MaxPool2d: deepc.nn.Layer
local MaxPool2d = nn.class "nn.MaxPool2d"
nn.MaxPool2d = MaxPool2d

---@param window integer|integer[] its height and width
---@param options? { stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[] }
function MaxPool2d:init(window, options)
  init_pool("nn.MaxPool2d", self, window, options, "dilation")
  self.dilation = pair("nn.MaxPool2d", "dilation", options and options.dilation or 1, 1)
end

function MaxPool2d:describe()
  return "nn.MaxPool2d " .. text_of(self.window)
end

function MaxPool2d:forward(x)
  local y = dc.max_pool2d(x, self.window,
    { stride = self.stride, padding = self.padding, dilation = self.dilation })
  return y
end

---The mean of each window: dc.avg_pool2d(x, window, options).
---
---    nn.AvgPool2d(2)
---
---Options: stride (that of the window), padding (0), count_padding (true: padding counts as zeros).
---
---Errors: DC0101 for options; when it is called, as dc.avg_pool2d.
---@class deepc.nn.AvgPool2d: deepc.nn.Layer
local AvgPool2d = nn.class "nn.AvgPool2d"
nn.AvgPool2d = AvgPool2d

---@param window integer|integer[] its height and width
---@param options? { stride?: integer|integer[], padding?: integer|integer[], count_padding?: boolean }
function AvgPool2d:init(window, options)
  init_pool("nn.AvgPool2d", self, window, options, "count_padding")
  self.count_padding = not options or options.count_padding ~= false
end

function AvgPool2d:describe()
  return "nn.AvgPool2d " .. text_of(self.window)
end

function AvgPool2d:forward(x)
  local y = dc.avg_pool2d(x, self.window,
    { stride = self.stride, padding = self.padding, count_padding = self.count_padding })
  return y
end

---Each channel brought to mean 0 and variance 1, then times weight plus bias, which are f32[channels]
---(Ioffe and Szegedy, 2015). While training by the mean and variance of the batch, which also move the
---states running_mean and running_var; in evaluation mode by those.
---
---    nn.BatchNorm2d(32)
---
---Options: momentum (0.1, how far a batch moves the running values), eps (1e-5), affine (true; false:
---no weight and no bias).
---
---Errors: DC0101 for options; when it is called, DC0301 where x is not [batch, channels, height, width].
---@class deepc.nn.BatchNorm2d: deepc.nn.Layer
local BatchNorm2d = nn.class "nn.BatchNorm2d"
nn.BatchNorm2d = BatchNorm2d

---@param channels integer
---@param options? { momentum?: number, eps?: number, affine?: boolean }
function BatchNorm2d:init(channels, options)
  local op = "nn.BatchNorm2d"
  core.check_size(op, "the number of channels", channels)
  core.options(op, options, "momentum", "eps", "affine")
  options = options or {}
  self.channels, self.momentum, self.eps = channels, options.momentum or 0.1, options.eps or 1e-5
  for _, name in ipairs { "momentum", "eps" } do
    local v = self[name]
    local most = name == "momentum" and 1 or math.maxinteger
    if type(v) ~= "number" or not (v >= 0 and v <= most) then
      core.fail("ARG", op, ("%s is a number from 0 %s, not %s"):format(name, most == 1 and "to 1" or "on",
        core.shown(v)))
    end
  end
  local t = ("f32[%d]"):format(channels)
  if core.unless_false(op, options, "affine") then
    self.weight = dc.param(t, dc.ones(t))
    self.bias = dc.param(t, dc.zeros(t))
  end
  self.running_mean = dc.state(t, dc.zeros(t))
  self.running_var = dc.state(t, dc.ones(t))
end

function BatchNorm2d:describe()
  return ("nn.BatchNorm2d %d"):format(self.channels)
end

-- Of x for each channel, as [1, channels, 1, 1]; the running values move.
local function of_batch(self, x)
  local axes = { axis = { 1, 3, 4 }, keep = true }
  local mean = x:mean(axes)
  local var = (x - mean):square():mean(axes)
  local n = x:size(1) * x:size(3) * x:size(4)
  local m = self.momentum
  local seen_mean, seen_var = dc.stop_gradient(mean):reshape(-1), dc.stop_gradient(var):reshape(-1)
  self.running_mean:set(self.running_mean * (1 - m) + seen_mean * m)
  local unbiased = core.is_size(n) and m * n:cast "f32" / dc.maximum((n - 1):cast "f32", 1) or
    m * n / math.max(n - 1, 1)
  self.running_var:set(self.running_var * (1 - m) + seen_var * unbiased)
  return mean, var
end

function BatchNorm2d:forward(x)
  local c = self.channels
  core.check_tensor("nn.BatchNorm2d", x)
  if #x.shape ~= 4 or x:size(2) ~= c then
    core.fail("DIMS", "nn.BatchNorm2d", ("x is %s[%s]; [batch, %d, height, width] is needed"):format(x.dtype,
      core.sizes(x.shape), c), nil, "x", x)
  end
  local mean, var
  if self.training then
    mean, var = of_batch(self, x)
  else
    mean, var = self.running_mean:reshape(1, c, 1, 1), self.running_var:reshape(1, c, 1, 1)
  end
  local scale = (var + self.eps):rsqrt()
  if self.weight then
    scale = scale * self.weight:reshape(1, c, 1, 1)
  end
  local y = (x - mean) * scale
  if self.bias then
    y = y + self.bias:reshape(1, c, 1, 1)
  end
  return y
end
