-- Numbers that parameters start with. Each function gives a tensor of a type; a cell stands for its type.

local dc = require "deepc"
local nn = require "deepc.nn.class"
local _, core = ...

-- ---- initial values ----

---Numbers that parameters start with: tensors for dc.param, or for a cell that is there already.
---Deterministic by `seed`, else by the generator (dc.seed).
---
---    local w = dc.param("f32[784, 128]", nn.init.kaiming_normal "f32[784, 128]")
---    local linear = nn.Linear(784, 128)
---    linear.weight:set(nn.init.xavier_uniform(linear.weight))
---@class deepc.nn.init
local init = {}
nn.init = init

-- The type as text, and its sizes.
local function read_type(op, target)
  if core.kind(target) then
    local shape = target.shape
    return ("%s[%s]"):format(target.dtype, table.concat(shape, ", ")), shape
  elseif type(target) ~= "string" then
    core.fail("ARG", op, "a type or a parameter is needed, not " .. core.describe(target))
  end
  return target, dc.zeros(target).shape
end

local function check_number(op, key, value)
  if type(value) ~= "number" or value ~= value then
    core.fail("ARG", op, ("%s is a number, not %s"):format(key, core.shown(value)))
  end
end

local function numbers(op, options, defaults)
  local list = {}
  for i, row in ipairs(defaults) do
    local key, value = row[1], options and options[row[1]]
    list[i] = value == nil and row[2] or value
    check_number(op, key, list[i])
  end
  return table.unpack(list)
end

---0 everywhere.
---
---    nn.init.zeros "f32[10]"
---@param type deepc.Type|deepc.Tensor
---@return deepc.Tensor
function init.zeros(type)
  local y = dc.zeros((read_type("zeros", type)))
  return y
end

---1 everywhere.
---
---    nn.init.ones "f32[10]"
---@param type deepc.Type|deepc.Tensor
---@return deepc.Tensor
function init.ones(type)
  local y = dc.ones((read_type("ones", type)))
  return y
end

---One value everywhere.
---
---    nn.init.constant("f32[10]", 0.1)
---@param type deepc.Type|deepc.Tensor
---@param value number
---@return deepc.Tensor
function init.constant(type, value)
  check_number("constant", "value", value)
  local y = dc.full((read_type("constant", type)), value)
  return y
end

---Uniform in [low, high).
---
---    nn.init.uniform("f32[784, 10]", { low = -0.1, high = 0.1 })
---
---Errors: DC0202 for a dtype that is no float, DC0101 for options.
---@param type deepc.Type|deepc.Tensor
---@param options? { low?: number, high?: number, seed?: integer } 0, 1
---@return deepc.Tensor
function init.uniform(type, options)
  core.options("uniform", options, "low", "high", "seed")
  local low, high = numbers("uniform", options, { { "low", 0 }, { "high", 1 } })
  local y = dc.rand(read_type("uniform", type), { low = low, high = high, seed = options and options.seed })
  return y
end

---Normal.
---
---    nn.init.normal("f32[784, 10]", { std = 0.02 })
---
---Errors: DC0202 for a dtype that is no float, DC0101 for options.
---@param type deepc.Type|deepc.Tensor
---@param options? { mean?: number, std?: number, seed?: integer } 0, 1
---@return deepc.Tensor
function init.normal(type, options)
  core.options("normal", options, "mean", "std", "seed")
  local mean, std = numbers("normal", options, { { "mean", 0 }, { "std", 1 } })
  local y = dc.randn(read_type("normal", type), { mean = mean, std = std, seed = options and options.seed })
  return y
end

-- ---- initial values by fan ----

-- How many inputs an output has, and how many outputs an input goes to. Weights of products are
-- [inputs, outputs], those of convolutions [outputs, inputs, window ...].
local function fans_of(op, type_text, shape)
  if #shape < 2 then
    core.fail("ARG", op, ("%s has no inputs and outputs; two axes are needed"):format(type_text))
  elseif #shape == 2 then
    return shape[1], shape[2]
  end
  local window = 1
  for i = 3, #shape do
    window = window * shape[i]
  end
  return shape[2] * window, shape[1] * window
end

local function gain_of(op, gain, slope)
  local named = { linear = 1, sigmoid = 1, tanh = 5 / 3, relu = 2 ^ 0.5, selu = 3 / 4,
    leaky_relu = (2 / (1 + slope ^ 2)) ^ 0.5 }
  if named[gain] then
    return named[gain]
  elseif type(gain) == "string" then
    core.fail("ARG", op, ("no gain for '%s'"):format(gain),
      "linear, sigmoid, tanh, relu, selu, leaky_relu, or a number")
  end
  check_number(op, "gain", gain)
  return gain
end

-- The standard deviation, and the type. mode is nil where both fans count.
local function std_of(op, target, options, gain, mode)
  core.options(op, options, "gain", "slope", "seed", table.unpack(mode and { "mode" } or {}))
  options = options or {}
  local type_text, shape = read_type(op, target)
  local fan_in, fan_out = fans_of(op, type_text, shape)
  gain = gain_of(op, options.gain or gain, numbers(op, options, { { "slope", mode and 0 or 0.01 } }))
  mode = options.mode or mode
  if mode and mode ~= "fan_in" and mode ~= "fan_out" then
    core.fail("ARG", op, ('mode is "fan_in" or "fan_out", not %s'):format(core.shown(mode)))
  end
  local fan = mode == "fan_in" and fan_in or mode == "fan_out" and fan_out or (fan_in + fan_out) / 2
  return gain / math.max(fan, 1) ^ 0.5, type_text, options.seed
end

local function uniform_of(std, type_text, seed)
  local bound = 3 ^ 0.5 * std
  return (dc.rand(type_text, { low = -bound, high = bound, seed = seed }))
end

local function normal_of(std, type_text, seed)
  return (dc.randn(type_text, { std = std, seed = seed }))
end

---What makes good for an activation: linear and sigmoid 1, tanh 5/3, relu sqrt(2), leaky_relu
---sqrt(2 / (1 + slope^2)), selu 3/4. slope is 0.01, for kaiming_uniform and kaiming_normal 0, as in PyTorch.
---@alias deepc.nn.Gain number|"linear"|"sigmoid"|"tanh"|"relu"|"leaky_relu"|"selu"

---Uniform with the variance gain^2 * 2 / (inputs + outputs): that of values and that of gradients stay
---about the same from layer to layer (Glorot and Bengio, 2010). Weights of products are [inputs, outputs],
---those of convolutions [outputs, inputs, window ...].
---
---    nn.init.xavier_uniform("f32[784, 128]", { gain = "tanh" })
---
---Errors: DC0101 for fewer than two axes, and for options.
---@param type deepc.Type|deepc.Tensor
---@param options? { gain?: deepc.nn.Gain, slope?: number, seed?: integer } gain is 1
---@return deepc.Tensor
function init.xavier_uniform(type, options)
  local y = uniform_of(std_of("xavier_uniform", type, options, 1))
  return y
end

---Normal with the variance of xavier_uniform.
---
---    nn.init.xavier_normal "f32[784, 128]"
---
---Errors: DC0101 for fewer than two axes, and for options.
---@param type deepc.Type|deepc.Tensor
---@param options? { gain?: deepc.nn.Gain, slope?: number, seed?: integer } gain is 1
---@return deepc.Tensor
function init.xavier_normal(type, options)
  local y = normal_of(std_of("xavier_normal", type, options, 1))
  return y
end

---Uniform with the variance gain^2 / inputs, or outputs: what a rectifier halves, the gain makes good (He
---et al., 2015).
---
---    nn.init.kaiming_uniform("f32[784, 128]", { mode = "fan_out" })
---
---Errors: DC0101 for fewer than two axes, and for options.
---@param type deepc.Type|deepc.Tensor
---@param options? { gain?: deepc.nn.Gain, slope?: number, mode?: string, seed?: integer } "relu"; "fan_in" or "fan_out"
---@return deepc.Tensor
function init.kaiming_uniform(type, options)
  local y = uniform_of(std_of("kaiming_uniform", type, options, "relu", "fan_in"))
  return y
end

---Normal with the variance of kaiming_uniform.
---
---    nn.init.kaiming_normal "f32[784, 128]"
---
---Errors: DC0101 for fewer than two axes, and for options.
---@param type deepc.Type|deepc.Tensor
---@param options? { gain?: deepc.nn.Gain, slope?: number, mode?: string, seed?: integer } "relu"; "fan_in" or "fan_out"
---@return deepc.Tensor
function init.kaiming_normal(type, options)
  local y = normal_of(std_of("kaiming_normal", type, options, "relu", "fan_in"))
  return y
end

---Rows (or columns, whichever are fewer) that are orthogonal and of length gain (Saxe, McClelland and
---Ganguli, 2014); axes from the second on count as one. It is the orthogonal factor of a normal matrix,
---found by Newton's iteration for the polar decomposition: products alone.
---
---    nn.init.orthogonal "f32[128, 128]"
---
---Errors: DC0101 for fewer than two axes, and for options.
---@param type deepc.Type|deepc.Tensor
---@param options? { gain?: deepc.nn.Gain, slope?: number, seed?: integer } gain is 1
---@return deepc.Tensor
function init.orthogonal(type, options)
  local op = "orthogonal"
  core.options(op, options, "gain", "slope", "seed")
  options = options or {}
  local type_text, shape = read_type(op, type)
  if #shape < 2 then
    core.fail("ARG", op, ("%s has no rows and columns; two axes are needed"):format(type_text))
  end
  local gain = gain_of(op, options.gain or 1, numbers(op, options, { { "slope", 0.01 } }))
  local dtype = type_text:match "^%s*(%w+)"
  if not core.is_float(dtype) then
    core.fail("DTYPE", op, type_text .. ": a float is needed")
  end
  local working = dtype == "f64" and dtype or "f32"
  local drawn = dc.randn(("%s[%s]"):format(working, table.concat(shape, ", ")), { seed = options.seed })
  local x = drawn:reshape(shape[1], -1)
  local rows, columns = x.shape[1], x.shape[2]
  if rows > columns then
    x = x:transpose()
  end
  -- singular values are below sqrt(rows) + sqrt(columns), or hardly above; the iteration takes those
  -- below sqrt(3), and small ones grow by half in each step
  x = x * (1 / (rows ^ 0.5 + columns ^ 0.5))
  for _ = 1, 48 do
    x = x * 1.5 - x:matmul(x:transpose()):matmul(x) * 0.5
  end
  x = rows > columns and x:transpose() or x
  local y = (x:reshape(shape) * gain):cast(dtype)
  return y
end

core.module("deepc.nn.init", init)
