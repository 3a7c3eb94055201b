-- Layers for vectors, and layers one after the other.

local dc = require "deepc"
local nn = require "deepc.nn.class"
local _, core = ...

-- ---- layers ----

---x:matmul(weight) + bias; weight is f32[inputs, outputs]. Both start uniform in
---[-1/sqrt(inputs), 1/sqrt(inputs)).
---
---    nn.Linear(784, 10)
---
---Errors: DC0101 for a size; when it is called, as x:matmul.
---@class deepc.nn.Linear: deepc.nn.Layer
local Linear = nn.class "nn.Linear"
nn.Linear = Linear

---@param inputs integer the size of the last axis of x
---@param outputs integer
---@param options? { bias?: boolean } true
function Linear:init(inputs, outputs, options)
  core.check_size("nn.Linear", "the number of inputs", inputs)
  core.check_size("nn.Linear", "the number of outputs", outputs)
  core.options("nn.Linear", options, "bias")
  local bound = inputs ^ -0.5
  local function uniform(type_text)
    return dc.param(type_text, dc.rand(type_text, { low = -bound, high = bound }))
  end
  self.inputs, self.outputs = inputs, outputs
  self.weight = uniform(("f32[%d, %d]"):format(inputs, outputs))
  core.is_linear[self.weight] = true
  if core.unless_false("nn.Linear", options, "bias") then
    self.bias = uniform(("f32[%d]"):format(outputs))
  end
end

function Linear:describe()
  return ("nn.Linear %d -> %d"):format(self.inputs, self.outputs)
end

function Linear:forward(x)
  local y = dc.matmul(x, self.weight)
  if self.bias then
    y = y + self.bias
  end
  return y
end

---All axes from the second (or `from`) on become one.
---
---    nn.Flatten()
---
---Errors: DC0103 for the axis, when it is called.
---@class deepc.nn.Flatten: deepc.nn.Layer
local Flatten = nn.class "nn.Flatten"
nn.Flatten = Flatten

---@param from? integer 2
function Flatten:init(from)
  self.from = from or 2
end

function Flatten:forward(x)
  core.check_tensor("nn.Flatten", x)
  local y = x:flatten(self.from)
  return y
end

-- Each element 0 with probability p, the others times 1 / (1 - p).
function core.drop(x, p)
  local narrow, wide = core.in_f32(x)
  local drawn = dc.rand(wide.dtype == "f32" and wide or wide:cast "f32")
  return narrow(dc.where(drawn:ge(p), wide * (1 / (1 - p)), 0))
end

---While training, sets each element to 0 with probability p and multiplies the others by 1 / (1 - p), so
---that the expected value stays (Srivastava et al., 2014); in evaluation mode x itself. Draws from the
---generator, anew at each call of a typed function.
---
---    nn.Dropout(0.5)
---
---Errors: DC0101 for p.
---@class deepc.nn.Dropout: deepc.nn.Layer
local Dropout = nn.class "nn.Dropout"
nn.Dropout = Dropout

---@param p? number 0.5, from 0 to below 1
function Dropout:init(p)
  p = p or 0.5
  if type(p) ~= "number" or not (p >= 0 and p < 1) then
    core.fail("ARG", "nn.Dropout", ("p is a number from 0 to below 1, not %s"):format(core.shown(p)))
  end
  self.p = p
end

function Dropout:describe()
  return "nn.Dropout " .. core.number("%g", self.p)
end

function Dropout:forward(x)
  core.check_tensor("nn.Dropout", x)
  if not x.dtype:match "^b?f%d" then
    core.fail("DTYPE", "nn.Dropout", ("x is %s[%s]; floats are needed"):format(x.dtype, core.sizes(x.shape)),
      ':cast "f32" converts', "x", x)
  end
  if not self.training or self.p == 0 then
    return x
  end
  local y = core.drop(x, self.p)
  return y
end

---A row of a table for each integer: f32[..., size] for integers[...]. The table starts normal, with a
---standard deviation of 1.
---
---    nn.Embedding(1000, 64)
---
---Errors: DC0701 for an integer outside 0..count-1, at run time.
---@class deepc.nn.Embedding: deepc.nn.Layer
local Embedding = nn.class "nn.Embedding"
nn.Embedding = Embedding

---@param count integer how many rows there are; integers count from 0
---@param size integer of a row
function Embedding:init(count, size)
  core.check_size("nn.Embedding", "the number of rows", count)
  core.check_size("nn.Embedding", "the size of a row", size)
  self.count, self.size = count, size
  local type_text = ("f32[%d, %d]"):format(count, size)
  self.weight = dc.param(type_text, dc.randn(type_text))
  core.is_linear[self.weight] = false
end

function Embedding:describe()
  return ("nn.Embedding %d -> %d"):format(self.count, self.size)
end

function Embedding:forward(positions)
  local y = dc.take(self.weight, positions, 1)
  return y
end

---Layers (or functions) one after the other.
---
---    nn.Sequential { nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10) }
---
---Errors: DC0101 for a part that is no layer and no function.
---@class deepc.nn.Sequential: deepc.nn.Layer
local Sequential = nn.class "nn.Sequential"
nn.Sequential = Sequential

---@param list (deepc.nn.Layer|function)[]
function Sequential:init(list)
  if type(list) ~= "table" or core.is_layer(list) then
    core.fail("ARG", "nn.Sequential", "a list of layers is needed", "nn.Sequential { nn.ReLU() }")
  end
  local count = 0
  for key in pairs(list) do
    count = count + 1
    if math.type(key) ~= "integer" then
      core.fail("ARG", "nn.Sequential", ("part '%s' has a name; parts are in order"):format(tostring(key)))
    end
  end
  for i = 1, math.max(count, #list) do
    local layer = list[i]
    if type(layer) == "table" and rawget(layer, "_is_layer") then
      core.fail("ARG", "nn.Sequential", ("part %d is the class %s, not a layer"):format(i, layer.__name),
        layer.__name .. "(...) makes one")
    elseif not core.is_layer(layer) and type(layer) ~= "function" then
      core.fail("ARG", "nn.Sequential", ("part %d is %s, not a layer"):format(i,
        layer == nil and "nil" or "a " .. type(layer)))
    end
    self[i] = layer
  end
end

function Sequential:forward(x)
  for i = 1, #self do
    x = self[i](x)
    if x == nil then
      core.fail("ARG", nil, ("part %d, %s, returned nothing"):format(i,
        core.is_layer(self[i]) and self[i]:describe() or "a function"), "return the tensor it computes")
    end
  end
  return x
end
