-- BERT: an encoder of texts, and what is made of it.

local dc = require "deepc"
local nn = require "deepc.nn"
local models = require "deepc.models.base"
local _, core = ...

-- ---- encoders ----

local Layer = nn.class "models.BertLayer"

function Layer:init(b, c)
  local n = c.hidden_size
  self.heads, self.act, self.dropout = c.heads, c.act, nn.Dropout(c.dropout)
  self.attention = {
    self = { query = b:linear(n, n), key = b:linear(n, n), value = b:linear(n, n) },
    output = { dense = b:linear(n, n), LayerNorm = b:layer_norm(n, c.eps) },
  }
  self.weight_dropout = c.attention_dropout
  self.intermediate = { dense = b:linear(n, c.intermediate_size) }
  self.output = { dense = b:linear(c.intermediate_size, n), LayerNorm = b:layer_norm(n, c.eps) }
end

function Layer:forward(x, mask)
  local part, out = self.attention.self, self.attention.output
  local y = nn.scaled_dot_product_attention(core.to_heads(part.query(x), self.heads),
    core.to_heads(part.key(x), self.heads), core.to_heads(part.value(x), self.heads),
    { mask = mask, dropout = self.training and self.weight_dropout or 0 })
  x = out.LayerNorm(self.dropout(out.dense(core.from_heads(y))) + x)
  y = self.output.dense(self.act(self.intermediate.dense(x)))
  return self.output.LayerNorm(self.dropout(y) + x)
end

---An encoder of texts (Devlin et al., 2019), as transformers' BertModel, RobertaModel and DistilBertModel: called with
---ids it gives a vector for each token, and one for the whole where it has a pooler.
---
---    local hidden, pooled = net(ids, { mask = mask })
---
---ids are integers [batch, time]. Options of a call: mask, [batch, time], bools or numbers, false or 0 where a token is
---padding; token_types, integers [batch, time], 0 without.
---@class deepc.models.Bert: deepc.nn.Layer
local Bert = nn.class "models.Bert"

function Bert:init(b, c)
  self.config = c
  self.embeddings = {
    word_embeddings = b:embedding(c.vocab_size, c.hidden_size),
    position_embeddings = b:embedding(c.positions, c.hidden_size),
    token_type_embeddings = c.types > 0 and b:embedding(c.types, c.hidden_size) or nil,
    LayerNorm = b:layer_norm(c.hidden_size, c.eps),
  }
  self.dropout = nn.Dropout(c.dropout)
  local layers = {}
  for i = 1, c.layers do
    layers[i] = Layer(b, c)
  end
  self.encoder = { layer = layers }
  self.pooler = c.pooler and { dense = b:linear(c.hidden_size, c.hidden_size) } or nil
end

function Bert:describe()
  return ("models.Bert %d, %d layers"):format(self.config.hidden_size, self.config.layers)
end

-- Where tokens stand: 0, 1, 2 ..., or counted from behind the number of padding where that has a row.
local function positions_of(self, ids)
  local pad = self.config.padding_row
  if not pad then
    return dc.iota(ids.shape[2])
  end
  local real = ids:ne(pad):cast "i32"
  return real:cumsum(2) * real + pad
end

function Bert:forward(ids, options)
  local op, parts = "models.Bert", self.embeddings
  core.check_ids(op, ids)
  core.options(op, options, "mask", "token_types")
  options = options or {}
  core.check_positions(op, ids, self.config.positions - (self.config.padding_row and self.config.padding_row + 1 or 0))
  local x = parts.word_embeddings(ids) + parts.position_embeddings(positions_of(self, ids))
  if parts.token_type_embeddings then
    x = x + (options.token_types and parts.token_type_embeddings(options.token_types)
      or parts.token_type_embeddings.weight[{ { 1 } }])
  end
  x = self.dropout(parts.LayerNorm(x))
  local mask = options.mask ~= nil and core.check_token_mask(op, options.mask, ids) or nil
  mask = mask and mask:reshape(mask.shape[1], 1, 1, mask.shape[2])
  for _, layer in ipairs(self.encoder.layer) do
    x = layer(x, mask)
  end
  return x, self.pooler and self.pooler.dense(x[{ {}, 1 }]):tanh() or nil
end

local POOLING = { mean = true, cls = true, max = true }

---A vector for each text, as sentence-transformers makes it of an encoder: the mean of the vectors of its tokens, of
---length 1.
---
---    local a = net:embed(ids, { mask = mask })          -- f32[batch, hidden_size]
---
---Options: mask and token_types as of a call; pooling ("mean", "cls", the first token, or "max"; models.load takes that
---of the folder), normalize (true).
---
---Errors: DC0101 for options; as a call of the model.
---@param ids deepc.Tensor integers [batch, time]
---@param options? { mask?: deepc.Tensor, token_types?: deepc.Tensor, pooling?: string, normalize?: boolean }
---@return deepc.Tensor # [batch, hidden_size]
function Bert:embed(ids, options)
  local op = "embed"
  core.options(op, options, "mask", "token_types", "pooling", "normalize")
  options = options or {}
  local pooling = options.pooling or self.config.pooling or "mean"
  if not POOLING[pooling] then
    core.fail("ARG", op, ('pooling is "mean", "cls" or "max", not %s'):format(core.shown(pooling)))
  end
  local x = self(ids, { mask = options.mask, token_types = options.token_types })
  local mask = options.mask ~= nil and core.check_token_mask(op, options.mask, ids) or nil
  mask = mask and mask:reshape(mask.shape[1], mask.shape[2], 1)
  local y
  if pooling == "cls" then
    y = x[{ {}, 1 }]
  elseif pooling == "max" then
    y = (mask and dc.where(mask, x, -1e9) or x):max(2)
  elseif mask then
    local counts = mask:cast(x.dtype)
    y = (x * counts):sum(2) / counts:sum(2):maximum(1e-9)
  else
    y = x:mean(2)
  end
  if core.unless_false(op, options, "normalize") then
    y = nn.normalize(y, { axis = -1 })
  end
  return y
end

core.method_entries(Bert, "embed")

-- ---- made by configs ----

-- A config of BERT or RoBERTa in terms of the encoder.
local function read(op, config)
  local r = core.model_config(op, config)
  r:only("position_embedding_type", "absolute", "absolute positions alone are known")
  r:only("is_decoder", false, "an encoder is what it can be")
  local c = {
    vocab_size = r:size "vocab_size",
    hidden_size = r:size("hidden_size", 768),
    layers = r:layers("num_hidden_layers", 12),
    heads = r:size("num_attention_heads", 12),
    intermediate_size = r:size("intermediate_size", 3072),
    positions = r:size("max_position_embeddings", 512),
    types = r:size("type_vocab_size", 2),
    act = r:choice("hidden_act", "gelu", core.model_activations),
    eps = r:number("layer_norm_eps", 1e-12, 0),
    dropout = r:number("hidden_dropout_prob", 0.1, 0),
    attention_dropout = r:number("attention_probs_dropout_prob", 0.1, 0),
    std = r:number("initializer_range", 0.02, 0),
    pooler = true,
  }
  r:divide("a hidden_size", c.hidden_size, c.heads)
  return c, r
end

---An encoder by the names of transformers' BertConfig (Devlin et al., 2019): bert-base, MiniLM, BGE, E5.
---
---    models.bert { vocab_size = 100, hidden_size = 16, num_hidden_layers = 2, num_attention_heads = 2,
---      intermediate_size = 32 }
---
---Fields of the config besides: max_position_embeddings (512), type_vocab_size (2), hidden_act ("gelu"), layer_norm_eps
---(1e-12), hidden_dropout_prob and attention_probs_dropout_prob (0.1, while training), initializer_range (0.02). Others
---are not looked at.
---
---Errors: DC0101 for a field and for what the model cannot be.
---@param config table
---@param options? { dtype?: string } "f32", "f16" or "bf16"
---@return deepc.models.Bert
function models.bert(config, options)
  local op = "models.bert"
  local c = read(op, config)
  local net = Bert(core.model_builder(op, options, c.std), c)
  return net
end

---The same by the names of RobertaConfig (Liu et al., 2019) and XLMRobertaConfig: positions are counted from behind
---pad_token_id (1), and tokens of it have none.
---
---    models.roberta { vocab_size = 100, hidden_size = 16, num_hidden_layers = 2, num_attention_heads = 2,
---      intermediate_size = 32, type_vocab_size = 1 }
---
---Errors: as models.bert.
---@param config table
---@param options? { dtype?: string }
---@return deepc.models.Bert
function models.roberta(config, options)
  local op = "models.roberta"
  local c, r = read(op, config)
  c.padding_row = r:number("pad_token_id", 1, 0)
  local net = Bert(core.model_builder(op, options, c.std), c)
  return net
end

local IGNORED = { "^cls%.", "^lm_head%.", "^classifier%.", "^embeddings%.position_ids$" }

core.model_types.bert = { make = models.bert, prefix = "bert.", ignored = IGNORED, optional = { "^pooler%." } }
core.model_types.roberta = { make = models.roberta, prefix = "roberta.", ignored = IGNORED, optional = { "^pooler%." } }
core.model_types["xlm-roberta"] = core.model_types.roberta
