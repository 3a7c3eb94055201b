-- Low-rank adapters: small matrices beside the linear layers of a model, which are trained while the model stays.

local dc = require "deepc"
local nn = require "deepc.nn"
local models = require "deepc.models.base"
local json = require "deepc.models.json"
local weights = require "deepc.models.weights"
local _, core = ...

-- x:matmul(weight) of a frozen layer, plus x A B times a scale.
local LoraLinear = nn.class "models.LoraLinear"

function LoraLinear:init(layer, o)
  self.base_layer, self.scale, self.rank = layer, o.scale, o.rank
  self.dropout = o.dropout > 0 and nn.Dropout(o.dropout) or nil
  self.lora_A, self.lora_B = nn.Linear(layer.inputs, o.rank, { bias = false }),
    nn.Linear(o.rank, layer.outputs, { bias = false })
  self.lora_B.weight:set(dc.zeros(self.lora_B.weight))
  local weight = layer.weight -- none where it is quantised
  if weight and weight.dtype ~= "f32" then
    self.lora_A:cast(weight.dtype)
    self.lora_B:cast(weight.dtype)
  end
end

function LoraLinear:describe()
  return ("models.LoraLinear %d -> %d, rank %d"):format(self.base_layer.inputs, self.base_layer.outputs, self.rank)
end

function LoraLinear:forward(x)
  local y = self.lora_B(self.lora_A(self.dropout and self.dropout(x) or x))
  return self.base_layer(x) + y * self.scale
end

-- ---- places ----

local replace, renew = core.replace_layers, core.renew_paths

local function check_net(op, net)
  if not core.is_layer(net) then
    core.fail("ARG", op, "a layer is needed, not " .. core.describe(net))
  end
  core.refuse_inside(net, op)
end

-- Whether the last name of a path, or the whole, is one of the targets.
local function chooser(op, targets)
  local list = type(targets) == "string" and { targets } or targets
  if type(list) ~= "table" or #list == 0 then
    core.fail("ARG", op, ("targets are the names of linear layers, not %s"):format(core.shown(targets)),
      'targets = { "q_proj", "v_proj" }')
  end
  for _, name in ipairs(list) do
    if type(name) ~= "string" then
      core.fail("ARG", op, ("targets has %s; names of linear layers are needed"):format(core.describe(name)))
    end
  end
  return function(path)
    for _, name in ipairs(list) do
      if path == name or path:sub(-#name - 1) == "." .. name then
        return name
      end
    end
  end, list
end

-- The adapters of a network, by path.
local function adapters(op, net)
  local list = {}
  core.walk(net, "", function(part, path)
    if type(part) == "table" and getmetatable(part) == LoraLinear then
      list[#list + 1] = { path:sub(2), part }
    end
  end, { [net] = true })
  if #list == 0 then
    core.fail("ARG", op, ("%s has no adapters"):format(net:describe()), "models.lora(net, options) adds some")
  end
  return list
end

-- ---- adapters ----

-- Options of models.lora, checked.
local function read_options(op, options)
  core.options(op, options, "rank", "alpha", "targets", "dropout")
  options = options or {}
  local rank = options.rank or 8
  core.check_size(op, "rank", rank)
  local alpha = options.alpha or 2 * rank
  core.check_number(op, "alpha", alpha)
  core.check_probability(op, "dropout", options.dropout)
  return { rank = rank, alpha = alpha, scale = alpha / rank, dropout = options.dropout or 0,
    targets = options.targets or { "q_proj", "v_proj" } }
end

-- Puts adapters beside layers, and freezes all else.
local function add(op, net, o)
  local wanted, list = chooser(op, o.targets)
  local found, count = {}, 0
  replace(net, "", LoraLinear, function(_, path)
    core.fail("ARG", op, ("%s has adapters already, at '%s'"):format(net:describe(), path),
      "models.merge_lora(net) makes them parts of the weights")
  end, {})
  for _, class in ipairs { nn.QuantizedLinear, nn.Linear } do -- adapters are linear layers themselves
    replace(net, "", class, function(layer, path)
      local name = wanted(path)
      if name then
        found[name], count = true, count + 1
        return LoraLinear(layer, o)
      end
    end, {})
  end
  for _, name in ipairs(list) do
    if not found[name] then
      core.fail("ARG", op, ("%s has no linear layer '%s'"):format(net:describe(), name), "print(net) shows their names")
    end
  end
  renew(net)
  net:freeze()
  net:unfreeze { match = "lora_[AB]%.weight$" }
end

---Adapters of low rank beside linear layers of a network (Hu et al., 2021): each computes x W + alpha / rank x A B,
---where A and B are trained and all other parameters of the network are frozen. B starts at zeros, so the network gives
---what it gave. Layers may be quantised: gradients are those of what they stand for (Dettmers et al., 2023).
---
---    local net = models.llama { vocab_size = 100, hidden_size = 16, intermediate_size = 32, num_hidden_layers = 1,
---      num_attention_heads = 2 }
---    models.lora(net, { rank = 4, alpha = 8, targets = { "q_proj", "v_proj" } })
---
---Options: rank (8), alpha (2 rank), targets ({ "q_proj", "v_proj" }: the last names in the paths of nn.Linear, or
---whole paths), dropout (0, of what goes into A).
---
---Errors: DC0101 for options, for targets that there are not, and where there are adapters already.
---@param net deepc.nn.Layer
---@param options? { rank?: integer, alpha?: number, targets?: string[], dropout?: number }
---@return deepc.nn.Layer # net itself
function models.lora(net, options)
  local op = "models.lora"
  check_net(op, net)
  add(op, net, read_options(op, options))
  return net
end

---Adds what adapters have learned to the weights, and takes them away: the network computes the same without them. Its
---parameters are trained again.
---
---    local net = models.lora(models.gpt2 { vocab_size = 100, n_embd = 16, n_layer = 1, n_head = 2, n_positions = 8 },
---      { targets = { "c_attn" } })
---    models.merge_lora(net)
---
---Errors: DC0101 where there are no adapters, and where weights are quantised.
---@param net deepc.nn.Layer
---@return deepc.nn.Layer # net itself
function models.merge_lora(net)
  local op = "models.merge_lora"
  check_net(op, net)
  for _, named in ipairs(adapters(op, net)) do
    if not named[2].base_layer.weight then
      core.fail("ARG", op, ("the weights of '%s' are quantised: nothing is added to them"):format(named[1]),
        "models.save_lora keeps adapters beside them")
    end
  end
  replace(net, "", LoraLinear, function(layer)
    local base = layer.base_layer
    local by = layer.lora_A.weight:cast("f32"):matmul(layer.lora_B.weight:cast "f32") * layer.scale
    base.weight:set((base.weight:cast "f32" + by):cast(base.weight.dtype))
    return base
  end, {})
  renew(net)
  net:unfreeze()
  return net
end

-- ---- files ----

local PREFIX = "base_model.model."

local function there(path)
  return PREFIX .. (("." .. path):gsub("%.(%d+)%f[.\0]", function(n) return (".%d"):format(tonumber(n) - 1) end):sub(2))
end

-- The columns of a matrix in the order of transformers, or out of it, where those of the layer lie otherwise.
local function reorder(weight, layer, out)
  local pairing = core.paired_columns[layer.base_layer]
  if not pairing then
    return weight
  end
  local n, count, half = weight.shape[1], weight.shape[2] // pairing.head, pairing.turned // 2
  local turned, rest = weight:reshape(n, count, pairing.head), nil
  if pairing.turned < pairing.head then
    turned, rest = turned:split({ pairing.turned, pairing.head - pairing.turned }, -1)
  end
  turned = out and turned:reshape(n, count, 2, half) or turned:reshape(n, count, half, 2)
  return dc.concat({ turned:transpose():reshape(n, count, pairing.turned), rest }, -1):reshape(n, -1)
end

local function last_names(list)
  local seen, names = {}, {}
  for _, named in ipairs(list) do
    local name = named[1]:match "[^.]+$"
    if not seen[name] then
      seen[name], names[#names + 1] = true, ('"%s"'):format(name)
    end
  end
  table.sort(names)
  return table.concat(names, ", ")
end

---Writes the adapters of a network alone, as PEFT has them: adapter_model.safetensors and adapter_config.json, into a
---folder that there is.
---
---    models.save_lora("adapters", net)
---
---Errors: DC0801 where files cannot be written, DC0101 where there are no adapters.
---@param path string a folder
---@param net deepc.nn.Layer
function models.save_lora(path, net)
  local op = "models.save_lora"
  if type(path) ~= "string" then
    core.fail("ARG", op, "a path is needed, not " .. core.describe(path))
  end
  check_net(op, net)
  local list, tensors, one = adapters(op, net), {}, nil
  for _, named in ipairs(list) do
    local layer = named[2]
    if one and (layer.rank ~= one.rank or layer.scale ~= one.scale) then
      core.fail("ARG", op, "adapters of several ranks have no one config")
    end
    one = one or layer
    local name = there(named[1])
    tensors[name .. ".lora_A.weight"] = layer.lora_A.weight:transpose()
    tensors[name .. ".lora_B.weight"] = reorder(layer.lora_B.weight, layer):transpose()
  end
  dc.save(path .. "/adapter_model.safetensors", tensors, { format = "pt" })
  core.write_file(op, path .. "/adapter_config.json", ([[{
  "peft_type": "LORA",
  "task_type": "CAUSAL_LM",
  "r": %d,
  "lora_alpha": %s,
  "lora_dropout": %s,
  "target_modules": [%s],
  "bias": "none",
  "fan_in_fan_out": false
}
]]):format(one.rank, core.number("%.17g", one.scale * one.rank), core.number("%.17g", one.dropout and one.dropout.p
  or 0),
    last_names(list)))
end

-- What adapter_config.json says, as options.
local function read_config(op, file)
  local config = json.read(op, file)
  local r = core.model_config(op, config)
  r:only("peft_type", "LORA", "LORA is known")
  r:only("bias", "none", "none is known")
  for _, name in ipairs { "use_dora", "use_qalora", "use_bdlora", "lora_bias" } do
    r:only(name, false, "false is known")
  end
  for _, name in ipairs { "modules_to_save", "layers_to_transform", "rank_pattern", "alpha_pattern",
    "target_parameters", "trainable_token_indices", "alora_invocation_tokens", "velora_config", "layer_replication" } do
    local value = config[name]
    if value ~= nil and value ~= json.null and not (type(value) == "table" and next(value) == nil) then
      r:refuse(name, value, "none is known")
    end
  end
  local rank, alpha = r:size("r", 8), r:number("lora_alpha", 8)
  local scale = r:flag("use_rslora", false) and alpha / rank ^ 0.5 or alpha / rank
  if type(config.target_modules) ~= "table" then
    r:refuse("target_modules", config.target_modules, "a list of names is needed")
  end
  return { rank = rank, scale = scale, dropout = r:number("lora_dropout", 0, 0), targets = config.target_modules }
end

---Adds adapters that PEFT, or models.save_lora, has written to a network without adapters.
---
---    models.load_lora("adapters", net)
---
---Errors: DC0801 and DC0802 for files, DC0804 where they do not fit the network, DC0101 for what adapters here are not.
---@param path string a folder
---@param net deepc.nn.Layer
---@return deepc.nn.Layer # net itself
function models.load_lora(path, net)
  local op = "models.load_lora"
  if type(path) ~= "string" then
    core.fail("ARG", op, "a path is needed, not " .. core.describe(path))
  end
  check_net(op, net)
  local options = read_config(op, path .. "/adapter_config.json")
  local source <close> = weights.open(op, path .. "/adapter_model.safetensors")
  add(op, net, options)
  local parts, list = nn.class "models.Adapters"(), adapters(op, net)
  for i, named in ipairs(list) do
    parts[i] = { lora_A = named[2].lora_A, lora_B = named[2].lora_B, path = there(named[1]) }
  end
  weights.fill(source, parts, { prefix = PREFIX, there = function(name)
    local i, rest = name:match "^(%d+)%.(.*)$"
    return parts[tonumber(i) + 1].path:sub(#PREFIX + 1) .. "." .. rest
  end })
  for _, named in ipairs(list) do
    local layer = named[2]
    if core.paired_columns[layer.base_layer] then
      layer.lora_B.weight:set(reorder(layer.lora_B.weight, layer, true))
    end
  end
  return net
end
