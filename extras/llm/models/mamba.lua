-- Mamba: a decoder whose layers keep a state of fixed size instead of what was before.

local dc = require "deepc"
local nn = require "deepc.nn"
local models = require "deepc.models.base"
require "deepc.models.decoder"
local _, core = ...

-- ---- layers ----

local Mixer = nn.class "models.MambaMixer"

function Mixer:init(b, c)
  local inner, states, rank = c.inner, c.states, c.rank
  self.inner, self.states, self.rank, self.window, self.act = inner, states, rank, c.window, c.act
  self.in_proj, self.out_proj = b:linear(c.hidden_size, 2 * inner, c.bias), b:linear(inner, c.hidden_size, c.bias)
  self.conv1d = { weight = b:normal(inner, 1, c.window), bias = c.conv_bias and b:zeros(inner) or nil }
  self.x_proj, self.dt_proj = b:linear(inner, rank + 2 * states, false), b:linear(rank, inner)
  local logs, steps = dc.iota(states, 1):cast("f32"):log():reshape(1, -1), c.steps
  self.A_log = dc.param(b:type(inner, states), logs:expand(inner, states):cast(b.dtype))
  self.D = b:ones(inner)
  -- Steps start between two lengths, through the inverse of softplus.
  local drawn = (dc.rand(("f32[%d]"):format(inner)) * math.log(steps.high / steps.low) + math.log(steps.low)):exp()
  drawn = drawn:maximum(steps.least)
  self.dt_proj.bias:set((drawn + (-(-drawn):expm1()):log()):cast(b.dtype))
end

-- A convolution over each channel of x [batch, time, inner] that sees what was before: `before`, [batch, window - 1,
-- inner]. The result, and what the next tokens see.
local function convolve(self, x, before)
  local n, window = x.shape[2], self.window
  local all = dc.concat({ before, x }, 2)
  local weight, y = self.conv1d.weight, nil
  for i = 1, window do
    local term = all[{ {}, { i, i + n - 1 } }] * weight[{ {}, 1, i }]
    y = y and y + term or term
  end
  y = self.conv1d.bias and y + self.conv1d.bias or y
  return self.act(y), window > 1 and all[{ {}, { 1 - window, -1 } }] or before
end

-- h becomes exp(dt A) h + dt B x for each token; the result is C h. dt, x: f32[batch, time, inner]; B, C: f32[batch,
-- time, states]; h: f32[batch, inner, states].
local function scan(dt, x, a, B, C, h)
  local function step(state, at)
    local by = (at.dt:reshape(at.dt.shape[1], -1, 1) * a):exp()
    local new = by * state + (at.dt * at.x):reshape(at.dt.shape[1], -1, 1) * at.B:reshape(at.B.shape[1], 1, -1)
    return new, (new * at.C:reshape(at.C.shape[1], 1, -1)):sum(3)
  end
  if x.shape[2] == 1 then
    local last, y = step(h, { dt = dt[{ {}, 1 }], x = x[{ {}, 1 }], B = B[{ {}, 1 }], C = C[{ {}, 1 }] })
    return last, y:reshape(y.shape[1], 1, y.shape[2])
  end
  local last, ys = dc.scan(step, h, { dt = dt:transpose(1, 2), x = x:transpose(1, 2), B = B:transpose(1, 2),
    C = C:transpose(1, 2) })
  return last, ys:transpose(1, 2)
end

-- past: { conv, ssm }, states that are read and set; none: zeros.
function Mixer:forward(x, past)
  local b, inner, states = x.shape[1], self.inner, self.states
  local part, gate = self.in_proj(x):split(2, -1)
  local u, seen = convolve(self, part, past and past.conv or dc.zeros(("%s[1, %d, %d]"):format(x.dtype, self.window - 1,
    inner)):expand(b, self.window - 1, inner))
  local dt, B, C = self.x_proj(u):split({ self.rank, states, states }, -1)
  dt = self.dt_proj(dt):cast("f32"):softplus()
  local wide = u:cast "f32"
  local h = past and past.ssm or dc.zeros(("f32[1, %d, %d]"):format(inner, states)):expand(b, inner, states)
  local last, y = scan(dt, wide, -self.A_log:cast("f32"):exp(), B:cast "f32", C:cast "f32", h)
  if past then
    past.conv:set(seen)
    past.ssm:set(last)
  end
  y = (y + wide * self.D:cast "f32"):cast(x.dtype) * self.act(gate)
  return self.out_proj(y)
end

-- ---- caches ----

local Cache = nn.class "models.MambaCache"
core.add_cache_class(Cache)

function Cache:init(room, batch, states)
  self.room, self.batch, self.layers, self.count = room, batch, states, dc.state "i32[]"
end

function Cache:describe()
  return ("models.MambaCache batch %d"):format(self.batch)
end

function Cache:length()
  return self.count:item()
end

function Cache:keep(n)
  core.refuse_inside(self, "keep()")
  if n ~= 0 and n ~= self:length() then
    core.fail("ARG", "keep", ("%s tokens of %d: a state of fixed size forgets all or nothing"):format(core.shown(n),
      self:length()))
  elseif n == 0 then
    for _, layer in ipairs(self.layers) do
      layer.conv:set(dc.zeros(layer.conv))
      layer.ssm:set(dc.zeros(layer.ssm))
    end
    self.count:set(0)
  end
  return self
end

core.method_entries(Cache, "length", "keep")

-- ---- the model ----

---A decoder of state spaces (Gu and Dao, 2023), with the names of transformers' MambaForCausalLM. The time and the
---memory of a token do not grow with what was before; its cache forgets all or nothing.
---@class deepc.models.Mamba: deepc.models.Decoder
local Mamba = core.make_decoder(nn.class "models.Mamba")

function Mamba:init(b, c)
  local layers = {}
  for i = 1, c.layers do
    layers[i] = { norm = b:made(nn.RMSNorm(c.hidden_size, { eps = c.eps })), mixer = Mixer(b, c) }
  end
  self.config, self.dtype = c, b.dtype
  self.backbone = { embeddings = b:embedding(c.vocab_size, c.hidden_size), layers = layers,
    norm_f = b:made(nn.RMSNorm(c.hidden_size, { eps = c.eps })) }
  self.lm_head = not c.tied and b:linear(c.hidden_size, c.vocab_size, false) or nil
end

function Mamba:describe()
  return ("models.Mamba %d, %d layers"):format(self.config.hidden_size, self.config.layers)
end

-- As that of other decoders: what they are given is a bound for texts, nothing more.
local function make_cache(self, room, options)
  local op, c, states = "cache", self.config, {}
  core.options(op, options, "batch")
  local batch = options and options.batch or 1
  core.check_size(op, "the number of tokens", room)
  core.check_size(op, "batch", batch)
  core.refuse_inside(self, "cache()")
  for i = 1, c.layers do
    states[i] = { conv = dc.state(("%s[%d, %d, %d]"):format(self.dtype, batch, c.window - 1, c.inner)),
      ssm = dc.state(("f32[%d, %d, %d]"):format(batch, c.inner, c.states)) }
  end
  return (Cache(room, batch, states):to(core.device_of(self)))
end

Mamba.cache = core.entries({ cache = make_cache }).cache

function Mamba:forward(ids, options)
  local op = "models.Mamba"
  core.check_ids(op, ids)
  core.options(op, options, "cache", "last")
  options = options or {}
  core.check_flags(op, options, "last")
  local cache, parts = options.cache, self.backbone
  if cache ~= nil and (getmetatable(cache) ~= Cache or #cache.layers ~= self.config.layers
    or cache.layers[1].ssm:size(2) ~= self.config.inner) then
    core.fail("ARG", op, "cache is no cache of this model", "net:cache(2048) makes one")
  end
  local x = parts.embeddings(ids)
  for i, layer in ipairs(parts.layers) do
    x = x + layer.mixer(layer.norm(x), cache and cache.layers[i])
  end
  if cache then
    cache.count:set(cache.count + ids.shape[2])
  end
  x = parts.norm_f(options.last and x[{ {}, -1 }] or x)
  local y = self.lm_head and self.lm_head(x) or x:matmul(parts.embeddings.weight:transpose())
  return y
end

---A decoder by the names of transformers' MambaConfig (Gu and Dao, 2023).
---
---    models.mamba { vocab_size = 100, hidden_size = 16, num_hidden_layers = 2, state_size = 4 }
---
---Fields besides: state_size (16), expand (2), conv_kernel (4), time_step_rank ("auto": hidden_size / 16),
---layer_norm_epsilon (1e-5), hidden_act ("silu"), use_bias (false), use_conv_bias (true), tie_word_embeddings (true),
---time_step_min (0.001), time_step_max (0.1) and time_step_floor (1e-4), of what steps start with.
---
---Errors: DC0101 for a field and for what the model cannot be.
---@param config table
---@param options? { dtype?: string } "f32", "f16" or "bf16"
---@return deepc.models.Mamba
function models.mamba(config, options)
  local op = "models.mamba"
  local r = core.model_config(op, config)
  local c = {
    vocab_size = r:size("vocab_size", 50280), hidden_size = r:size("hidden_size", 768),
    layers = r:layers("num_hidden_layers", 32), states = r:size("state_size", 16), window = r:size("conv_kernel", 4),
    eps = r:number("layer_norm_epsilon", 1e-5, 0), act = r:choice("hidden_act", "silu", core.model_activations),
    bias = r:flag("use_bias", false), conv_bias = r:flag("use_conv_bias", true),
      std = r:number("initializer_range", 0.1, 0),
    tied = r:flag("tie_word_embeddings", true), stop = core.read_stop_tokens(config),
    steps = { low = r:number("time_step_min", 1e-3, 1e-9), high = r:number("time_step_max", 0.1, 1e-9),
      least = r:number("time_step_floor", 1e-4, 0) },
  }
  c.inner = r:size("intermediate_size", c.hidden_size * r:size("expand", 2))
  c.rank = config.time_step_rank == "auto" and (c.hidden_size + 15) // 16
    or r:size("time_step_rank", (c.hidden_size + 15) // 16)
  local net = Mamba(core.model_builder(op, options, c.std), c)
  return net
end

core.model_types.mamba = { make = models.mamba, ignored = { "^lm_head%.weight$" } }
