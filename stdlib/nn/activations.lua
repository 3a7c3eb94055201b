-- Functions of each element, or of the elements along one axis, as layers. Most are methods of tensors;
-- those that have a parameter of their own are functions here.

local dc = require "deepc"
local nn = require "deepc.nn.class"
local _, core = ...

-- ---- activations ----

local function check_number(op, what, value)
  if type(value) ~= "number" or value ~= value then
    core.fail("ARG", op, ("%s is a number, not %s"):format(what, core.shown(value)))
  end
end

-- x where it is not above 0, else 0: what is taken of it there does not overflow. The derivative at 0 is 1.
function core.not_above_zero(x)
  return dc.where(x:gt(0), 0, x)
end

---x where it is above 0, slope * x elsewhere (Maas, Hannun and Ng, 2013).
---
---    nn.leaky_relu(dc.tensor { -1, 2 }, 0.1)
---@param x deepc.Tensor floats
---@param slope? number 0.01
---@return deepc.Tensor
function nn.leaky_relu(x, slope)
  slope = slope or 0.01
  core.check_tensor("leaky_relu", x)
  check_number("leaky_relu", "slope", slope)
  local narrow, wide = core.in_f32(x)
  local y = narrow(dc.where(wide:gt(0), wide, wide * slope))
  return y
end

---x where it is above 0, alpha (exp(x) - 1) elsewhere (Clevert, Unterthiner and Hochreiter, 2016).
---
---    nn.elu(dc.tensor { -1, 2 })
---@param x deepc.Tensor floats
---@param alpha? number 1
---@return deepc.Tensor
function nn.elu(x, alpha)
  alpha = alpha or 1
  core.check_tensor("elu", x)
  check_number("elu", "alpha", alpha)
  local narrow, wide = core.in_f32(x)
  local y = narrow(dc.where(wide:gt(0), wide, core.not_above_zero(wide):expm1() * alpha))
  return y
end

-- A class whose layers are f(x).
local function element_wise(name, f)
  local class = nn.class(name)
  function class:forward(x) -- luacheck: ignore self
    local y = f(x)
    return y
  end
  return class
end

---The larger of x and 0.
---
---    nn.ReLU()
---@class deepc.nn.ReLU: deepc.nn.Layer
nn.ReLU = element_wise("nn.ReLU", dc.relu)

---x * sigmoid(x).
---
---    nn.SiLU()
---@class deepc.nn.SiLU: deepc.nn.Layer
nn.SiLU = element_wise("nn.SiLU", dc.silu)

---The hyperbolic tangent.
---
---    nn.Tanh()
---@class deepc.nn.Tanh: deepc.nn.Layer
nn.Tanh = element_wise("nn.Tanh", dc.tanh)

---1 / (1 + exp(-x)).
---
---    nn.Sigmoid()
---@class deepc.nn.Sigmoid: deepc.nn.Layer
nn.Sigmoid = element_wise("nn.Sigmoid", dc.sigmoid)

---x itself.
---
---    nn.Identity()
---@class deepc.nn.Identity: deepc.nn.Layer
nn.Identity = element_wise("nn.Identity", function(x) return x end)

---x times the normal distribution function of x (Hendrycks and Gimpel, 2016); or, faster, with tanh in its
---place.
---
---    nn.GELU { approximate = "tanh" }
---@class deepc.nn.GELU: deepc.nn.Layer
local GELU = nn.class "nn.GELU"
nn.GELU = GELU

---@param options? { approximate?: "tanh"|"none" } "none"
function GELU:init(options)
  core.options("nn.GELU", options, "approximate")
  local approximate = options and options.approximate or "none"
  if approximate ~= "tanh" and approximate ~= "none" then
    core.fail("ARG", "nn.GELU", ('approximate is "tanh" or "none", not %s'):format(core.shown(approximate)))
  end
  self.approximate = approximate
end

function GELU:describe()
  return "nn.GELU" .. (self.approximate == "tanh" and " tanh" or "")
end

function GELU:forward(x)
  local y = dc.gelu(x, { approximate = self.approximate })
  return y
end

---nn.leaky_relu.
---
---    nn.LeakyReLU(0.1)
---@class deepc.nn.LeakyReLU: deepc.nn.Layer
local LeakyReLU = nn.class "nn.LeakyReLU"
nn.LeakyReLU = LeakyReLU

---@param slope? number 0.01
function LeakyReLU:init(slope)
  self.slope = slope or 0.01
  check_number("nn.LeakyReLU", "slope", self.slope)
end

function LeakyReLU:describe()
  return "nn.LeakyReLU " .. core.number("%g", self.slope)
end

function LeakyReLU:forward(x)
  local y = nn.leaky_relu(x, self.slope)
  return y
end

---nn.elu.
---
---    nn.ELU()
---@class deepc.nn.ELU: deepc.nn.Layer
local ELU = nn.class "nn.ELU"
nn.ELU = ELU

---@param alpha? number 1
function ELU:init(alpha)
  self.alpha = alpha or 1
  check_number("nn.ELU", "alpha", self.alpha)
end

function ELU:describe()
  return "nn.ELU " .. core.number("%g", self.alpha)
end

function ELU:forward(x)
  local y = nn.elu(x, self.alpha)
  return y
end

-- A class whose layers are f(x, axis).
local function along_axis(class, f)
  function class:init(axis)
    self.axis = axis or -1
    if math.type(self.axis) ~= "integer" and type(self.axis) ~= "string" then
      core.fail("ARG", class.__name, ("an axis is an integer or a name, not %s"):format(core.shown(axis)))
    end
  end

  function class:describe()
    return ("%s %s"):format(class.__name, self.axis)
  end

  function class:forward(x)
    local y = f(x, self.axis)
    core.softmax_of = class.__name == "nn.Softmax" and setmetatable({ y }, { __mode = "v" }) or core.softmax_of
    return y
  end
end
core.along_axis = along_axis

---exp(x) divided by its sum along an axis, the last one. nn.cross_entropy takes what comes before it.
---
---    nn.Softmax()
---@class deepc.nn.Softmax: deepc.nn.Layer
---@overload fun(axis?: deepc.Axis): deepc.nn.Softmax
local Softmax = nn.class "nn.Softmax"
nn.Softmax = Softmax
along_axis(Softmax, dc.softmax)

---The logarithm of softmax along an axis, the last one.
---
---    nn.LogSoftmax()
---@class deepc.nn.LogSoftmax: deepc.nn.Layer
---@overload fun(axis?: deepc.Axis): deepc.nn.LogSoftmax
local LogSoftmax = nn.class "nn.LogSoftmax"
nn.LogSoftmax = LogSoftmax
along_axis(LogSoftmax, dc.log_softmax)
