-- ViT by the names of transformers.

local dc = require "deepc"
local nn = require "deepc.nn"
local models = require "deepc.models.base"
require "deepc.models.vision"
local _, core = ...

local Layer = nn.class "models.ViTLayer"

function Layer:init(b, c)
  local n = c.hidden_size
  self.heads, self.act, self.dropout = c.heads, c.act, nn.Dropout(c.dropout)
  self.weight_dropout = c.attention_dropout
  self.attention = {
    attention = { query = b:linear(n, n, c.qkv_bias), key = b:linear(n, n, c.qkv_bias),
      value = b:linear(n, n, c.qkv_bias) },
    output = { dense = b:linear(n, n) },
  }
  self.intermediate = { dense = b:linear(n, c.intermediate_size) }
  self.output = { dense = b:linear(c.intermediate_size, n) }
  self.layernorm_before, self.layernorm_after = b:layer_norm(n, c.eps), b:layer_norm(n, c.eps)
end

function Layer:forward(x)
  local part, normed = self.attention.attention, self.layernorm_before(x)
  local y = nn.scaled_dot_product_attention(core.to_heads(part.query(normed), self.heads),
    core.to_heads(part.key(normed), self.heads), core.to_heads(part.value(normed), self.heads),
    { dropout = self.training and self.weight_dropout or 0 })
  x = x + self.dropout(self.attention.output.dense(core.from_heads(y)))
  y = self.output.dense(self.act(self.intermediate.dense(self.layernorm_after(x))))
  return x + self.dropout(y)
end

---A transformer over patches of images with the names of transformers' ViTModel and ViTForImageClassification. It gives
---vectors [batch, patches + 1, hidden_size] and what a pooler makes of the first; one that has classes gives logits
---instead.
---
---    local hidden, pooled = net(images)
---
---images are floats [batch, channels, height, width], normalised as the weights want it.
---@class deepc.models.ViT: deepc.nn.Layer
local ViT = nn.class "models.ViT"

function ViT:init(b, c)
  local n = c.hidden_size
  self.config = c
  local patches = (c.image_size[1] // c.patch_size[1]) * (c.image_size[2] // c.patch_size[2])
  self.embeddings = {
    cls_token = b:normal(1, 1, n), position_embeddings = b:normal(1, patches + 1, n),
    patch_embeddings = { projection = b:conv(nn.Conv2d, c.channels, n, c.patch_size, { stride = c.patch_size }) },
  }
  local layers = {}
  for i = 1, c.layers do
    layers[i] = Layer(b, c)
  end
  self.encoder, self.layernorm, self.dropout = { layer = layers }, b:layer_norm(n, c.eps), nn.Dropout(c.dropout)
  if c.classes then
    self.classifier = b:linear(n, c.classes)
  else
    self.pooler = { dense = b:linear(n, c.pooler_size) }
  end
end

function ViT:describe()
  return ("models.ViT %d, %d layers"):format(self.config.hidden_size, self.config.layers)
end

function ViT:forward(x)
  local c, parts = self.config, self.embeddings
  local patches = core.patch_vectors("models.ViT", parts.patch_embeddings.projection, x, c.channels, c.image_size)
  local y = dc.concat({ parts.cls_token:expand(x.shape[1], 1, c.hidden_size), patches }, 2) + parts.position_embeddings
  y = self.dropout(y)
  for _, layer in ipairs(self.encoder.layer) do
    y = layer(y)
  end
  y = self.layernorm(y)
  if self.classifier then
    y = self.classifier(y[{ {}, 1 }])
    return y
  end
  return y, c.pooler_act(self.pooler.dense(y[{ {}, 1 }]))
end

-- A size, or a list of two.
local function both(r, config, name, default)
  local value = config[name]
  if type(value) == "table" and #value == 2 then
    local pair = core.model_config(r.op, { [name .. "[0]"] = value[1], [name .. "[1]"] = value[2] })
    return { pair:size(name .. "[0]"), pair:size(name .. "[1]") }
  end
  local size = r:size(name, default)
  return { size, size }
end

-- How many classes a config of transformers has, where it is of a model with classes.
function core.read_classes(r, config, suffix)
  local name = type(config.architectures) == "table" and config.architectures[1]
  if type(name) ~= "string" or not name:find(suffix .. "$") then
    return config.num_labels and r:size "num_labels" or nil
  end
  return core.count_classes(r, config)
end

---A vision transformer by the names of transformers' ViTConfig (Dosovitskiy et al., 2021). models.vision_transformer is
---that of torchvision.
---
---    models.vit { hidden_size = 16, num_hidden_layers = 2, num_attention_heads = 2, intermediate_size = 32,
---      image_size = 32, patch_size = 8, num_labels = 10 }
---
---Fields of the config: hidden_size (768), num_hidden_layers (12), num_attention_heads (12), intermediate_size (3072),
---image_size (224), patch_size (16), num_channels (3), hidden_act ("gelu"), layer_norm_eps (1e-12), qkv_bias (true),
---hidden_dropout_prob and attention_probs_dropout_prob (0), pooler_act ("tanh"), num_labels: classes; without, a
---pooler.
---
---Errors: DC0101 for a field.
---@param config table
---@param options? { dtype?: string } "f32", "f16" or "bf16"
---@return deepc.models.ViT
function models.vit(config, options)
  local op = "models.vit"
  local r = core.model_config(op, config)
  local c = {
    hidden_size = r:size("hidden_size", 768), layers = r:layers("num_hidden_layers", 12),
    heads = r:size("num_attention_heads", 12), intermediate_size = r:size("intermediate_size", 3072),
    image_size = both(r, config, "image_size", 224), patch_size = both(r, config, "patch_size", 16),
    channels = r:size("num_channels", 3), act = r:choice("hidden_act", "gelu", core.model_activations),
    eps = r:number("layer_norm_eps", 1e-12, 0), qkv_bias = r:flag("qkv_bias", true),
    dropout = r:number("hidden_dropout_prob", 0, 0), attention_dropout = r:number("attention_probs_dropout_prob", 0, 0),
    std = r:number("initializer_range", 0.02, 0), pooler_act = r:choice("pooler_act", "tanh", core.model_activations),
    classes = core.read_classes(r, config, "ForImageClassification"),
  }
  c.pooler_size = r:size("pooler_output_size", c.hidden_size)
  r:divide("hidden_size", c.hidden_size, c.heads)
  r:divide("image_size", c.image_size[1], c.patch_size[1])
  r:divide("image_size", c.image_size[2], c.patch_size[2])
  local net = ViT(core.model_builder(op, options, c.std), c)
  return net
end

-- Names of later files as those of earlier ones.
local RENAMED = {
  ["attention%.q_proj"] = "attention.attention.query", ["attention%.k_proj"] = "attention.attention.key",
  ["attention%.v_proj"] = "attention.attention.value", ["attention%.o_proj"] = "attention.output.dense",
  ["mlp%.fc1"] = "intermediate.dense", ["mlp%.fc2"] = "output.dense",
}

core.model_types.vit = {
  make = models.vit, prefix = "vit.", ignored = { "^embeddings%.mask_token$", "^pooler%." }, optional = { "^pooler%." },
  rename = function(name)
    name = name:gsub("^layers%.", "encoder.layer.")
    for pattern, ours in pairs(RENAMED) do
      name = name:gsub(pattern, ours)
    end
    return name
  end,
}
