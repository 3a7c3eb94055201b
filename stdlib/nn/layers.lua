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

---y[o] = sum of x1[i] weight[o, i, j] x2[j] + bias[o] over the last axes of two arguments; weight is
---f32[outputs, inputs1, inputs2]. Both start uniform in [-1/sqrt(inputs1), 1/sqrt(inputs1)).
---
---    nn.Bilinear(16, 8, 4)(dc.ones "f32[2, 16]", dc.ones "f32[2, 8]")
---
---Errors: DC0101 for a size; when it is called, DC0301 where sizes differ.
---@class deepc.nn.Bilinear: deepc.nn.Layer
local Bilinear = nn.class "nn.Bilinear"
nn.Bilinear = Bilinear

---@param inputs1 integer the size of the last axis of x1
---@param inputs2 integer the size of the last axis of x2
---@param outputs integer
---@param options? { bias?: boolean } true
function Bilinear:init(inputs1, inputs2, outputs, options)
  core.check_size("nn.Bilinear", "the number of inputs", inputs1)
  core.check_size("nn.Bilinear", "the number of inputs", inputs2)
  core.check_size("nn.Bilinear", "the number of outputs", outputs)
  core.options("nn.Bilinear", options, "bias")
  local bound = inputs1 ^ -0.5
  local function uniform(type_text)
    return dc.param(type_text, dc.rand(type_text, { low = -bound, high = bound }))
  end
  self.inputs1, self.inputs2, self.outputs = inputs1, inputs2, outputs
  self.weight = uniform(("f32[%d, %d, %d]"):format(outputs, inputs1, inputs2))
  if core.unless_false("nn.Bilinear", options, "bias") then
    self.bias = uniform(("f32[%d]"):format(outputs))
  end
end

function Bilinear:describe()
  return ("nn.Bilinear %d, %d -> %d"):format(self.inputs1, self.inputs2, self.outputs)
end

function Bilinear:forward(x1, x2)
  core.check_tensor("nn.Bilinear", x1, "x1")
  core.check_tensor("nn.Bilinear", x2, "x2")
  local y = dc.einsum("... i, o i j, ... j -> ... o", x1, self.weight, x2)
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
  if from == 1 then
    core.note "nn.Flatten(1) makes one axis of all, the batch too: axes count from 1, nn.Flatten() leaves the batch"
  end
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
  core.check_probability("nn.Dropout", "p", p)
  self.p = p
end

function Dropout:describe()
  return "nn.Dropout " .. core.number("%g", self.p)
end

function Dropout:forward(x)
  core.check_tensor("nn.Dropout", x)
  if not core.is_float(x.dtype) then
    core.fail("DTYPE", "nn.Dropout", ("x is %s[%s]; floats are needed"):format(x.dtype, core.sizes(x.shape)),
      ':cast "f32" converts', "x", x)
  end
  if not self.training or self.p == 0 then
    return x
  end
  local y = core.drop(x, self.p)
  return y
end

-- A row that is zeros and is not trained: from 0, or from the end where it is negative. Nil for none.
function core.padding_index(op, index, count)
  if index == nil then
    return nil
  elseif math.type(index) ~= "integer" or index < -count or index >= count then
    core.fail("ARG", op, ("padding_idx is %s; rows are 0 to %d"):format(core.shown(index), count - 1))
  end
  return index % count
end

-- The table of an embedding.
function core.embedding_weight(count, size, padding)
  local type_text = ("f32[%d, %d]"):format(count, size)
  local start = dc.randn(type_text)
  if padding then
    start = dc.where(dc.iota(count):reshape(-1, 1):eq(padding), 0, start)
  end
  local weight = dc.param(type_text, start)
  core.is_linear[weight] = false
  return weight
end

---A row of a table for each integer: f32[..., size] for integers[...]. The table starts normal, with a
---standard deviation of 1.
---
---    nn.Embedding(1000, 64, { padding_idx = 0 })
---
---Options: padding_idx, a row, from 0, that starts with zeros and is not trained.
---
---Errors: DC0701 for an integer outside 0..count-1, at run time.
---@class deepc.nn.Embedding: deepc.nn.Layer
local Embedding = nn.class "nn.Embedding"
nn.Embedding = Embedding

---@param count integer how many rows there are; integers count from 0
---@param size integer of a row
---@param options? { padding_idx?: integer }
function Embedding:init(count, size, options)
  core.check_size("nn.Embedding", "the number of rows", count)
  core.check_size("nn.Embedding", "the size of a row", size)
  core.options("nn.Embedding", options, "padding_idx")
  self.count, self.size = count, size
  self.padding_idx = core.padding_index("nn.Embedding", options and options.padding_idx, count)
  self.weight = core.embedding_weight(count, size, self.padding_idx)
end

function Embedding:describe()
  return ("nn.Embedding %d -> %d"):format(self.count, self.size)
end

function Embedding:forward(positions)
  local y = dc.take(self.weight, positions, 1)
  if self.padding_idx then
    local sizes = positions.shape
    sizes[#sizes + 1] = 1
    y = dc.where(positions:reshape(sizes):ne(self.padding_idx), y, dc.stop_gradient(y))
  end
  return y
end

---Layers, or functions, typed ones too, one after the other. A function is a layer without parameters: those that it
---captured are not in net:parameters().
---
---    nn.Sequential { nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10) }
---
---Errors: DC0101 for a part that is no layer and no function.
---@class deepc.nn.Sequential: deepc.nn.Layer
local Sequential = nn.class "nn.Sequential"
nn.Sequential = Sequential

---@param list (deepc.nn.Layer|function|deepc.Function)[]
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
    elseif not core.control_callable(layer) then
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
