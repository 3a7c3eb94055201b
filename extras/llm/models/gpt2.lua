-- GPT-2: a decoder with learned positions.

local nn = require "deepc.nn"
local models = require "deepc.models.base"
require "deepc.models.decoder"
local _, core = ...

local Block = nn.class "models.GPT2Block"

function Block:init(b, c, scale)
  local n = c.hidden_size
  self.heads, self.scale, self.act, self.dropout = c.heads, scale, c.act, nn.Dropout(c.dropout)
  self.ln_1, self.ln_2 = b:layer_norm(n, c.eps), b:layer_norm(n, c.eps)
  self.attn = { c_attn = b:linear(n, 3 * n), c_proj = b:linear(n, n) }
  self.mlp = { c_fc = b:linear(n, c.intermediate_size), c_proj = b:linear(c.intermediate_size, n) }
end

function Block:forward(x, o)
  local b, n, size = table.unpack(x.shape)
  local q, k, v = table.unpack { self.attn.c_attn(self.ln_1(x)):reshape(b, n, 3 * self.heads,
    size // self.heads):split(3, 3) }
  local y = core.attend(q, k, v, { scale = self.scale, past = o.past, mask = o.mask, start = o.start })
  x = x + self.dropout(self.attn.c_proj(y))
  y = self.mlp.c_proj(self.act(self.mlp.c_fc(self.ln_2(x))))
  return x + self.dropout(y)
end

---A decoder with the names of transformers' GPT2LMHeadModel.
---@class deepc.models.GPT2: deepc.models.Decoder
local GPT2 = core.make_decoder(nn.class "models.GPT2")

function GPT2:init(b, c)
  local blocks = {}
  for i = 1, c.layers do
    blocks[i] = Block(b, c, c.scale / (c.scale_by_layer and i or 1))
  end
  self.config, self.dtype, self.dropout = c, b.dtype, nn.Dropout(c.dropout)
  self.transformer = { wte = b:embedding(c.vocab_size, c.hidden_size), wpe = b:embedding(c.positions, c.hidden_size),
    h = blocks, ln_f = b:layer_norm(c.hidden_size, c.eps) }
  self.lm_head = not c.tied and b:linear(c.hidden_size, c.vocab_size, false) or nil
end

function GPT2:describe()
  return ("models.GPT2 %d, %d layers"):format(self.config.hidden_size, self.config.layers)
end

function GPT2:forward(ids, options)
  local op, parts = "models.GPT2", self.transformer
  local o = core.decoder_call(op, self, ids, options)
  core.check_positions(op, ids, self.config.positions)
  local positions = core.token_positions(ids.shape[2], o)
  if o.start then -- counted from the first token of each text
    positions = (positions:reshape(1, -1) - o.start:reshape(-1, 1)):maximum(0)
  end
  local x = parts.wte(ids) + parts.wpe(positions)
  x = self.dropout(x)
  for i, block in ipairs(parts.h) do
    x = block(x, { past = o.layers[i], mask = o.mask, start = o.start })
  end
  x = parts.ln_f(o.last and x[{ {}, -1 }] or x)
  local y = self.lm_head and self.lm_head(x) or x:matmul(parts.wte.weight:transpose())
  return y
end

---A decoder by the names of transformers' GPT2Config (Radford et al., 2019).
---
---    models.gpt2 { vocab_size = 100, n_embd = 16, n_layer = 2, n_head = 2, n_positions = 64 }
---
---Fields besides: n_inner (4 n_embd), activation_function ("gelu_new"), layer_norm_epsilon (1e-5), resid_pdrop (0.1,
---while training), scale_attn_weights (true), scale_attn_by_inverse_layer_idx (false), tie_word_embeddings (true),
---initializer_range (0.02).
---
---Errors: DC0101 for a field and for what the model cannot be.
---@param config table
---@param options? { dtype?: string } "f32", "f16" or "bf16"
---@return deepc.models.GPT2
function models.gpt2(config, options)
  local op = "models.gpt2"
  local r = core.model_config(op, config)
  local c = {
    vocab_size = r:size("vocab_size", 50257), hidden_size = r:size("n_embd", 768), layers = r:layers("n_layer", 12),
    heads = r:size("n_head", 12), positions = r:size("n_positions", 1024),
    act = r:choice("activation_function", "gelu_new", core.model_activations),
    eps = r:number("layer_norm_epsilon", 1e-5, 0), dropout = r:number("resid_pdrop", 0.1, 0),
    std = r:number("initializer_range", 0.02, 0), tied = r:flag("tie_word_embeddings", true), learned_positions = true,
    scale_by_layer = r:flag("scale_attn_by_inverse_layer_idx", false), stop = core.read_stop_tokens(config),
  }
  c.intermediate_size = r:size("n_inner", 4 * c.hidden_size)
  c.kv_heads, c.head_dim = c.heads, r:divide("n_embd", c.hidden_size, c.heads)
  c.scale = r:flag("scale_attn_weights", true) and c.head_dim ^ -0.5 or 1
  r:only("add_cross_attention", false, "false is known")
  local net = GPT2(core.model_builder(op, options, c.std), c)
  return net
end

core.model_types.gpt2 = {
  make = models.gpt2, linear = "in, out",
  ignored = { "^lm_head%.weight$", "%.attn%.bias$", "%.attn%.masked_bias$" },
  rename = function(name)
    return name:find "^transformer%." and name or name:find "^lm_head%." and name or "transformer." .. name
  end,
}
