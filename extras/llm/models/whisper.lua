-- Whisper: an encoder of sounds and a decoder that writes what is said.

local dc = require "deepc"
local nn = require "deepc.nn"
local signal = require "deepc.signal"
local models = require "deepc.models.base"
require "deepc.models.decoder"
local _, core = ...

-- ---- layers ----

local Attention = nn.class "models.WhisperAttention"

function Attention:init(b, n, heads)
  self.heads, self.scale = heads, (n // heads) ^ -0.5
  self.q_proj, self.k_proj = b:linear(n, n), b:linear(n, n, false)
  self.v_proj, self.out_proj = b:linear(n, n), b:linear(n, n)
end

local function split_heads(x, heads)
  local shape = x.shape
  return x:reshape(shape[1], shape[2], heads, shape[3] // heads)
end

-- Of x to itself: past, a state of what was before; causal.
function Attention:forward(x, o)
  local q, k, v = split_heads(self.q_proj(x), self.heads), split_heads(self.k_proj(x), self.heads),
    split_heads(self.v_proj(x), self.heads)
  return self.out_proj(core.attend(q, k, v, { scale = self.scale, past = o.past, causal = o.causal }))
end

-- Keys and values of a memory, [2, batch, heads, time, features].
function Attention:remember(memory)
  return dc.stack({ core.to_heads(self.k_proj(memory), self.heads), core.to_heads(self.v_proj(memory), self.heads) }, 1)
end

-- Of x to a memory, by its keys and values.
function Attention:look(x, both)
  local q = core.to_heads(self.q_proj(x), self.heads)
  local y = nn.scaled_dot_product_attention(q, both[1], both[2], { scale = self.scale })
  return self.out_proj(core.from_heads(y))
end

local Encoder = nn.class "models.WhisperEncoderLayer"

function Encoder:init(b, c)
  local n = c.hidden_size
  self.act, self.self_attn = c.act, Attention(b, n, c.encoder_heads)
  self.self_attn_layer_norm, self.final_layer_norm = b:layer_norm(n, 1e-5), b:layer_norm(n, 1e-5)
  self.fc1, self.fc2 = b:linear(n, c.encoder_ffn), b:linear(c.encoder_ffn, n)
end

function Encoder:forward(x)
  x = x + self.self_attn(self.self_attn_layer_norm(x), { causal = false })
  return x + self.fc2(self.act(self.fc1(self.final_layer_norm(x))))
end

local Decoder = nn.class "models.WhisperDecoderLayer"

function Decoder:init(b, c)
  local n = c.hidden_size
  self.act, self.self_attn, self.encoder_attn = c.act, Attention(b, n, c.heads), Attention(b, n, c.heads)
  self.self_attn_layer_norm, self.encoder_attn_layer_norm = b:layer_norm(n, 1e-5), b:layer_norm(n, 1e-5)
  self.final_layer_norm = b:layer_norm(n, 1e-5)
  self.fc1, self.fc2 = b:linear(n, c.decoder_ffn), b:linear(c.decoder_ffn, n)
end

function Decoder:forward(x, both, past)
  x = x + self.self_attn(self.self_attn_layer_norm(x), { past = past })
  x = x + self.encoder_attn:look(self.encoder_attn_layer_norm(x), both)
  return x + self.fc2(self.act(self.fc1(self.final_layer_norm(x))))
end

-- ---- the model ----

---What is said in a sound (Radford et al., 2023), with the names of transformers' WhisperForConditionalGeneration.
---Called with features and ids it gives logits for the token behind each.
---
---    local logits = net(features, ids)                    -- [batch, time, vocab_size]
---
---features are those of models.whisper_features, [batch, num_mel_bins, 2 max_source_positions]. To write, a cache
---listens first: net:listen(features, cache); then net:step and models.generate go on as with models that write alone.
---@class deepc.models.Whisper: deepc.models.Decoder
local Whisper = core.make_decoder(nn.class "models.Whisper")

function Whisper:init(b, c)
  local n, encoders, decoders = c.hidden_size, {}, {}
  for i = 1, c.encoder_layers do
    encoders[i] = Encoder(b, c)
  end
  for i = 1, c.layers do
    decoders[i] = Decoder(b, c)
  end
  self.config, self.dtype = c, b.dtype
  self.model = {
    encoder = {
      conv1 = b:conv(nn.Conv1d, c.mels, n, 3, { padding = 1 }),
      conv2 = b:conv(nn.Conv1d, n, n, 3, { stride = 2, padding = 1 }),
      embed_positions = b:embedding(c.frames, n), layers = encoders, layer_norm = b:layer_norm(n, 1e-5),
    },
    decoder = {
      embed_tokens = b:embedding(c.vocab_size, n), embed_positions = b:embedding(c.positions, n),
      layers = decoders, layer_norm = b:layer_norm(n, 1e-5),
    },
  }
end

function Whisper:describe()
  return ("models.Whisper %d, %d and %d layers"):format(self.config.hidden_size, self.config.encoder_layers,
    self.config.layers)
end

---What the encoder makes of features, [batch, max_source_positions, d_model].
---
---    local memory = net:encode(features)
---
---Errors: DC0301 for features of other sizes.
---@param features deepc.Tensor [batch, num_mel_bins, 2 max_source_positions]
---@return deepc.Tensor
function Whisper:encode(features)
  local op, c, parts = "encode", self.config, self.model.encoder
  core.check_tensor(op, features, "features")
  local shape = features.shape
  if #shape ~= 3 or shape[2] ~= c.mels or shape[3] ~= 2 * c.frames then
    core.fail("DIMS", op, ("features are %s[%s]; [batch, %d, %d] is needed"):format(features.dtype, core.sizes(shape),
      c.mels, 2 * c.frames), "models.whisper_features makes them of a sound", "features", features)
  end
  local x = parts.conv2(parts.conv1(features):gelu()):gelu():transpose(2, 3)
  x = x * c.embed_scale + parts.embed_positions.weight
  for _, layer in ipairs(parts.layers) do
    x = layer(x)
  end
  local y = parts.layer_norm(x)
  return y
end

-- Logits of tokens. both[i] are keys and values of the memory for layer i; o as of core.decoder_call.
local function write(self, ids, both, o)
  local c, parts = self.config, self.model.decoder
  core.check_positions("models.Whisper", ids, c.positions)
  local positions = dc.iota(ids.shape[2])
  local x = parts.embed_tokens(ids) * c.embed_scale
    + parts.embed_positions(o.before and positions + o.before or positions)
  for i, layer in ipairs(parts.layers) do
    x = layer(x, both[i], o.layers[i])
  end
  x = parts.layer_norm(o.last and x[{ {}, -1 }] or x)
  return x:matmul(parts.embed_tokens.weight:transpose())
end

function Whisper:forward(features, ids, options)
  core.options("models.Whisper", options, "last")
  local o = core.decoder_call("models.Whisper", self, ids, options)
  local memory, both = self:encode(features), {}
  for i, layer in ipairs(self.model.decoder.layers) do
    both[i] = layer.encoder_attn:remember(memory)
  end
  local y = write(self, ids, both, o)
  return y
end

---Logits of tokens of which a cache has listened to a sound. net:step calls it.
---
---    local logits = net:decode(ids, { cache = cache, last = true })
---
---Errors: DC0101 without a cache that has listened.
---@param ids deepc.Tensor integers [batch, time]
---@param options { cache: deepc.models.Cache, last?: boolean }
---@return deepc.Tensor
function Whisper:decode(ids, options)
  local o = core.decoder_call("decode", self, ids, options)
  local cache = options and options.cache
  if not cache or not cache.memory then
    core.fail("ARG", "decode", "a cache that has listened is needed", "net:listen(features, cache)")
  end
  local y = write(self, ids, cache.memory, o)
  return y
end

-- Typed functions that encode, by cache.
local listening = setmetatable({}, { __mode = "k" })

local function listener(net, cache)
  local c, known = net.config, listening[cache]
  if known and known.net == net then
    return known.f
  end
  local f = dc.fn(("listen(features: %s[%d, %d, %d])"):format(net.dtype, cache.batch, c.mels, 2 * c.frames),
    function(features)
      local memory = net:encode(features)
      for i, layer in ipairs(net.model.decoder.layers) do
        cache.memory[i]:set(layer.encoder_attn:remember(memory))
      end
    end)
  listening[cache] = { net = net, f = f }
  return f
end

---A cache listens to a sound: it keeps what the decoder looks at, and forgets what was written.
---
---    net:listen(features, cache)
---    local tokens = models.generate(net, { 50258, 50259 }, { cache = cache })
---
---Errors: DC0101 for what is no cache of this model, DC0301 for features of other sizes.
---@param features deepc.Tensor [batch, num_mel_bins, 2 max_source_positions]
---@param cache deepc.models.Cache
---@return deepc.models.Cache # the cache
function Whisper:listen(features, cache)
  local op, c = "listen", self.config
  core.check_tensor(op, features, "features")
  if not core.is_cache(cache) then
    core.fail("ARG", op, "a cache is needed, not " .. core.describe(cache), "net:cache(448) makes one")
  end
  if not cache.memory then
    local states = {}
    for i = 1, c.layers do
      states[i] = dc.state(("%s[2, %d, %d, %d, %d]"):format(self.dtype, cache.batch, c.heads, c.frames, c.head_dim))
    end
    cache.memory = states
  end
  cache:keep(0)
  listener(self, cache)(features)
  return cache
end

core.method_entries(Whisper, "encode", "decode", "listen")

-- ---- made by configs ----

---A model by the names of transformers' WhisperConfig.
---
---    models.whisper { vocab_size = 100, d_model = 16, encoder_layers = 1, decoder_layers = 1,
---      encoder_attention_heads = 2, decoder_attention_heads = 2, encoder_ffn_dim = 32, decoder_ffn_dim = 32,
---      max_source_positions = 20 }
---
---Fields besides: num_mel_bins (80), max_source_positions (1500), max_target_positions (448), activation_function
---("gelu"), scale_embedding (false), init_std (0.02), eos_token_id, where models.generate stops.
---
---Errors: DC0101 for a field and for what the model cannot be.
---@param config table
---@param options? { dtype?: string } "f32", "f16" or "bf16"
---@return deepc.models.Whisper
function models.whisper(config, options)
  local op = "models.whisper"
  local r = core.model_config(op, config)
  local c = {
    vocab_size = r:size("vocab_size", 51865), hidden_size = r:size("d_model", 384),
    encoder_layers = r:layers("encoder_layers", 4), layers = r:layers("decoder_layers", 4),
    encoder_heads = r:size("encoder_attention_heads", 6), heads = r:size("decoder_attention_heads", 6),
    encoder_ffn = r:size("encoder_ffn_dim", 1536), decoder_ffn = r:size("decoder_ffn_dim", 1536),
    mels = r:size("num_mel_bins", 80), frames = r:size("max_source_positions", 1500),
    positions = r:size("max_target_positions", 448), std = r:number("init_std", 0.02, 0),
    act = r:choice("activation_function", "gelu", core.model_activations), learned_positions = true,
    stop = core.read_stop_tokens(config),
  }
  r:divide("d_model", c.hidden_size, c.encoder_heads)
  c.kv_heads, c.head_dim = c.heads, r:divide("d_model", c.hidden_size, c.heads)
  c.embed_scale = r:flag("scale_embedding", false) and c.hidden_size ^ 0.5 or 1
  r:only("tie_word_embeddings", true, "true is known")
  local net = Whisper(core.model_builder(op, options, c.std), c)
  return net
end

core.model_types.whisper = { make = models.whisper, ignored = { "^proj_out%.weight$" } }

---Features of a sound as Whisper reads them: log mel spectrograms of 30 seconds, between -1 and about 1; what is
---shorter is followed by silence, what is longer cut.
---
---    models.whisper_features(dc.randn("f32[1, 16000]", { seed = 1 }))
---
---Options: mels (80; 128 for large-v3), seconds (30).
---
---Errors: DC0301 for what is no [batch, samples], DC0101 for options.
---@param samples deepc.Tensor f32[batch, samples], 16000 of them a second
---@param options? { mels?: integer, seconds?: integer }
---@return deepc.Tensor # f32[batch, mels, 100 seconds]
function models.whisper_features(samples, options)
  local op = "models.whisper_features"
  core.check_tensor(op, samples, "samples")
  core.options(op, options, "mels", "seconds")
  local mels, seconds = options and options.mels or 80, options and options.seconds or 30
  core.check_size(op, "mels", mels)
  core.check_size(op, "seconds", seconds)
  local shape = samples.shape
  if #shape ~= 2 or samples.dtype ~= "f32" then
    core.fail("DIMS", op, ("samples are %s[%s]; f32[batch, samples] is needed"):format(samples.dtype,
      core.sizes(shape)),
      nil, "samples", samples)
  end
  local n = 16000 * seconds
  local x = shape[2] > n and samples[{ {}, { 1, n } }] or samples
  x = shape[2] < n and x:pad { [2] = { 0, n - shape[2] } } or x
  local powers = signal.mel_spectrogram(x, { sample_rate = 16000, n_fft = 400, hop = 160, mels = mels, high = 8000,
    pad_mode = "reflect" })
  local y = powers[{ {}, {}, { 1, 100 * seconds } }]:maximum(1e-10):log10()
  y = (y:maximum(y:max { axis = { 2, 3 }, keep = true } - 8) + 4) / 4
  return y
end
