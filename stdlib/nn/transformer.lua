-- Transformers: layers of attention and of two linear layers, with what they are given added, and stacks of them.

local dc = require "deepc"
local nn = require "deepc.nn.class"
local _, core = ...

local ACTIVATIONS = { relu = dc.relu, gelu = dc.gelu, silu = dc.silu }

-- ---- what both kinds of layers have ----

local LAYER_OPTIONS = { "feedforward", "dropout", "activation", "norm_first", "batch_first", "eps", "bias", "kv_heads" }

local function with_layer_options(...)
  local list = { table.unpack(LAYER_OPTIONS) }
  for _, name in ipairs { ... } do
    list[#list + 1] = name
  end
  return table.unpack(list)
end

local function activation_of(op, given)
  local f = given == nil and ACTIVATIONS.relu or ACTIVATIONS[given]
  if f then
    return f
  elseif core.control_callable(given) then
    return given
  end
  core.fail("ARG", op,
    ('activation is "relu", "gelu", "silu", a function or a layer, not %s'):format(core.shown(given)))
end

local function init_layer(op, self, size, heads, options)
  core.check_flags(op, options, "norm_first", "batch_first", "bias")
  core.check_probability(op, "dropout", options.dropout)
  core.check_size(op, "feedforward", options.feedforward or 2048)
  self.size, self.heads = size, heads
  self.dropout = options.dropout == nil and 0.1 or options.dropout
  self.norm_first, self.eps = options.norm_first or false, options.eps or 1e-5
  self.activation = activation_of(op, options.activation)
  local bias = core.unless_false(op, options, "bias")
  local function attention()
    return nn.MultiheadAttention(size, heads, { bias = bias, dropout = self.dropout, kv_heads = options.kv_heads,
      batch_first = options.batch_first })
  end
  self.self_attn = attention()
  self.linear1 = nn.Linear(size, options.feedforward or 2048, { bias = bias })
  self.linear2 = nn.Linear(options.feedforward or 2048, size, { bias = bias })
  local function norm()
    return nn.LayerNorm(size, { eps = self.eps, bias = bias })
  end
  return attention, norm
end

local function describe(self)
  return ("%s %d, %d heads"):format(getmetatable(self).__name, self.size, self.heads)
end

local function drop(self, x)
  return self.training and self.dropout > 0 and core.drop(x, self.dropout) or x
end

local function feed(self, x)
  return drop(self, self.linear2(drop(self, self.activation(self.linear1(x)))))
end

-- x with what f makes of it added: of the norm of x, or normalised afterwards.
local function add(self, x, norm, f)
  if self.norm_first then
    return x + f(norm(x))
  end
  return norm(x + f(x))
end

-- ---- layers ----

---A layer of a transformer's encoder: attention of x to itself, then two linear layers, each with x added and a
---nn.LayerNorm (Vaswani et al., 2017). y = layer(x, options): x is [time, batch, size]; options of a call are mask,
---causal and key_padding_mask, as of nn.MultiheadAttention.
---
---    nn.TransformerEncoderLayer(64, 8, { batch_first = true })(dc.ones "f32[2, 10, 64]", { causal = true })
---
---Options of the layer: feedforward (2048, between the linear layers), dropout (0.1), activation ("relu"; "gelu",
---"silu", a function or a layer), norm_first (false; true: norms before attention and linear layers), batch_first
---(false), eps (1e-5), bias (true), kv_heads. Parameters have PyTorch's names.
---
---Errors: DC0101 for sizes and options; when it is called, as nn.MultiheadAttention.
---@class deepc.nn.TransformerEncoderLayer: deepc.nn.Layer
local EncoderLayer = nn.class "nn.TransformerEncoderLayer"
nn.TransformerEncoderLayer = EncoderLayer

---@param size integer
---@param heads integer
---@param options? table see above
function EncoderLayer:init(size, heads, options)
  local op = "nn.TransformerEncoderLayer"
  core.options(op, options, with_layer_options())
  local _, norm = init_layer(op, self, size, heads, options or {})
  self.norm1, self.norm2 = norm(), norm()
end

EncoderLayer.describe = describe

function EncoderLayer:forward(x, options)
  core.options("nn.TransformerEncoderLayer", options, "mask", "causal", "key_padding_mask")
  local y = add(self, x, self.norm1, function(v)
    return drop(self, (self.self_attn(v, nil, nil, options)))
  end)
  y = add(self, y, self.norm2, function(v) return feed(self, v) end)
  return y
end

---A layer of a transformer's decoder: attention of x to itself, attention to a memory, which an encoder made, then two
---linear layers (Vaswani et al., 2017). y = layer(x, memory, options); options of a call are mask, causal and
---key_padding_mask of x, memory_mask and memory_key_padding_mask.
---
---    nn.TransformerDecoderLayer(64, 8)(dc.ones "f32[5, 2, 64]", dc.ones "f32[10, 2, 64]", { causal = true })
---
---Options of the layer: as of nn.TransformerEncoderLayer. Parameters have PyTorch's names.
---
---Errors: DC0101 for sizes and options; when it is called, as nn.MultiheadAttention.
---@class deepc.nn.TransformerDecoderLayer: deepc.nn.Layer
local DecoderLayer = nn.class "nn.TransformerDecoderLayer"
nn.TransformerDecoderLayer = DecoderLayer

---@param size integer
---@param heads integer
---@param options? table as of nn.TransformerEncoderLayer
function DecoderLayer:init(size, heads, options)
  local op = "nn.TransformerDecoderLayer"
  core.options(op, options, with_layer_options())
  local attention, norm = init_layer(op, self, size, heads, options or {})
  self.multihead_attn = attention()
  self.norm1, self.norm2, self.norm3 = norm(), norm(), norm()
end

DecoderLayer.describe = describe

local CALL = { "mask", "causal", "key_padding_mask", "memory_mask", "memory_key_padding_mask" }

function DecoderLayer:forward(x, memory, options)
  local op = "nn.TransformerDecoderLayer"
  core.options(op, options, table.unpack(CALL))
  core.check_tensor(op, memory, "memory")
  options = options or {}
  local own = { mask = options.mask, causal = options.causal, key_padding_mask = options.key_padding_mask }
  local other = { mask = options.memory_mask, key_padding_mask = options.memory_key_padding_mask }
  local y = add(self, x, self.norm1, function(v) return drop(self, (self.self_attn(v, nil, nil, own))) end)
  y = add(self, y, self.norm2, function(v) return drop(self, (self.multihead_attn(v, memory, memory, other))) end)
  y = add(self, y, self.norm3, function(v) return feed(self, v) end)
  return y
end

-- ---- stacks ----

-- As many layers of a class, and a norm at the end.
local function init_stack(op, self, class, size, heads, options)
  core.options(op, options, with_layer_options("layers", "norm"))
  options = options or {}
  core.check_flags(op, options, "norm")
  local count, own = options.layers or 6, {}
  core.check_size(op, "layers", count)
  for _, key in ipairs(LAYER_OPTIONS) do
    own[key] = options[key]
  end
  self.size, self.heads, self.layers = size, heads, {}
  local list = {}
  for i = 1, count do
    list[i] = class(size, heads, own)
  end
  self.layers = list
  local normed = options.norm
  if normed == nil then
    normed = options.norm_first
  end
  if normed then
    self.norm = nn.LayerNorm(size, { eps = options.eps or 1e-5, bias = core.unless_false(op, options, "bias") })
  end
end

local function describe_stack(self)
  return ("%s %d, %d heads, %d layers"):format(getmetatable(self).__name, self.size, self.heads, #self.layers)
end

---Layers of nn.TransformerEncoderLayer one after the other. y = encoder(x, options), as of one of them.
---
---    nn.TransformerEncoder(64, 8, { layers = 2, feedforward = 128 })(dc.ones "f32[10, 2, 64]")
---
---Options: layers (6), norm (a nn.LayerNorm at the end; where norm_first), and those of the layers. Parameters have
---PyTorch's names, which count layers from 0: dc.load(path, encoder, { first = 0 }).
---
---Errors: as nn.TransformerEncoderLayer.
---@class deepc.nn.TransformerEncoder: deepc.nn.Layer
local Encoder = nn.class "nn.TransformerEncoder"
nn.TransformerEncoder = Encoder

---@param size integer
---@param heads integer
---@param options? table see above
function Encoder:init(size, heads, options)
  init_stack("nn.TransformerEncoder", self, EncoderLayer, size, heads, options)
end

Encoder.describe = describe_stack

function Encoder:forward(x, options)
  for i = 1, #self.layers do
    x = self.layers[i](x, options)
  end
  x = self.norm and self.norm(x) or x
  return x
end

---Layers of nn.TransformerDecoderLayer one after the other. y = decoder(x, memory, options), as of one of them.
---
---    local decoder = nn.TransformerDecoder(64, 8, { layers = 2, feedforward = 128 })
---    decoder(dc.ones "f32[5, 2, 64]", dc.ones "f32[10, 2, 64]", { causal = true })
---
---Options: layers (6), norm (a nn.LayerNorm at the end; where norm_first), and those of the layers.
---
---Errors: as nn.TransformerDecoderLayer.
---@class deepc.nn.TransformerDecoder: deepc.nn.Layer
local Decoder = nn.class "nn.TransformerDecoder"
nn.TransformerDecoder = Decoder

---@param size integer
---@param heads integer
---@param options? table see above
function Decoder:init(size, heads, options)
  init_stack("nn.TransformerDecoder", self, DecoderLayer, size, heads, options)
end

Decoder.describe = describe_stack

function Decoder:forward(x, memory, options)
  for i = 1, #self.layers do
    x = self.layers[i](x, memory, options)
  end
  x = self.norm and self.norm(x) or x
  return x
end

---An encoder and a decoder that looks at what it made (Vaswani et al., 2017). y = transformer(source, target, options):
---options of a call are source_mask, source_key_padding_mask; mask, causal, key_padding_mask of the target;
---memory_mask, memory_key_padding_mask.
---
---    local net = nn.Transformer(64, 8, { encoder_layers = 2, decoder_layers = 2, feedforward = 128 })
---    net(dc.ones "f32[10, 2, 64]", dc.ones "f32[5, 2, 64]", { causal = true })
---
---Options: encoder_layers (6), decoder_layers (6), and those of the layers. Both end in a nn.LayerNorm.
---
---Errors: as nn.TransformerEncoderLayer.
---@class deepc.nn.Transformer: deepc.nn.Layer
local Transformer = nn.class "nn.Transformer"
nn.Transformer = Transformer

---@param size integer
---@param heads integer
---@param options? table see above
function Transformer:init(size, heads, options)
  local op = "nn.Transformer"
  core.options(op, options, with_layer_options("encoder_layers", "decoder_layers"))
  options = options or {}
  local function of(layers)
    local own = { layers = layers, norm = true }
    for _, key in ipairs(LAYER_OPTIONS) do
      own[key] = options[key]
    end
    return own
  end
  self.size, self.heads = size, heads
  self.encoder = Encoder(size, heads, of(options.encoder_layers))
  self.decoder = Decoder(size, heads, of(options.decoder_layers))
end

Transformer.describe = describe

function Transformer:forward(source, target, options)
  core.options("nn.Transformer", options, "source_mask", "source_key_padding_mask", table.unpack(CALL))
  options = options or {}
  local memory = self.encoder(source, { mask = options.source_mask,
    key_padding_mask = options.source_key_padding_mask })
  local own = {}
  for _, key in ipairs(CALL) do
    own[key] = options[key]
  end
  local y = self.decoder(target, memory, own)
  return y
end
