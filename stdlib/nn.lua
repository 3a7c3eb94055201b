-- Layers and losses. A layer is a table with a class; calling it calls its :forward and tells errors
-- where they happened ("net.2 (nn.Linear 784 -> 10)").
--
-- A layer's parameters are its fields: cells, other layers, plain tables of these. They are listed by
-- path, integer keys as numbers before names; each cell once, under its first path.

local dc = require "deepc"
local _, core = ...

---Layers and losses.
---
---    local nn = require "deepc.nn"
---    local net = nn.Sequential { nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10) }
---@class deepc.nn
local nn = {}

---A table of parameters, states and other layers. Calling it calls its :forward and tells errors where
---they happened: "net.2 (nn.Linear 784 -> 10)".
---@class deepc.nn.Layer
---@overload fun(...): ...
local Layer = {}

-- A layer keeps its fields in a table of their own (_own), so that every assignment reaches
-- __newindex: another part or another setting is another structure, and with it another specialisation
-- of the typed functions that call the layer. What they compare is one static value (_state): structure,
-- mode, frozen or not.

-- ---- paths ----

local function is_layer(v)
  local mt = type(v) == "table" and getmetatable(v)
  return mt and mt._is_layer == true
end

local function before(a, b)
  if type(a) ~= type(b) then
    return type(a) == "number"
  end
  return a < b
end

local function own(layer)
  return rawget(layer, "_own")
end

-- The fields of a layer, or a plain table itself.
local function fields_of(t)
  return is_layer(t) and own(t) or t
end

-- The keys under which parts may stand, in order.
local function part_keys(t)
  local keys = {}
  for k, v in next, t do
    local named = type(k) == "string" and k:sub(1, 1) ~= "_" or math.type(k) == "integer"
    if named and (type(v) == "table" or type(v) == "userdata") then
      keys[#keys + 1] = k
    end
  end
  table.sort(keys, before)
  return keys
end

-- Calls see(part, path) for the layers and cells below t, each once.
local function walk(t, path, see, seen)
  t = fields_of(t)
  for _, key in ipairs(part_keys(t)) do
    local part, at = rawget(t, key), path .. "." .. key
    local kind = core.kind(part)
    if not seen[part] and (kind == "param" or kind == "state") then
      seen[part] = true
      see(part, at)
    elseif not seen[part] and type(part) == "table" and (is_layer(part) or not getmetatable(part)) then
      seen[part] = true
      if is_layer(part) then
        see(part, at)
      end
      walk(part, at, see, seen)
    end
  end
end

local function short_name(layer)
  return (getmetatable(layer).__name:gsub("^.*%.", ""))
end

-- Gives the layer and everything below it the path that errors show; the first one stays.
local function assign_paths(layer, root)
  rawset(layer, "_path", root)
  walk(layer, root, function(part, path)
    if is_layer(part) then
      rawset(part, "_path", rawget(part, "_path") or path)
    elseif not core.label(part) then
      core.label(part, path)
    end
  end, { [layer] = true })
end

local function path_of(layer)
  local path = rawget(layer, "_path")
  if not path then
    path = core.name_of(layer) or short_name(layer)
    assign_paths(layer, path)
  end
  return path
end

-- ---- structure and mode ----

local function mode_of(layer)
  return ("%s%s, structure %d"):format(rawget(layer, "_eval") and "eval" or "train",
    rawget(layer, "_frozen") and ", frozen" or "", rawget(layer, "_structure") or 1)
end

-- The state has changed: whoever compares it is told.
local function tell(layer)
  local state = rawget(layer, "_state")
  if state then
    state.value = mode_of(layer)
  end
end

-- A typed function that is being traced depends on the layer as it is.
local function depend(layer)
  local state = rawget(layer, "_state")
  if not state then
    state = core.static(mode_of(layer), path_of(layer))
    rawset(layer, "_state", state)
  end
  for key, v in next, own(layer) do
    if type(v) == "table" and not getmetatable(v) then
      core.watch(v, ("%s.%s"):format(path_of(layer), tostring(key)))
    end
  end
  return state.value
end

local function text_of(layer)
  if core.tracing() then
    depend(layer)
  end
  return ("%s (%s)"):format(path_of(layer), layer:describe())
end

local function assign(layer, key, value)
  local fields = own(layer)
  if type(key) == "string" and key:sub(1, 1) == "_" then
    rawset(layer, key, value)
    return
  end
  local changed = not rawequal(fields[key], value)
  fields[key] = value
  if changed and rawget(layer, "_state") and not core.tracing() then
    rawset(layer, "_structure", (rawget(layer, "_structure") or 1) + 1)
    tell(layer)
    assign_paths(layer, path_of(layer))
  end
end

-- Calls set(layer) for it and every layer below.
local function each_layer(layer, set)
  set(layer)
  walk(layer, "", function(part)
    if is_layer(part) then
      set(part)
    end
  end, { [layer] = true })
  return layer
end

local function refuse_inside(layer, what)
  if core.tracing() then
    core.fail("ASSIGNED", nil, ("%s is called for %s while a typed function is traced, which happens once")
      :format(what, path_of(layer)), "call it outside, before the function")
  end
end

-- ---- classes ----

---What stands for the layer in errors: "nn.Linear 784 -> 10".
---@return string
function Layer:describe()
  return getmetatable(self).__name
end

---The cells that are trained, in the order of their paths.
---@return deepc.Cell[]
function Layer:parameters()
  local list, root = {}, path_of(self)
  assign_paths(self, root)
  walk(self, root, function(part)
    if core.kind(part) == "param" then
      list[#list + 1] = part
    end
  end, { [self] = true })
  return list
end

---The same with their paths, relative to this layer: a list of { path, cell }.
---@return table[]
function Layer:named_parameters()
  local list = {}
  walk(self, "", function(part, path)
    if core.kind(part) == "param" then
      list[#list + 1] = { path:sub(2), part }
    end
  end, { [self] = true })
  return list
end

local function set_mode(layer, what, eval)
  refuse_inside(layer, what)
  return each_layer(layer, function(l)
    rawset(l, "_eval", eval)
    tell(l)
  end)
end

---Training mode, in which every layer begins: dropout drops, `self.training` is true. For this layer and
---all below it. Typed functions that call it have a specialisation for each mode.
---@return deepc.nn.Layer # itself
function Layer:train()
  return set_mode(self, "train()", nil)
end

---Evaluation mode: dropout does nothing, `self.training` is false. For this layer and all below it.
---@return deepc.nn.Layer # itself
function Layer:eval()
  return set_mode(self, "eval()", true)
end

local function set_frozen(layer, what, frozen)
  refuse_inside(layer, what)
  walk(layer, "", function(part)
    if not is_layer(part) then
      core.trainable(part, not frozen)
    end
  end, { [layer] = true })
  return each_layer(layer, function(l)
    rawset(l, "_frozen", frozen)
    tell(l)
  end)
end

---Its parameters, and those of all layers below, are no longer trained: optimisers leave them as they are.
---@return deepc.nn.Layer # itself
function Layer:freeze()
  return set_frozen(self, "freeze()", true)
end

---Its parameters are trained again.
---@return deepc.nn.Layer # itself
function Layer:unfreeze()
  return set_frozen(self, "unfreeze()", nil)
end

---What the layer computes; a class gives its own. Call the layer, not this.
---@return any # of what it is called with
function Layer:forward()
  core.fail("ARG", getmetatable(self).__name, "the class has no :forward")
end

local call = core.layer(text_of)

---A class of layers: give it :init(...) and :forward(...), then call it to make one.
---
---    local Block = nn.class "Block"
---    function Block:init(n) self.inner = nn.Linear(n, n) end
---    function Block:forward(x) return x + self.inner(x):relu() end
---@param name string what errors call it
---@return table # the class
function nn.class(name)
  if type(name) ~= "string" then
    core.fail("ARG", "nn.class", "a name is needed, not " .. type(name))
  end
  local class = {
    __name = name,
    __call = call,
    __tostring = function(self)
      return self:describe()
    end,
    __newindex = assign,
    __len = function(self)
      return #own(self)
    end,
    __pairs = function(self)
      return next, own(self)
    end,
    _is_layer = true,
  }
  function class.__index(self, key)
    local v = own(self)[key]
    if v ~= nil then
      return v
    end
    if key == "training" then
      if core.tracing() then
        depend(self)
      end
      return not rawget(self, "_eval")
    end
    return class[key]
  end
  return setmetatable(class, {
    __index = Layer,
    __call = function(c, ...)
      local layer = setmetatable({ _own = {} }, c)
      if c.init then
        c.init(layer, ...)
      end
      return layer
    end,
  })
end

-- ---- layers ----

local function check_size(op, what, n)
  if math.type(n) ~= "integer" or n < 1 then
    core.fail("ARG", op, ("%s is a positive integer, not %s"):format(what, tostring(n)))
  end
end

---x:matmul(weight) + bias; weight is f32[inputs, outputs]. Both start uniform in
---[-1/sqrt(inputs), 1/sqrt(inputs)).
---
---    nn.Linear(784, 10)
---@class deepc.nn.Linear: deepc.nn.Layer
local Linear = nn.class "nn.Linear"
nn.Linear = Linear

---@param inputs integer the size of the last axis of x
---@param outputs integer
---@param options? { bias?: boolean } true
function Linear:init(inputs, outputs, options)
  check_size("nn.Linear", "the number of inputs", inputs)
  check_size("nn.Linear", "the number of outputs", outputs)
  core.options("nn.Linear", options, "bias")
  local bound = inputs ^ -0.5
  local function uniform(type_text)
    return dc.param(type_text, dc.rand(type_text, { low = -bound, high = bound }))
  end
  self.inputs, self.outputs = inputs, outputs
  self.weight = uniform(("f32[%d, %d]"):format(inputs, outputs))
  if not options or options.bias ~= false then
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

---The larger of x and 0.
---
---    nn.ReLU()
---@class deepc.nn.ReLU: deepc.nn.Layer
local ReLU = nn.class "nn.ReLU"
nn.ReLU = ReLU

function ReLU:forward(x) -- luacheck: ignore self
  local y = dc.relu(x)
  return y
end

---All axes from the second (or `from`) on become one.
---
---    nn.Flatten()
---@class deepc.nn.Flatten: deepc.nn.Layer
local Flatten = nn.class "nn.Flatten"
nn.Flatten = Flatten

---@param from? integer 2
function Flatten:init(from)
  self.from = from or 2
end

function Flatten:forward(x)
  if not core.kind(x) then
    core.fail("ARG", "nn.Flatten", "a tensor is needed, not " .. type(x))
  end
  local y = x:flatten(self.from)
  return y
end

---While training, sets each element to 0 with probability p and multiplies the others by 1 / (1 - p), so
---that the expected value stays (Srivastava et al., 2014); in evaluation mode x itself. Draws from the
---generator, anew at each call of a typed function.
---
---    nn.Dropout(0.5)
---@class deepc.nn.Dropout: deepc.nn.Layer
local Dropout = nn.class "nn.Dropout"
nn.Dropout = Dropout

---@param p? number 0.5, from 0 to below 1
function Dropout:init(p)
  p = p or 0.5
  if type(p) ~= "number" or not (p >= 0 and p < 1) then
    core.fail("ARG", "nn.Dropout", ("p is a number from 0 to below 1, not %s"):format(tostring(p)))
  end
  self.p = p
end

function Dropout:describe()
  return ("nn.Dropout %g"):format(self.p)
end

function Dropout:forward(x)
  if not self.training or self.p == 0 then
    return x
  end
  local drawn = dc.rand(("f32[%s]"):format(table.concat(x.shape, ", ")))
  local y = dc.where(drawn:ge(self.p), x * (1 / (1 - self.p)), 0)
  return y
end

---Layers (or functions) one after the other.
---
---    nn.Sequential { nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10) }
---@class deepc.nn.Sequential: deepc.nn.Layer
local Sequential = nn.class "nn.Sequential"
nn.Sequential = Sequential

---@param list (deepc.nn.Layer|function)[]
function Sequential:init(list)
  if type(list) ~= "table" or is_layer(list) then
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
    elseif not is_layer(layer) and type(layer) ~= "function" then
      core.fail("ARG", "nn.Sequential", ("part %d is %s, not a layer"):format(i,
        layer == nil and "nil" or "a " .. type(layer)))
    end
    self[i] = layer
  end
end

function Sequential:forward(x)
  for i = 1, #self do
    x = self[i](x)
  end
  return x
end

-- ---- losses ----

---The mean over rows of -log softmax(logits) at the label of the row.
---
---    nn.cross_entropy(dc.zeros "f32[2, 10]", dc.tensor({ 3, 7 }, "i32"))
---
---Errors: DC0202 for labels that are no integers, DC0301 for other shapes, DC0701 for a label outside.
---@param logits deepc.Tensor f32[rows, classes]
---@param labels deepc.Tensor integers[rows], 0 to classes - 1
---@return deepc.Tensor # f32[]
function nn.cross_entropy(logits, labels)
  local op = "cross_entropy"
  if not core.kind(logits) or not core.kind(labels) then
    core.fail("ARG", op, "logits and labels are tensors")
  end
  local function type_of(t)
    return ("%s[%s]"):format(t.dtype, table.concat(t.shape, ", "))
  end
  if not labels.dtype:match "^[iu]" then
    core.fail("DTYPE", op, ("labels are %s; class numbers are integers from 0"):format(type_of(labels)),
      ('dc.tensor(t, "i32[%s]")'):format(table.concat(labels.shape, ", ")), "labels", labels)
  end
  if #logits.shape ~= 2 or #labels.shape ~= 1 or #logits ~= #labels then
    core.fail("DIMS", op, ("logits are %s, labels %s; f32[rows, classes] and integers[rows] are needed")
      :format(type_of(logits), type_of(labels)), nil, "logits", logits, "labels", labels)
  end
  local rows, classes = logits:size(1), logits:size(2)
  core.check_class(labels, classes, op)
  local class = dc.iota(("i32[1, %d]"):format(classes), 2)
  local hit = class:eq(labels:cast("i32"):reshape(rows, 1))
  local loss = dc.where(hit, logits:log_softmax(2), 0):sum() * (-1 / rows)
  return loss
end

return core.module("deepc.nn", nn)
