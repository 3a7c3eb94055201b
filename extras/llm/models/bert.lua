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

local FEW = 16 -- rows for which a product takes the time of reading its weights

-- Whether queries, keys and values are better one product: of few rows, or of as many as there are when it runs. A
-- typed function joins the weights once, and once more when they have changed.
local function reads_at_once(self, x)
  local part, rows = self.attention.self, 1
  for i = 1, 2 do
    local size = x.shape[i]
    rows = rows and not core.is_size(size) and rows * size or nil
  end
  for _, layer in pairs(part) do
    if getmetatable(layer) ~= nn.Linear or not layer.bias then
      return false
    end
  end
  return core.tracing() and not self.training and (not rows or rows <= FEW)
end

local function project(self, x)
  local part = self.attention.self
  local q, k, v = part.query, part.key, part.value
  if not reads_at_once(self, x) then
    return q(x), k(x), v(x)
  end
  local all = x:matmul(dc.concat({ q.weight, k.weight, v.weight }, 2)) + dc.concat({ q.bias, k.bias, v.bias }, 1)
  return all:split(3, -1)
end

function Layer:forward(x, mask)
  local out = self.attention.output
  local q, k, v = project(self, x)
  local y = nn.scaled_dot_product_attention(core.to_heads(q, self.heads), core.to_heads(k, self.heads),
    core.to_heads(v, self.heads), { mask = mask, dropout = self.training and self.weight_dropout or 0 })
  x = out.LayerNorm(self.dropout(out.dense(core.from_heads(y))) + x)
  y = self.output.dense(self.act(self.intermediate.dense(x)))
  return self.output.LayerNorm(self.dropout(y) + x)
end

-- Heads: what a model makes of the vectors of an encoder, by the family and the kind, "classes" of texts, of "tokens",
-- or tokens for those that are hidden by a "mask". Each gives the parts, and a function of them.
local HEADS = { bert = {}, roberta = {}, distilbert = {} }

local function on_tokens(b, c)
  return { classifier = b:linear(c.hidden_size, c.classes) }, function(self, x)
    return self.classifier(x)
  end
end

HEADS.bert.tokens, HEADS.roberta.tokens, HEADS.distilbert.tokens = on_tokens, on_tokens, on_tokens

function HEADS.bert.classes(b, c)
  return { classifier = b:linear(c.hidden_size, c.classes) }, function(self, _, pooled)
    return self.classifier(self.dropout(pooled))
  end
end

function HEADS.roberta.classes(b, c)
  local n = c.hidden_size
  return { classifier = { dense = b:linear(n, n), out_proj = b:linear(n, c.classes) } }, function(self, x)
    local part = self.classifier
    return part.out_proj(self.dropout(part.dense(self.dropout(x[{ {}, 1 }])):tanh()))
  end
end

function HEADS.distilbert.classes(b, c)
  local n = c.hidden_size
  return { pre_classifier = b:linear(n, n), classifier = b:linear(n, c.classes) }, function(self, x)
    return self.classifier(self.dropout(self.pre_classifier(x[{ {}, 1 }]):relu()))
  end
end

-- Logits for all tokens, by the rows of the embedding.
local function to_tokens(self, x, bias)
  return x:matmul(self.embeddings.word_embeddings.weight:transpose()) + bias
end

function HEADS.bert.mask(b, c)
  local n = c.hidden_size
  return { cls = { predictions = { bias = b:zeros(c.vocab_size), transform = { dense = b:linear(n, n),
    LayerNorm = b:layer_norm(n, c.eps) } } } }, function(self, x)
    local part = self.cls.predictions
    return to_tokens(self, part.transform.LayerNorm(c.act(part.transform.dense(x))), part.bias)
  end
end

function HEADS.roberta.mask(b, c)
  local n = c.hidden_size
  return { lm_head = { dense = b:linear(n, n), layer_norm = b:layer_norm(n, c.eps), bias = b:zeros(c.vocab_size) } },
    function(self, x)
      local part = self.lm_head
      return to_tokens(self, part.layer_norm(part.dense(x):gelu()), part.bias)
    end
end

function HEADS.distilbert.mask(b, c)
  local n = c.hidden_size
  return { vocab_transform = b:linear(n, n), vocab_layer_norm = b:layer_norm(n, c.eps),
    vocab_projector = { bias = b:zeros(c.vocab_size) } }, function(self, x)
    return to_tokens(self, self.vocab_layer_norm(c.act(self.vocab_transform(x))), self.vocab_projector.bias)
  end
end

---An encoder of texts (Devlin et al., 2019), as transformers' BertModel, RobertaModel and DistilBertModel: called with
---ids it gives a vector for each token, and one for the whole where it has a pooler. One with a head gives logits
---instead: as ...ForSequenceClassification [batch, classes], ...ForTokenClassification [batch, time, classes],
---...ForMaskedLM [batch, time, vocab_size].
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
  if c.head then
    local parts, head = HEADS[c.family][c.head](b, c)
    self.head = head
    for name, part in pairs(parts) do
      self[name] = part
    end
  end
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
  local real = ids:ne(pad)
  return real:cumsum(2) * real:cast "i32" + pad
end

-- Vectors of tokens, and of the whole.
local function encode(self, ids, options)
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

function Bert:forward(ids, options)
  local x, pooled = encode(self, ids, options)
  if self.head then
    local y = self.head(self, x, pooled)
    return y
  end
  return x, pooled
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
  local x = encode(self, ids, { mask = options.mask, token_types = options.token_types })
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

local ENDS = { ForSequenceClassification = "classes", ForTokenClassification = "tokens", ForMaskedLM = "mask" }

-- What head a config asks for: by architectures, or by a field of its own.
local function read_head(r, config, c)
  local name = type(config.architectures) == "table" and config.architectures[1]
  local head = config.head
  for ending, kind in pairs(ENDS) do
    if head == nil and type(name) == "string" and name:find(ending .. "$") then
      head = kind
    end
  end
  if head ~= nil and not HEADS.bert[head] then
    r:refuse("head", head, "known are classes, mask, tokens")
  end
  c.head = head
  if head and head ~= "mask" then
    c.classes = core.count_classes(r, config)
  end
  c.pooler = c.family ~= "distilbert" and (not head or c.family == "bert" and head == "classes")
end

-- A config of BERT or RoBERTa in terms of the encoder.
local function read(op, config, family)
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
    std = r:number("initializer_range", 0.02, 0), family = family,
  }
  r:divide("hidden_size", c.hidden_size, c.heads)
  read_head(r, config, c)
  return c, r
end

---An encoder by the names of transformers' BertConfig (Devlin et al., 2019): bert-base, MiniLM, BGE, E5.
---
---    models.bert { vocab_size = 100, hidden_size = 16, num_hidden_layers = 2, num_attention_heads = 2,
---      intermediate_size = 32 }
---
---Fields of the config besides: max_position_embeddings (512), type_vocab_size (2), hidden_act ("gelu"), layer_norm_eps
---(1e-12), hidden_dropout_prob and attention_probs_dropout_prob (0.1, while training), initializer_range (0.02); head:
---"classes" of texts or of "tokens", as many as num_labels (2), or "mask", tokens for those that are hidden, where
---architectures does not say it. Others are not looked at.
---
---Errors: DC0101 for a field and for what the model cannot be.
---@param config table
---@param options? { dtype?: string } "f32", "f16" or "bf16"
---@return deepc.models.Bert
function models.bert(config, options)
  local op = "models.bert"
  local c = read(op, config, "bert")
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
  local c, r = read(op, config, "roberta")
  c.padding_row = r:number("pad_token_id", 1, 0)
  local net = Bert(core.model_builder(op, options, c.std), c)
  return net
end

---The same by the names of DistilBertConfig (Sanh et al., 2019), without a pooler.
---
---    models.distilbert { vocab_size = 100, dim = 16, n_layers = 2, n_heads = 2, hidden_dim = 32 }
---
---Errors: as models.bert.
---@param config table
---@param options? { dtype?: string }
---@return deepc.models.Bert
function models.distilbert(config, options)
  local op = "models.distilbert"
  local r = core.model_config(op, config)
  r:only("sinusoidal_pos_embds", false, "false is known; rows of the file serve both")
  local c = {
    family = "distilbert", vocab_size = r:size("vocab_size", 30522), hidden_size = r:size("dim|hidden_size", 768),
    layers = r:layers("n_layers", 6), heads = r:size("n_heads", 12), intermediate_size = r:size("hidden_dim", 3072),
    positions = r:size("max_position_embeddings", 512), types = 0, eps = 1e-12,
    act = r:choice("activation", "gelu", core.model_activations), dropout = r:number("dropout", 0.1, 0),
    attention_dropout = r:number("attention_dropout", 0.1, 0), std = r:number("initializer_range", 0.02, 0),
  }
  r:divide("dim", c.hidden_size, c.heads)
  read_head(r, config, c)
  local net = Bert(core.model_builder(op, options, c.std), c)
  return net
end

local IGNORED = { "^cls%.", "^lm_head%.", "^classifier%.", "^pooler%.", "^embeddings%.position_ids$" }
local OPTIONAL = { "^pooler%." }

-- Names of the first files.
local function renamed(name)
  return (name:gsub("LayerNorm%.gamma$", "LayerNorm.weight"):gsub("LayerNorm%.beta$", "LayerNorm.bias"))
end

local DISTILLED = {
  { "^transformer%.layer%.", "encoder.layer." }, { "%.attention%.q_lin%.", ".attention.self.query." },
  { "%.attention%.k_lin%.", ".attention.self.key." }, { "%.attention%.v_lin%.", ".attention.self.value." },
  { "%.attention%.out_lin%.", ".attention.output.dense." }, { "%.sa_layer_norm%.", ".attention.output.LayerNorm." },
  { "%.ffn%.lin1%.", ".intermediate.dense." }, { "%.ffn%.lin2%.", ".output.dense." },
  { "%.output_layer_norm%.", ".output.LayerNorm." },
}

core.model_types.bert = { make = models.bert, prefix = "bert.", ignored = IGNORED, optional = OPTIONAL,
  rename = renamed }
core.model_types.roberta = { make = models.roberta, prefix = "roberta.", ignored = IGNORED, optional = OPTIONAL }
core.model_types["xlm-roberta"] = core.model_types.roberta
core.model_types.distilbert = {
  make = models.distilbert, prefix = "distilbert.", ignored = { "^vocab_", "^classifier%.", "^pre_classifier%." },
  rename = function(name)
    for _, pair in ipairs(DISTILLED) do
      name = name:gsub(pair[1], pair[2])
    end
    return name
  end,
}
