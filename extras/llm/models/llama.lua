-- The family of Llama: decoders with rotary positions, gated layers and norms by squares. What its members differ in is
-- read from their configs.

local nn = require "deepc.nn"
local models = require "deepc.models.base"
require "deepc.models.rope"
require "deepc.models.decoder"
local _, core = ...

-- ---- layers ----

-- x / sqrt(mean of squares + eps) times 1 + weight, as Gemma's norms.
local AroundOne = nn.class "models.GemmaNorm"

function AroundOne:init(b, size, eps)
  self.size, self.eps, self.weight = size, eps, b:zeros(size)
end

function AroundOne:forward(x)
  local narrow, wide, weight = core.in_f32(x, self.weight)
  local y = narrow(nn.rms_norm(wide, self.size, { weight = weight + 1, eps = self.eps }))
  return y
end

local function norm(b, c, size)
  return c.around_one and AroundOne(b, size, c.eps) or b:made(nn.RMSNorm(size, { eps = c.eps }))
end

local Attention = nn.class "models.LlamaAttention"

function Attention:init(b, c, kind)
  local q, kv = c.heads * c.head_dim, c.kv_heads * c.head_dim
  self.heads, self.kv_heads, self.head_dim, self.scale, self.cap = c.heads, c.kv_heads, c.head_dim, c.scale, c.cap
  self.window, self.rope = kind.window, kind.rope
  self.q_proj = b:linear(c.hidden_size, q, c.qkv_bias)
  self.k_proj = b:linear(c.hidden_size, kv, c.qkv_bias)
  self.v_proj = b:linear(c.hidden_size, kv, c.qkv_bias)
  self.o_proj = b:linear(q, c.hidden_size, c.o_bias)
  if c.qk_norm then
    self.q_norm, self.k_norm = norm(b, c, c.head_dim), norm(b, c, c.head_dim)
  end
  if kind.rope and kind.rope.interleaved then
    local pairing = { head = c.head_dim, turned = kind.rope.size }
    core.paired_columns[self.q_proj], core.paired_columns[self.k_proj] = pairing, pairing
  end
end

function Attention:forward(x, waves, o)
  local b, n, d = x.shape[1], x.shape[2], self.head_dim
  local q = self.q_proj(x):reshape(b, n, self.heads, d)
  local k = self.k_proj(x):reshape(b, n, self.kv_heads, d)
  local v = self.v_proj(x):reshape(b, n, self.kv_heads, d)
  if self.q_norm then
    q, k = self.q_norm(q), self.k_norm(k)
  end
  if waves then
    q, k = core.turn(q, waves), core.turn(k, waves)
  end
  return self.o_proj(core.attend(q, k, v, { scale = self.scale, cap = self.cap, window = self.window, past = o.past,
    mask = o.mask, start = o.start }))
end

local Gated = nn.class "models.LlamaMLP"

function Gated:init(b, c)
  self.act = c.act
  self.gate_proj = b:linear(c.hidden_size, c.intermediate_size, c.mlp_bias)
  self.up_proj = b:linear(c.hidden_size, c.intermediate_size, c.mlp_bias)
  self.down_proj = b:linear(c.intermediate_size, c.hidden_size, c.mlp_bias)
end

function Gated:forward(x)
  return self.down_proj(self.act(self.gate_proj(x)) * self.up_proj(x))
end

local Block = nn.class "models.LlamaLayer"

function Block:init(b, c, kind)
  self.self_attn, self.mlp = Attention(b, c, kind), Gated(b, c)
  self.input_layernorm, self.post_attention_layernorm = norm(b, c, c.hidden_size), norm(b, c, c.hidden_size)
  if c.four_norms then
    self.pre_feedforward_layernorm, self.post_feedforward_layernorm = norm(b, c, c.hidden_size),
      norm(b, c, c.hidden_size)
  end
end

function Block:forward(x, waves, o)
  local y = self.self_attn(self.input_layernorm(x), waves, o)
  if not self.pre_feedforward_layernorm then
    x = x + y
    return x + self.mlp(self.post_attention_layernorm(x))
  end
  x = x + self.post_attention_layernorm(y)
  return x + self.post_feedforward_layernorm(self.mlp(self.pre_feedforward_layernorm(x)))
end

---A decoder of the family of Llama. Its parts have the names of transformers' LlamaForCausalLM.
---@class deepc.models.Llama: deepc.models.Decoder
local Llama = core.make_decoder(nn.class "models.Llama")

function Llama:init(b, c)
  local layers = {}
  for i = 1, c.layers do
    layers[i] = Block(b, c, c.kinds[i])
  end
  self.config, self.dtype = c, b.dtype
  self.model = { embed_tokens = b:embedding(c.vocab_size, c.hidden_size), layers = layers,
    norm = norm(b, c, c.hidden_size) }
  self.lm_head = not c.tied and b:linear(c.hidden_size, c.vocab_size, false) or nil
end

function Llama:describe()
  return ("models.Llama %d, %d layers"):format(self.config.hidden_size, self.config.layers)
end

-- Waves of each way of turning that layers have.
local function waves_of(self, positions)
  local all = {}
  for _, kind in ipairs(self.config.kinds) do
    if kind.rope and not all[kind.rope] then
      all[kind.rope] = core.rope_waves(kind.rope, positions)
    end
  end
  return all
end

local function logits_of(self, x)
  local c = self.config
  local embedding = self.model.embed_tokens
  local y = self.lm_head and self.lm_head(x) or embedding.project and embedding:project(x)
    or x:matmul(embedding.weight:transpose())
  return c.final_cap and (y / c.final_cap):tanh() * c.final_cap or y
end

function Llama:forward(ids, options)
  local o, c = core.decoder_call("models.Llama", self, ids, options), self.config
  local x = self.model.embed_tokens(ids)
  x = c.embed_scale and x * c.embed_scale or x
  local waves = waves_of(self, core.token_positions(ids.shape[2], o))
  for i, layer in ipairs(self.model.layers) do
    local rope = c.kinds[i].rope
    x = layer(x, rope and waves[rope], { past = o.layers[i], mask = o.mask, start = o.start })
  end
  x = self.model.norm(o.last and x[{ {}, -1 }] or x)
  local y = logits_of(self, x)
  return y
end

-- ---- configs ----

-- What members of the family do that Llama does not.
local FAMILY = {
  llama = {},
  mistral = { window = true },
  qwen2 = { qkv_bias = true, o_bias = false, window = "asked" },
  qwen3 = { qk_norm = true, window = "asked", head_dim = 128 },
  gemma = { around_one = true, embed_scale = true, tied = true, head_dim = 256, act = "gelu_pytorch_tanh" },
  gemma2 = { around_one = true, embed_scale = true, tied = true, head_dim = 256, act = "gelu_pytorch_tanh",
    four_norms = true, query_scalar = 256, window = true, pattern = 2, cap = 50, final_cap = 30 },
  gemma3_text = { around_one = true, embed_scale = true, tied = true, head_dim = 256, act = "gelu_pytorch_tanh",
    four_norms = true, query_scalar = 256, window = true, pattern = 6, qk_norm = true, theta = 1e6, local_theta = 1e4 },
}

-- How often positions turn, for layers that see all and for those that see a window.
local function read_ropes(op, r, config, c, own)
  local fields = r:list "rope_parameters" or {}
  local all, near = fields, fields
  if type(fields.full_attention) == "table" or type(fields.sliding_attention) == "table" then
    all, near = fields.full_attention or {}, fields.sliding_attention or {}
  end
  local function read(t, theta, scaling)
    local whole = { rope_theta = theta, interleaved = config.rope_interleaved,
      partial_rotary_factor = config.partial_rotary_factor }
    for _, source in ipairs { scaling or {}, t } do
      for k, v in pairs(source) do
        whole[k] = v
      end
    end
    return core.read_rope(op, whole, c.head_dim, c.positions)
  end
  local theta, scaling = r:number("rope_theta", own.theta or 10000, 1e-6), r:list "rope_scaling"
  local far = read(all, theta, scaling)
  if not own.local_theta then
    return far, far
  end
  return far, read(near, r:number("rope_local_base_freq", own.local_theta, 1e-6))
end

-- Which layers see a window: by layer_types, by a pattern, or all.
local function read_kinds(op, r, config, c, own)
  local far, near = read_ropes(op, r, config, c, own)
  local window = own.window and r:optional("sliding_window", 4096) or nil
  if own.window == "asked" and not r:flag("use_sliding_window", false) then
    window = nil
  end
  local types, pattern = r:list "layer_types", own.pattern and r:size("sliding_window_pattern|_sliding_window_pattern",
    own.pattern)
  local from = own.window == "asked" and r:number("max_window_layers", 28, 0) or 0
  local kinds, all, narrow = {}, { rope = far }, { rope = near, window = window }
  for i = 1, c.layers do
    local kind = types and types[i]
    if kind == nil then
      local slides = pattern and i % pattern ~= 0 or not pattern and i > from
      kind = window and slides and "sliding_attention" or "full_attention"
    elseif kind ~= "full_attention" and kind ~= "sliding_attention" then
      r:refuse(("layer_types[%d]"):format(i - 1), kind, "full_attention and sliding_attention are known")
    end
    kinds[i] = kind == "sliding_attention" and narrow or all
    if kind == "sliding_attention" and not window and own.local_theta == nil then
      kinds[i] = all
    end
  end
  return kinds
end

local function read(op, config, own)
  local r = core.model_config(op, config)
  local c = {
    vocab_size = r:size "vocab_size", hidden_size = r:size "hidden_size", layers = r:layers "num_hidden_layers",
    heads = r:size "num_attention_heads", intermediate_size = r:size "intermediate_size",
    positions = r:size("max_position_embeddings", 2048), eps = r:number("rms_norm_eps", 1e-6, 0),
    std = r:number("initializer_range", 0.02, 0), qk_norm = own.qk_norm, around_one = own.around_one,
    four_norms = own.four_norms, mlp_bias = r:flag("mlp_bias", false),
    tied = r:flag("tie_word_embeddings", own.tied or false),
    cap = own.window == true and r:optional("attn_logit_softcapping", own.cap) or nil,
    final_cap = own.window == true and r:optional("final_logit_softcapping", own.final_cap) or nil,
    stop = core.read_stop_tokens(config),
  }
  r:only("attention_dropout", 0, "dropout of attention is not known here")
  r:only("use_bidirectional_attention", false, "false is known")
  r:only("pretraining_tp", 1, "1 is known")
  c.kv_heads = r:size("num_key_value_heads", c.heads)
  c.head_dim = r:size("head_dim", own.head_dim or math.max(c.hidden_size // c.heads, 1))
  r:divide("num_attention_heads", c.heads, c.kv_heads)
  c.act = r:choice(own.act and "hidden_activation|hidden_act" or "hidden_act", own.act or "silu",
    core.model_activations)
  if own.act and config.hidden_act == "gelu" then -- of early files, which mean this
    c.act = core.model_activations.gelu_pytorch_tanh
  end
  c.qkv_bias = own.qkv_bias or r:flag("attention_bias", false)
  c.o_bias = own.o_bias == nil and c.qkv_bias
  c.scale = (own.query_scalar and r:number("query_pre_attn_scalar", own.query_scalar, 1e-6) or c.head_dim) ^ -0.5
  c.embed_scale = own.embed_scale and c.hidden_size ^ 0.5 or nil
  c.kinds = read_kinds(op, r, config, c, own)
  return c
end

local function make(name)
  local own, op = FAMILY[name], "models." .. name:gsub("_text$", "")
  return function(config, options)
    local c = read(op, config, own)
    local net = Llama(core.model_builder(op, options, c.std), c)
    return net
  end
end

local makers = {}
for name in pairs(FAMILY) do
  makers[name] = make(name)
  core.model_types[name] = { make = makers[name], ignored = { "^lm_head%.weight$", "rotary_emb%.inv_freq$" } }
end

-- Gemma 3 that sees pictures: of its folders the part that writes. What its text_config leaves out are these.
local TEXT_OF_PICTURES = {
  vocab_size = 262208, hidden_size = 2304, intermediate_size = 9216, num_hidden_layers = 26, num_attention_heads = 8,
  num_key_value_heads = 4, head_dim = 256, max_position_embeddings = 131072, sliding_window = 4096,
}

core.model_types.gemma3 = {
  make = makers.gemma3_text, prefix = "language_model.", ignored = core.model_types.gemma3_text.ignored,
  config = function(config)
    local text = { eos_token_id = config.eos_token_id }
    for _, source in ipairs { TEXT_OF_PICTURES, type(config.text_config) == "table" and config.text_config or {} } do
      for key, value in pairs(source) do
        text[key] = value
      end
    end
    return text
  end,
  rename = function(name)
    return not name:find "^vision_tower%." and not name:find "^multi_modal_projector%." and name or nil
  end,
}

---A decoder by the names of transformers' LlamaConfig (Touvron et al., 2023): Llama 1 to 3, SmolLM and what else says
---so.
---
---    local net = models.llama { vocab_size = 100, hidden_size = 16, intermediate_size = 32, num_hidden_layers = 2,
---      num_attention_heads = 4, num_key_value_heads = 2 }
---
---Fields besides: max_position_embeddings (2048), rms_norm_eps (1e-6), head_dim, hidden_act ("silu"), attention_bias
---and mlp_bias (false), tie_word_embeddings (false), rope_theta (10000), rope_scaling or rope_parameters with rope_type
---"default", "linear", "llama3" or "yarn", partial_rotary_factor (1), rope_interleaved (false; true: features side by
---side are turned, as in .gguf files of Llama), eos_token_id, where models.generate stops.
---
---Errors: DC0101 for a field and for what the model cannot be.
---@param config table
---@param options? { dtype?: string } "f32", "f16" or "bf16"
---@return deepc.models.Llama
function models.llama(config, options)
  local net = makers.llama(config, options)
  return net
end

---By the names of MistralConfig (Jiang et al., 2023): of all layers each token sees sliding_window tokens.
---
---    models.mistral { vocab_size = 100, hidden_size = 16, intermediate_size = 32, num_hidden_layers = 2,
---      num_attention_heads = 4, num_key_value_heads = 2, sliding_window = 8 }
---
---Errors: as models.llama.
---@param config table
---@param options? { dtype?: string }
---@return deepc.models.Llama
function models.mistral(config, options)
  local net = makers.mistral(config, options)
  return net
end

---By the names of Qwen2Config (Yang et al., 2024): queries, keys and values have biases.
---
---    models.qwen2 { vocab_size = 100, hidden_size = 16, intermediate_size = 32, num_hidden_layers = 2,
---      num_attention_heads = 4, num_key_value_heads = 2 }
---
---Errors: as models.llama.
---@param config table
---@param options? { dtype?: string }
---@return deepc.models.Llama
function models.qwen2(config, options)
  local net = makers.qwen2(config, options)
  return net
end

---By the names of Qwen3Config (Yang et al., 2025): queries and keys have norms; head_dim is 128.
---
---    models.qwen3 { vocab_size = 100, hidden_size = 16, intermediate_size = 32, num_hidden_layers = 2,
---      num_attention_heads = 4, num_key_value_heads = 2, head_dim = 4 }
---
---Errors: as models.llama.
---@param config table
---@param options? { dtype?: string }
---@return deepc.models.Llama
function models.qwen3(config, options)
  local net = makers.qwen3(config, options)
  return net
end

---By the names of GemmaConfig (Gemma Team, 2024): norms around 1, embeddings times sqrt(hidden_size), gates by GELU.
---
---    models.gemma { vocab_size = 100, hidden_size = 16, intermediate_size = 32, num_hidden_layers = 2,
---      num_attention_heads = 4, num_key_value_heads = 1, head_dim = 4 }
---
---Errors: as models.llama.
---@param config table
---@param options? { dtype?: string }
---@return deepc.models.Llama
function models.gemma(config, options)
  local net = makers.gemma(config, options)
  return net
end

---By the names of Gemma2Config (Gemma Team, 2024): scores and logits have bounds, every second layer sees a window.
---
---    models.gemma2 { vocab_size = 100, hidden_size = 16, intermediate_size = 32, num_hidden_layers = 2,
---      num_attention_heads = 4, num_key_value_heads = 1, head_dim = 4, sliding_window = 8 }
---
---Errors: as models.llama.
---@param config table
---@param options? { dtype?: string }
---@return deepc.models.Llama
function models.gemma2(config, options)
  local net = makers.gemma2(config, options)
  return net
end

---By the names of Gemma3TextConfig (Gemma Team, 2025): queries and keys have norms, five of six layers see a window and
---turn positions by rope_local_base_freq.
---
---    models.gemma3 { vocab_size = 100, hidden_size = 16, intermediate_size = 32, num_hidden_layers = 2,
---      num_attention_heads = 4, num_key_value_heads = 1, head_dim = 4, sliding_window = 8 }
---
---Errors: as models.llama.
---@param config table
---@param options? { dtype?: string }
---@return deepc.models.Llama
function models.gemma3(config, options)
  local net = makers.gemma3_text(config, options)
  return net
end
