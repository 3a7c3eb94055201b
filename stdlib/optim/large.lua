-- Optimisers for large batches and large models: Lion, LAMB, Muon.

local dc = require "deepc"
local optim = require "deepc.optim.class"
local _, core = ...

local class = core.optim

local like, nothing, correction = class.like, class.nothing, class.correction

---Lion (Chen et al., 2023): p = p (1 - lr w) - lr sign(beta1 m + (1 - beta1) g), then
---m = beta2 m + (1 - beta2) g. One moment; the rate is some ten times smaller than that of AdamW, the decay ten
---times larger.
---
---    optim.Lion(net:parameters(), { lr = 1e-4, weight_decay = 0.1 })
---@class deepc.optim.Lion: deepc.optim.Optimizer
---@field lr deepc.Cell 1e-4
---@field beta1 deepc.Cell 0.9
---@field beta2 deepc.Cell 0.99
---@overload fun(params: deepc.Cell[], options?: table<string, number|boolean>): deepc.optim.Lion
optim.Lion = class.new { name = "optim.Lion", defaults = { lr = 1e-4, beta1 = 0.9, beta2 = 0.99 } }

optim.Lion._share = nothing

function optim.Lion._decays()
  return "parameter"
end

function optim.Lion._init(own)
  own.m = like(own, "m")
end

function optim.Lion._update(own, i, x, g, s)
  local m = own.m[i]
  local direction = (s.beta1 * m + (1 - s.beta1) * g):sign()
  class.keep(own, m, s.beta2 * m + (1 - s.beta2) * g)
  return x - s.lr * direction
end

---LAMB (You et al., 2020): u = m / (sqrt(v) + eps) + w p with the corrected moments of Adam, and
---p = p - lr |p| / |u| u for each parameter as a whole; where one of the norms is 0, the quotient is 1.
---
---    optim.LAMB(net:parameters(), { lr = 1e-2, weight_decay = 0.01 })
---@class deepc.optim.LAMB: deepc.optim.Optimizer
---@field lr deepc.Cell 1e-3
---@field beta1 deepc.Cell 0.9
---@field beta2 deepc.Cell 0.999
---@field eps deepc.Cell 1e-6
---@field weight_decay deepc.Cell none
---@overload fun(params: deepc.Cell[], options?: table<string, number|boolean>): deepc.optim.LAMB
optim.LAMB = class.new { name = "optim.LAMB", defaults = { lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-6 } }

optim.LAMB._decays = nothing

function optim.LAMB._init(own)
  own.m, own.v, own.counts = like(own, "m"), like(own, "v"), true
end

function optim.LAMB._share(_, s)
  s.scale1, s.scale2 = 1 / correction(s.beta1, s.t), 1 / correction(s.beta2, s.t)
end

function optim.LAMB._update(own, i, x, g, s)
  local m = s.beta1 * own.m[i] + (1 - s.beta1) * g
  local v = s.beta2 * own.v[i] + (1 - s.beta2) * (g * g)
  class.keep(own, own.m[i], m)
  class.keep(own, own.v[i], v)
  local u = m * s.scale1 / ((v * s.scale2):sqrt() + s.eps)
  if s.weight_decay then
    u = u + s.weight_decay * x
  end
  local size, step = (x * x):sum():sqrt(), (u * u):sum():sqrt()
  local trust = dc.where(size:gt(0) & step:gt(0), size / dc.where(step:gt(0), step, 1), 1)
  return x - s.lr * trust * u
end

-- ---- Muon ----

local adjustments = {
  original = function(rows, columns) return math.max(1, rows / columns) ^ 0.5 end,
  match_rms_adamw = function(rows, columns) return 0.2 * math.max(rows, columns) ^ 0.5 end,
  none = function() return 1 end,
}

---Muon (Jordan et al., 2024): the momentum of a matrix is replaced by the nearest orthogonal one, in `ns_steps`
---iterations of Newton and Schulz, which are products of matrices; p = p (1 - lr w) - lr c u. c is
---max(1, outputs / inputs)^0.5, or with `adjust = "match_rms_adamw"` 0.2 max(outputs, inputs)^0.5, so that rates
---of AdamW fit, or 1 with "none". What is no matrix is updated by AdamW with the rate `adam_lr` (lr unless given),
---`beta1`, `beta2`, `adam_eps`; so are groups with `adamw = true`, as embeddings and the last layer should be.
---As torch.optim.Muon, which takes matrices alone and iterates in bf16; here it is f32.
---
---    optim.Muon(net:parameters(), { lr = 0.02, adam_lr = 1e-3 })
---@class deepc.optim.Muon: deepc.optim.Optimizer
---@field lr deepc.Cell 1e-3
---@field momentum deepc.Cell 0.95
---@field weight_decay deepc.Cell 0.1
---@field eps deepc.Cell 1e-7
---@field adam_lr deepc.Cell none
---@field beta1 deepc.Cell 0.9
---@field beta2 deepc.Cell 0.999
---@field adam_eps deepc.Cell 1e-8
---@field nesterov boolean true
---@field ns_steps integer 5
---@field adjust "original"|"match_rms_adamw"|"none"
---@field adamw boolean false
---@overload fun(params: deepc.Cell[], options?: table<string, number|boolean|string>): deepc.optim.Muon
optim.Muon = class.new { name = "optim.Muon",
  defaults = { lr = 1e-3, momentum = 0.95, weight_decay = 0.1, eps = 1e-7, beta1 = 0.9, beta2 = 0.999,
    adam_eps = 1e-8 },
  chosen = { adam_lr = true },
  flags = { nesterov = true, adamw = true,
    ns_steps = function(v) return math.type(v) == "integer" and v >= 1 and v < 100 end,
    adjust = function(v) return adjustments[v] ~= nil end },
  about = { ns_steps = "a number of iterations, 1 to 99", adjust = '"original", "match_rms_adamw" or "none"' } }

local function is_matrix(group, p)
  return #p.shape == 2 and not group.flag.adamw and not class.is_complex(p)
end

function optim.Muon._init(own)
  local function is_other(group, p)
    return not is_matrix(group, p)
  end
  own.velocity = like(own, "velocity", is_matrix)
  own.m, own.v, own.counts = like(own, "m", is_other), like(own, "v", is_other), true
end

-- lr in a group of both kinds is the rate of its matrices.
function optim.Muon._share(_, s)
  local rate = s.adam_lr or s.lr
  s.adam_rate, s.adam_scale = rate / correction(s.beta1, s.t), 1 / correction(s.beta2, s.t)
  s.adam_shrink = 1 - rate * s.weight_decay
end

-- Weight decay is a part of the update, since rates differ.
optim.Muon._decays = nothing

local A, B, C = 3.4445, -4.7750, 2.0315

-- Of u s v^T about u v^T: five iterations bring singular values to some 0.7 to 1.2.
local function orthogonal(x, steps, eps)
  local turned = x.shape[1] > x.shape[2]
  x = turned and x:transpose() or x
  x = x / (x * x):sum():sqrt():maximum(eps)
  for _ = 1, steps do
    local gram = x:matmul(x:transpose())
    x = A * x + (B * gram + C * gram:matmul(gram)):matmul(x)
  end
  return turned and x:transpose() or x
end

local function muon(own, i, x, g, s, flag)
  local v = s.momentum * own.velocity[i] + (1 - s.momentum) * g
  class.keep(own, own.velocity[i], v)
  if flag.nesterov ~= false then
    v = s.momentum * v + (1 - s.momentum) * g
  end
  local p = own.params[i]
  local rows, columns = p.shape[1], p.shape[2]
  if core.is_linear and core.is_linear[p] then -- [inputs, outputs]
    rows, columns = columns, rows
  end
  local c = adjustments[flag.adjust or "original"](rows, columns)
  return x * s.shrink - s.lr * c * orthogonal(v, flag.ns_steps or 5, s.eps)
end

function optim.Muon._update(own, i, x, g, s, flag)
  if own.velocity[i] then
    x = muon(own, i, x, g, s, flag)
    return x
  end
  local m = s.beta1 * own.m[i] + (1 - s.beta1) * g
  local v = s.beta2 * own.v[i] + (1 - s.beta2) * (g * g)
  class.keep(own, own.m[i], m)
  class.keep(own, own.v[i], v)
  return x * s.adam_shrink - s.adam_rate * m / ((v * s.adam_scale):sqrt() + s.adam_eps)
end

