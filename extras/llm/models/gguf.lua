-- .gguf files as models of the family of Llama: their metadata as a config, their names as those of transformers.

require "deepc.models.base"
local _, core = ...

local gguf = {}

-- ---- configs ----

-- Fields of configs and the keys behind the architecture's name.
local FIELDS = {
  num_hidden_layers = "block_count", max_position_embeddings = "context_length", hidden_size = "embedding_length",
  intermediate_size = "feed_forward_length", num_attention_heads = "attention.head_count",
  num_key_value_heads = "attention.head_count_kv", head_dim = "attention.key_length",
  rms_norm_eps = "attention.layer_norm_rms_epsilon", rope_theta = "rope.freq_base",
  sliding_window = "attention.sliding_window", attn_logit_softcapping = "attn_logit_softcapping",
  final_logit_softcapping = "final_logit_softcapping", vocab_size = "vocab_size",
}

-- Architectures: the model_type of each, and what its files have otherwise. interleaved: rows of queries and keys lie
-- so that features side by side are turned; around_one: 1 is added to weights of norms.
local KNOWN = {
  llama = { type = "llama", interleaved = true }, qwen2 = { type = "qwen2" }, qwen3 = { type = "qwen3" },
  gemma = { type = "gemma", around_one = true }, gemma2 = { type = "gemma2", around_one = true },
  gemma3 = { type = "gemma3_text", around_one = true },
}

-- Of these, models of so many layers scale scores by the size of a part of the hidden vector; others by that of a head.
local WIDE = { gemma2 = 46, gemma3 = 62 }

-- Longer contexts, of which files say the type and a factor.
local function read_scaling(metadata, name)
  local kind = metadata[name .. ".rope.scaling.type"]
  if kind == nil or kind == "none" then
    return nil
  end
  return { rope_type = kind, factor = metadata[name .. ".rope.scaling.factor"],
    original_max_position_embeddings = metadata[name .. ".rope.scaling.original_context_length"] }
end

-- The config of a file, and what is known of its architecture.
local function read_config(op, path, metadata, source)
  local name = metadata["general.architecture"]
  local known = type(name) == "string" and KNOWN[name]
  if not known then
    local names = {}
    for each in pairs(KNOWN) do
      names[#names + 1] = each
    end
    table.sort(names)
    core.fail("MISFIT", op, ("%s: general.architecture is %s; known are %s"):format(path, core.shown(name),
      table.concat(names, ", ")))
  end
  local config = { model_type = known.type, rope_interleaved = known.interleaved,
    tie_word_embeddings = not source.has["output.weight"], eos_token_id = metadata["tokenizer.ggml.eos_token_id"],
    rope_scaling = read_scaling(metadata, name) }
  for field, key in pairs(FIELDS) do
    local value = metadata[name .. "." .. key]
    if type(value) == "table" then
      core.fail("MISFIT", op, ("%s: %s.%s is a list, a number for each layer; one number for all is known"):format(path,
        name, key))
    end
    config[field] = value
  end
  if not config.vocab_size and source.has["token_embd.weight"] then
    config.vocab_size = core.file_shape(source.file, "token_embd.weight")[1]
  end
  if source.has["rope_freqs.weight"] then
    config.rope_scaling = { rope_type = "factors",
      factors = core.file_take(source.file, { "rope_freqs.weight" }, { "f32" })[1]:totable() }
  end
  for _, field in ipairs { "hidden_size", "num_attention_heads" } do
    if math.type(config[field]) ~= "integer" or config[field] < 1 then
      core.fail("MISFIT", op, ("%s: %s.%s is %s"):format(path, name, FIELDS[field], core.shown(config[field])))
    end
  end
  local size = config.head_dim or config.hidden_size // config.num_attention_heads
  local turned = metadata[name .. ".rope.dimension_count"]
  if math.type(turned) == "integer" and math.type(size) == "integer" and size > 0 and turned ~= size then
    config.partial_rotary_factor = turned / size
  end
  config.query_pre_attn_scalar = WIDE[name] and (WIDE[name] == config.num_hidden_layers
    and config.hidden_size / config.num_attention_heads or size) or nil
  return config, known
end

-- ---- names ----

local TOP = { ["token_embd.weight"] = "model.embed_tokens.weight", ["output_norm.weight"] = "model.norm.weight",
  ["output.weight"] = "lm_head.weight" }

local PARTS = {
  attn_norm = "input_layernorm", attn_q = "self_attn.q_proj", attn_k = "self_attn.k_proj", attn_v = "self_attn.v_proj",
  attn_output = "self_attn.o_proj", attn_q_norm = "self_attn.q_norm", attn_k_norm = "self_attn.k_norm",
  ffn_norm = "post_attention_layernorm", ffn_gate = "mlp.gate_proj", ffn_up = "mlp.up_proj", ffn_down = "mlp.down_proj",
}

-- In models that have four norms in a layer.
local FOUR = { ffn_norm = "pre_feedforward_layernorm", post_attention_norm = "post_attention_layernorm",
  post_ffw_norm = "post_feedforward_layernorm" }

-- Names of a file as those of transformers; nil for what is read otherwise.
local function rename(four)
  return function(name)
    local i, part, what = name:match "^blk%.(%d+)%.([%w_]+)%.(%a+)$"
    if i then
      local ours = four and FOUR[part] or PARTS[part]
      return ours and ("model.layers.%s.%s.%s"):format(i, ours, what) or name
    end
    return TOP[name] or name ~= "rope_freqs.weight" and name or nil
  end
end

-- The config of an open file, and how its tensors come to cells.
function gguf.read(op, path, source)
  local config, known = read_config(op, path, source.metadata, source)
  return config, {
    rename = rename(known.type == "gemma2" or known.type == "gemma3_text"), linear = "out, in",
    adapted = known.around_one and "norm%.weight$" or nil, adapt = function(_, value) return value - 1 end,
  }
end

return gguf
