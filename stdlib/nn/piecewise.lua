-- Activations that are straight lines, or parabolas, in pieces. Where a derivative jumps it is PyTorch's; NaN stays.

local dc = require "deepc"
local nn = require "deepc.nn.class"
local _, core = ...

-- ---- activations in pieces ----

local function check_number(op, what, value)
  if type(value) ~= "number" or value ~= value then
    core.fail("ARG", op, ("%s is a number, not %s"):format(what, core.shown(value)))
  end
end
core.check_number = check_number

-- A class whose layers are f(x, numbers...): fields are rows { name, default }, at most two.
function core.activation_class(name, f, fields)
  local class = nn.class(name)
  fields = fields or {}
  local function start(self, ...)
    for i, field in ipairs(fields) do
      local value = select(i, ...)
      self[field[1]] = value == nil and field[2] or value
      check_number(name, field[1], self[field[1]])
    end
  end
  if #fields == 1 then
    function class:init(a) start(self, a) end
  elseif #fields == 2 then
    function class:init(a, b) start(self, a, b) end
  end

  function class:describe()
    local list = {}
    for i, field in ipairs(fields) do
      list[i] = core.number("%g", self[field[1]])
    end
    return #list > 0 and ("%s %s"):format(name, table.concat(list, ", ")) or name
  end

  function class:forward(x)
    local a, b = fields[1] and self[fields[1][1]], fields[2] and self[fields[2][1]]
    local y = f(x, a or nil, b or nil)
    return y
  end
  return class
end

-- x between low and high, those beyond; the derivative is 0 at both ends.
local function between(x, low, high)
  return dc.where(x:le(low), low, dc.where(x:ge(high), high, x))
end

---x between 0 and 6, those beyond (Krizhevsky, 2010). torch.nn.functional.relu6.
---
---    nn.relu6(dc.tensor { -1, 2, 7 })
---@param x deepc.Tensor
---@return deepc.Tensor
function nn.relu6(x)
  core.check_tensor("relu6", x)
  local y = between(x, 0, 6)
  return y
end

---x between low and high, those beyond; the derivative is 0 at both. torch.nn.functional.hardtanh.
---
---    nn.hardtanh(dc.tensor { -3, 0.5, 7 })
---
---Errors: DC0101 where low is not below high.
---@param x deepc.Tensor
---@param low? number -1
---@param high? number 1
---@return deepc.Tensor
function nn.hardtanh(x, low, high)
  local op = "hardtanh"
  low, high = low or -1, high or 1
  core.check_tensor(op, x)
  check_number(op, "low", low)
  check_number(op, "high", high)
  if low >= high then
    core.fail("ARG", op, ("low is %s, high %s; low is the smaller one"):format(low, high))
  end
  local y = between(x, low, high)
  return y
end

---0 up to -3, 1 from 3 on, (x + 3) / 6 between (Courbariaux et al., 2015). torch.nn.functional.hardsigmoid.
---
---    nn.hardsigmoid(dc.tensor { -4, 0, 2 })
---@param x deepc.Tensor floats
---@return deepc.Tensor
function nn.hardsigmoid(x)
  core.check_tensor("hardsigmoid", x)
  local narrow, wide = core.in_f32(x)
  local y = narrow(dc.where(wide:le(-3), 0, dc.where(wide:ge(3), 1, wide * (1 / 6) + 0.5)))
  return y
end

---x times nn.hardsigmoid(x) (Howard et al., 2019). torch.nn.functional.hardswish.
---
---    nn.hardswish(dc.tensor { -4, 1, 4 })
---@param x deepc.Tensor floats
---@return deepc.Tensor
function nn.hardswish(x)
  core.check_tensor("hardswish", x)
  local narrow, wide = core.in_f32(x)
  local inside = wide * (wide * (1 / 6) + 0.5)
  local y = narrow(dc.where(wide:le(-3), 0, dc.where(wide:ge(3), wide, inside)))
  return y
end

---x farther than lambda from 0, moved towards 0 by lambda; 0 nearer (Donoho, 1995). torch.nn.functional.softshrink.
---
---    nn.softshrink(dc.tensor { -1, 0.2, 2 })
---
---Errors: DC0101 for a lambda below 0.
---@param x deepc.Tensor floats
---@param lambda? number 0.5
---@return deepc.Tensor
function nn.softshrink(x, lambda)
  local op = "softshrink"
  lambda = lambda or 0.5
  core.check_tensor(op, x)
  check_number(op, "lambda", lambda)
  if lambda < 0 then
    core.fail("ARG", op, ("lambda is a number from 0, not %s"):format(lambda))
  end
  local narrow, wide = core.in_f32(x)
  local y = narrow(dc.where(wide:gt(lambda), wide - lambda, dc.where(wide:lt(-lambda), wide + lambda, wide * 0)))
  return y
end

---x farther than lambda from 0; 0 nearer. torch.nn.functional.hardshrink.
---
---    nn.hardshrink(dc.tensor { -1, 0.2, 2 })
---@param x deepc.Tensor
---@param lambda? number 0.5
---@return deepc.Tensor
function nn.hardshrink(x, lambda)
  lambda = lambda or 0.5
  core.check_tensor("hardshrink", x)
  check_number("hardshrink", "lambda", lambda)
  local y = dc.where(x:ge(-lambda) & x:le(lambda), 0, x)
  return y
end

---x above a threshold; a value in its place elsewhere. torch.nn.functional.threshold.
---
---    nn.threshold(dc.tensor { -1, 0.2, 2 }, 0.1, 20)
---@param x deepc.Tensor
---@param threshold number
---@param value number
---@return deepc.Tensor
function nn.threshold(x, threshold, value)
  core.check_tensor("threshold", x)
  check_number("threshold", "threshold", threshold)
  check_number("threshold", "value", value)
  local y = dc.where(x:le(threshold), value, x)
  return y
end

---The larger of x and 0, no more than 6: nn.relu6.
---
---    nn.ReLU6()
---@class deepc.nn.ReLU6: deepc.nn.Layer
nn.ReLU6 = core.activation_class("nn.ReLU6", nn.relu6)

---nn.hardtanh.
---
---    nn.Hardtanh(-2, 2)
---@class deepc.nn.Hardtanh: deepc.nn.Layer
---@overload fun(low?: number, high?: number): deepc.nn.Hardtanh
nn.Hardtanh = core.activation_class("nn.Hardtanh", nn.hardtanh, { { "low", -1 }, { "high", 1 } })

---nn.hardsigmoid.
---
---    nn.Hardsigmoid()
---@class deepc.nn.Hardsigmoid: deepc.nn.Layer
nn.Hardsigmoid = core.activation_class("nn.Hardsigmoid", nn.hardsigmoid)

---nn.hardswish.
---
---    nn.Hardswish()
---@class deepc.nn.Hardswish: deepc.nn.Layer
nn.Hardswish = core.activation_class("nn.Hardswish", nn.hardswish)

---nn.softshrink.
---
---    nn.Softshrink(0.5)
---@class deepc.nn.Softshrink: deepc.nn.Layer
---@overload fun(lambda?: number): deepc.nn.Softshrink
nn.Softshrink = core.activation_class("nn.Softshrink", nn.softshrink, { { "lambda", 0.5 } })

---nn.hardshrink.
---
---    nn.Hardshrink(0.5)
---@class deepc.nn.Hardshrink: deepc.nn.Layer
---@overload fun(lambda?: number): deepc.nn.Hardshrink
nn.Hardshrink = core.activation_class("nn.Hardshrink", nn.hardshrink, { { "lambda", 0.5 } })

---nn.threshold.
---
---    nn.Threshold(0.1, 20)
---@class deepc.nn.Threshold: deepc.nn.Layer
---@overload fun(threshold: number, value: number): deepc.nn.Threshold
nn.Threshold = core.activation_class("nn.Threshold", nn.threshold, { { "threshold" }, { "value" } })

-- ---- slopes that are trained or drawn ----

---x where it is above 0, weight * x elsewhere (He et al., 2015). The weight has one number, or one for each channel,
---which are axis 2 of x; a vector is its own channels. torch.nn.functional.prelu.
---
---    nn.prelu(dc.tensor { { -1, 2 } }, dc.tensor { 0.1, 0.5 })
---
---Errors: DC0301 where the weight has neither one number nor one for each channel.
---@param x deepc.Tensor floats
---@param weight deepc.Tensor of the dtype of x
---@return deepc.Tensor
function nn.prelu(x, weight)
  local op = "prelu"
  core.check_tensor(op, x, "x")
  core.check_tensor(op, weight, "weight")
  local shape, count = x.shape, weight:reshape(-1).shape[1]
  local axis = math.min(2, #shape)
  if count ~= 1 and (axis == 0 or count ~= shape[axis]) then
    core.fail("DIMS", op, ("the weight has %d numbers, x is %s[%s]; one is needed, or one for each channel of axis %d")
      :format(count, x.dtype, core.sizes(shape), math.max(axis, 1)), nil, "x", x, "weight", weight)
  end
  local sizes = { count }
  for i = axis + 1, count > 1 and #shape or 0 do
    sizes[1 + i - axis] = 1
  end
  local narrow, wide, slope = core.in_f32(x, weight:reshape(count == 1 and {} or sizes))
  local y = narrow(dc.where(wide:gt(0), wide, wide * slope))
  return y
end

---nn.prelu with slopes that are trained, f32[count], of one number for all channels or one for each.
---
---    nn.PReLU(16)
---
---Errors: DC0101 for the count; when it is called, as nn.prelu.
---@class deepc.nn.PReLU: deepc.nn.Layer
local PReLU = nn.class "nn.PReLU"
nn.PReLU = PReLU

---@param count? integer of channels, axis 2 of x; 1: one slope for all
---@param options? { init?: number } what slopes start with, 0.25
function PReLU:init(count, options)
  core.check_size("nn.PReLU", "the number of channels", count or 1)
  core.options("nn.PReLU", options, "init")
  local start = options and options.init or 0.25
  check_number("nn.PReLU", "init", start)
  local type_text = ("f32[%d]"):format(count or 1)
  self.weight = dc.param(type_text, dc.full(type_text, start))
end

function PReLU:describe()
  return ("nn.PReLU %d"):format(#self.weight)
end

function PReLU:forward(x)
  local y = nn.prelu(x, self.weight)
  return y
end

---x where it is above 0; elsewhere x times a slope, which is drawn for each element between low and high while
---training and is their mean in evaluation mode (Xu et al., 2015).
---
---    nn.RReLU(0.1, 0.3)
---
---Errors: DC0101 where low is above high.
---@class deepc.nn.RReLU: deepc.nn.Layer
local RReLU = nn.class "nn.RReLU"
nn.RReLU = RReLU

---@param low? number 1/8
---@param high? number 1/3
function RReLU:init(low, high)
  self.low, self.high = low or 1 / 8, high or 1 / 3
  check_number("nn.RReLU", "low", self.low)
  check_number("nn.RReLU", "high", self.high)
  if self.low > self.high then
    core.fail("ARG", "nn.RReLU", ("low is %s, high %s; low is the smaller one"):format(self.low, self.high))
  end
end

function RReLU:describe()
  return ("nn.RReLU %s, %s"):format(core.number("%g", self.low), core.number("%g", self.high))
end

function RReLU:forward(x)
  core.check_tensor("nn.RReLU", x)
  local narrow, wide = core.in_f32(x)
  local slope = (self.low + self.high) / 2
  if self.training then
    slope = dc.rand(wide) * (self.high - self.low) + self.low
  end
  local y = narrow(dc.where(wide:gt(0), wide, wide * slope))
  return y
end
