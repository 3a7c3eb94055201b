-- What models are made of: how a config is read, parts of the wanted dtype, functions that several have.

local dc = require "deepc"
local nn = require "deepc.nn"
local json = require "deepc.models.json"
require "deepc.operands"
local _, core = ...

---Models of others, built by their configs and loaded by name: what a folder of Hugging Face holds gives the numbers
---here that it gives there.
---
---    local models = require "deepc.models"
---    local net = models.llama { vocab_size = 100, hidden_size = 16, intermediate_size = 32, num_hidden_layers = 1,
---      num_attention_heads = 2 }
---@class deepc.models
local models = {}

-- Of all models, for files: what reads each value of "model_type", and how its weights are called. See load.lua.
core.model_types = {}

-- Linear layers whose columns, of each head those that positions turn, lie side by side in pairs, where transformers
-- has halves: { head, turned }, sizes.
core.paired_columns = setmetatable({}, { __mode = "k" })

-- ---- configs ----

local LARGEST = 1 << 24
local MOST_LAYERS = 4096

-- Fields of a config, which other fields may stand beside; "name" is required where it has no default.
local Config = {}
Config.__index = Config

-- A reader of a config for errors of op.
function core.model_config(op, config)
  if type(config) ~= "table" or core.kind(config) or getmetatable(config) then
    core.fail("ARG", op, ("a config is a table with the names of config.json, not %s"):format(core.describe(config)))
  elseif type(config.quantization_config) == "table" then
    core.fail("ARG", op, "the config has a quantization_config: weights that are kept in another way are not read",
      "a folder of f32, f16 or bf16 weights, or a .gguf file")
  end
  return setmetatable({ op = op, config = config }, Config)
end

-- What stands under the first of the names that has something; null is nothing.
local function find(config, name)
  for each in name:gmatch "[^|]+" do
    if config[each] ~= nil and config[each] ~= json.null then
      return config[each], each
    end
  end
  return nil, name:match "^[^|]+"
end

function Config:refuse(name, value, wanted)
  core.fail("ARG", self.op, ("config.%s is %s; %s"):format(name, core.shown(value), wanted))
end

local function has_default(n)
  return n > 0
end

-- A whole number from least (1) to a bound.
function Config:size(name, ...)
  local value, key = find(self.config, name)
  if value == nil and has_default(select("#", ...)) then
    return (...)
  elseif math.type(value) == "float" then
    value = math.tointeger(value) or value
  end
  if math.type(value) ~= "integer" or value < 1 or value > LARGEST then
    self:refuse(key, value, ("a whole number from 1 to %d is needed"):format(LARGEST))
  end
  return value
end

-- How many layers there are.
function Config:layers(name, ...)
  local n = self:size(name, ...)
  if n > MOST_LAYERS then
    self:refuse(name, n, ("%d layers at most are made"):format(MOST_LAYERS))
  end
  return n
end

-- A number; least is the bound below.
function Config:number(name, default, least)
  local value, key = find(self.config, name)
  if value == nil then
    value = default
  end
  if value ~= nil and (type(value) ~= "number" or value ~= value or math.abs(value) == math.huge
    or least and value < least) then
    self:refuse(key, value, least and ("a number from %s on is needed"):format(least) or "a finite number is needed")
  end
  return value
end

-- A number above 0 that has to be there.
function Config:positive(name)
  local value = self:number(name, 0, 0)
  if value == 0 then
    self:refuse(name, self.config[name], "a number above 0 is needed")
  end
  return value
end

-- A number above 0, where null, or false of a script, says that there is none, and an absent field is a default.
function Config:optional(name, default)
  local value = self.config[name]
  if value == json.null or value == false then
    return nil
  end
  return self:number(name, default, 1e-6)
end

function Config:flag(name, default)
  local value, key = find(self.config, name)
  if value == nil then
    return default
  elseif type(value) ~= "boolean" then
    self:refuse(key, value, "true or false is needed")
  end
  return value
end

-- One of a table's keys; returns its value.
function Config:choice(name, default, choices)
  local value, key = find(self.config, name)
  if value == nil then
    value = default
  end
  if type(value) ~= "string" or choices[value] == nil then
    local names = {}
    for each in next, choices do
      names[#names + 1] = each
    end
    table.sort(names)
    self:refuse(key, value, "known are " .. table.concat(names, ", "))
  end
  return choices[value], value
end

function Config:list(name)
  local value, key = find(self.config, name)
  if value ~= nil and type(value) ~= "table" then
    self:refuse(key, value, "a list is needed")
  end
  return value
end

-- What a model would compute otherwise than it does here.
function Config:only(name, wanted, why)
  local value = self.config[name]
  if value ~= nil and value ~= json.null and value ~= wanted then
    self:refuse(name, value, why)
  end
end

-- Tokens that end texts.
function core.read_stop_tokens(config)
  local eos, list = config.eos_token_id, {}
  for _, token in ipairs(type(eos) == "table" and eos or { eos }) do
    list[#list + 1] = math.type(token) == "integer" and token or nil
  end
  return list
end

-- How many classes a config has: names for them, or their number; 2 without.
function core.count_classes(r, config)
  local count = 0
  for _ in pairs(type(config.id2label) == "table" and config.id2label or {}) do
    count = count + 1
  end
  return count > 0 and count or r:size("num_labels", 2)
end

-- Fails unless heads divide a size; returns the quotient.
function Config:divide(what, size, heads)
  if size % heads ~= 0 then
    core.fail("ARG", self.op, ("%s of %d does not divide into %d"):format(what, size, heads))
  end
  return size // heads
end

-- ---- parts ----

-- Activations by their names in configs.
core.model_activations = {
  gelu = function(x) return x:gelu() end,
  gelu_new = function(x) return x:gelu { approximate = "tanh" } end,
  gelu_pytorch_tanh = function(x) return x:gelu { approximate = "tanh" } end,
  gelu_fast = function(x) return x:gelu { approximate = "tanh" } end,
  quick_gelu = function(x) return x * (x * 1.702):sigmoid() end,
  relu = function(x) return x:relu() end,
  silu = function(x) return x:silu() end,
  swish = function(x) return x:silu() end,
  tanh = function(x) return x:tanh() end,
}

-- Makes layers of the dtype wanted. `empty`: values come from a file, so none are drawn.
local Builder = {}
Builder.__index = Builder

-- Options of models.load, whose weights are read from a file: { path, numbers }, how many of these there are. A config
-- that needs far more is of something else, which is told before memory is asked for.
core.weights_follow = setmetatable({}, { __mode = "k" })

local SLACK = 1 << 16

function core.model_builder(op, options, std)
  core.options(op, options, "dtype")
  local dtype = options and options.dtype or "f32"
  if type(dtype) ~= "string" or not core.is_float(dtype) then
    core.fail("ARG", op, ('dtype is "f32", "f16", "bf16" or "f64", not %s'):format(core.shown(dtype)))
  end
  local file = core.weights_follow[options or false]
  return setmetatable({ op = op, dtype = dtype, empty = file ~= nil, file = file, std = std or 0.02,
    left = file and 2 * file.numbers + SLACK }, Builder)
end

-- So many numbers more.
function Builder:count(n)
  if self.left then
    self.left = self.left - n
    if self.left < 0 then
      core.fail("MISFIT", self.op, ("%s: the config is of a larger model than the weights, which are %d numbers")
        :format(self.file.path, self.file.numbers), "config and weights are of one model")
    end
  end
end

function Builder:type(...)
  local n = 1.0
  for _, size in ipairs { ... } do
    n = n * size
  end
  self:count(n)
  return ("%s[%s]"):format(self.dtype, table.concat({ ... }, ", "))
end

-- A parameter of normal numbers.
function Builder:normal(...)
  local text = self:type(...)
  return dc.param(text, self.empty and dc.zeros(text) or dc.randn(text, { std = self.std }))
end

function Builder:zeros(...)
  local text = self:type(...)
  return dc.param(text, dc.zeros(text)) -- which are written when they are read, not where a file comes first
end

function Builder:ones(...)
  local text = self:type(...)
  return dc.param(text, dc.ones(text))
end

-- An nn.Linear without the draws of its :init.
function Builder:linear(inputs, outputs, bias)
  local layer = setmetatable({ _own = {} }, nn.Linear)
  layer.inputs, layer.outputs = inputs, outputs
  layer.weight = self:normal(inputs, outputs)
  core.is_linear[layer.weight] = true
  layer.bias = bias ~= false and self:zeros(outputs) or nil
  return layer
end

function Builder:embedding(count, size)
  local layer = setmetatable({ _own = {} }, nn.Embedding)
  layer.count, layer.size = count, size
  layer.weight = self:normal(count, size)
  return layer
end

-- Another layer of nn, in the dtype.
function Builder:made(layer)
  return self.dtype == "f32" and layer or layer:cast(self.dtype)
end

-- A convolution: nn.Conv1d or nn.Conv2d.
function Builder:conv(class, inputs, outputs, window, options)
  local n = 1.0 * inputs * outputs
  for i = 1, class == nn.Conv2d and 2 or 1 do
    n = n * (type(window) == "table" and window[i] or window)
  end
  self:count(n)
  return self:made(class(inputs, outputs, window, options))
end

function Builder:layer_norm(size, eps, bias)
  return self:made(nn.LayerNorm(size, { eps = eps, bias = bias }))
end

-- ---- what goes in ----

-- Integers [batch, time].
function core.check_ids(op, ids)
  core.check_tensor(op, ids, "ids")
  if not core.is_integer(ids.dtype) then
    core.fail("DTYPE", op, ("ids are %s[%s]; integers are needed"):format(ids.dtype, core.sizes(ids.shape)), nil, "ids",
      ids)
  elseif #ids.shape ~= 2 then
    core.fail("DIMS", op, ("ids are %s[%s]; [batch, time] is needed"):format(ids.dtype, core.sizes(ids.shape)), nil,
      "ids", ids)
  end
end

-- Of a model that has a row for each position.
function core.check_positions(op, ids, most)
  local n = ids.shape[2]
  if not core.is_size(n) and n > most then
    core.fail("DIMS", op, ("ids are of %d tokens; the model has %d positions"):format(n, most), nil, "ids", ids)
  end
end

-- A mask [batch, time] as bools, true where a token counts; integers and floats are 0 where none does.
function core.check_token_mask(op, mask, ids)
  core.check_tensor(op, mask, "mask")
  local a, b = mask.shape, ids.shape
  if #a ~= 2 or a[1] ~= b[1] or a[2] ~= b[2] then
    core.fail("DIMS", op, ("mask is %s[%s], ids are [%s]"):format(mask.dtype, core.sizes(a), core.sizes(b)), nil,
      "mask", mask, "ids", ids)
  end
  return mask.dtype == "bool" and mask or mask:ne(0)
end

-- [batch, heads, time, features] of [batch, time, heads * features], and back.
function core.to_heads(x, heads)
  local shape = x.shape
  return x:reshape(shape[1], shape[2], heads, shape[3] // heads):transpose(2, 3)
end

function core.from_heads(x)
  local shape = x.shape
  return x:transpose(2, 3):reshape(shape[1], shape[3], shape[2] * shape[4])
end

return models
