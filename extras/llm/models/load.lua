-- models.load: a folder as Hugging Face has it, or a file, as a model.

local models = require "deepc.models.base"
local json = require "deepc.models.json"
local gguf = require "deepc.models.gguf"
local weights = require "deepc.models.weights"
require "deepc.origins"
local _, core = ...

local function known_types()
  local names = {}
  for name in pairs(core.model_types) do
    names[#names + 1] = name
  end
  table.sort(names)
  return table.concat(names, ", ")
end

-- What a maker takes, for a model whose weights a file has.
local function options_of(options, source)
  local own, numbers = { dtype = options and options.dtype }, 0
  for _, name in ipairs(source.names) do
    local n = 1
    for _, size in ipairs(core.file_shape(source.file, name)) do
      n = n * size
    end
    numbers = numbers + n
  end
  core.weights_follow[own] = { path = source.path, numbers = numbers }
  return own
end

-- What sentence-transformers does with the vectors of tokens.
local function read_pooling(op, path)
  local file = path .. "/1_Pooling/config.json"
  if not core.file_exists(op, file) then
    return nil
  end
  local said = json.read(op, file)
  return said.pooling_mode_cls_token and "cls" or said.pooling_mode_max_tokens and "max"
    or said.pooling_mode_mean_tokens and "mean" or nil
end

-- Does a quantization_config say that weights are floats of 8 bits? Their tensors say the rest.
local function is_of_float8(q)
  local block = q.weight_block_size
  if q.quant_method == "fp8" then
    return type(block) ~= "table" or block[1] == 128 and block[2] == 128 and #block == 2
  end
  return q.quant_method == "fbgemm_fp8" or q.quant_method == "compressed-tensors" and q.format == "float-quantized"
end

local function read_folder(op, path, options)
  local config = json.read(op, path .. "/config.json")
  if type(config.quantization_config) == "table" and is_of_float8(config.quantization_config) then
    config.quantization_config = nil
  end
  local name = config.model_type or config._class_name -- of transformers, of diffusers
  local kind = type(name) == "string" and core.model_types[name]
  if not kind then
    core.fail("MISFIT", op, ("%s/config.json: model_type is %s; known are %s"):format(path, core.shown(name),
      known_types()))
  end
  local own = kind.config and kind.config(config) or config
  local source <close> = weights.open(op, path)
  local net = kind.make(own, options_of(options, source))
  weights.fill(source, net, kind, options.packed and options.activations, true)
  if net.embed then
    net.config.pooling = read_pooling(op, path)
  end
  return net
end

local function read_gguf(op, path, options)
  local source <close> = weights.open(op, path)
  local config, rules = gguf.read(op, path, source)
  local net = core.model_types[config.model_type].make(config, options_of(options, source))
  weights.fill(source, net, rules, options.packed and options.activations, true)
  return net
end

---A model out of a folder of Hugging Face: config.json says which, and model.safetensors, or those that
---model.safetensors.index.json names, has the weights. Or out of a .gguf file of the family of Llama, whose quantised
---weights become floats. It is in evaluation mode.
---
---    local net = models.load(os.getenv "HOME" .. "/all-MiniLM-L6-v2")
---
---Options: dtype, that the model computes in: "f32", "f16" or "bf16"; weights of other floats are converted. packed
---(false): quantised weights of linear layers and embeddings stay as they are, as nn.QuantizedLinear has them, with
---activations (16) of 8 or 16 bits.
---
---Weights are read on another thread while the script goes on to trace and compile (not with DEEPC_THREADS=1, and on
---CPUs alone): what computes with them first waits. Where the disk fails on the way, or another program writes to the
---file, that and all other uses of these weights fail, as reading did.
---
---Errors: DC0801 where a file cannot be read, DC0802 where it is damaged, DC0804 for a model that is not known and for
---weights that do not fit the config, DC0101 for fields of the config.
---@param path string a folder, or a .gguf file or its URL
---@param options? { dtype?: string, packed?: boolean, activations?: 8|16 } "f32"
---@return deepc.nn.Layer # the model
function models.load(path, options)
  local op = "models.load"
  core.refuse_tracing(op)
  if type(path) ~= "string" then
    core.fail("ARG", op, "a path is needed, not " .. core.describe(path))
  end
  if path:find "^https?://" and not path:find "%.gguf$" then
    core.fail("ARG", op, ("%s is no file .gguf"):format(core.shown(path)),
      "other models are folders: data.fetch of config.json, the weights and the tokenizer, into one cache = ...")
  end
  path = core.path_to_load(op, path)
  core.options(op, options, "dtype", "packed", "activations")
  options = options or {}
  core.check_flags(op, options, "packed")
  options = { dtype = options.dtype, packed = options.packed,
    activations = core.check_activations(op, options.activations) }
  local net = (path:find "%.gguf$" and read_gguf or read_folder)(op, (path:gsub("/+$", "")), options)
  net:eval()
  return net
end
