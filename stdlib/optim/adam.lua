-- Adam and what was made of it: AdamW, Adamax, NAdam, RAdam.

local dc = require "deepc"
local optim = require "deepc.optim.class"
local _, core = ...

local class = core.optim

local like, correction = class.like, class.correction

local function init_moments(own)
  own.m, own.v, own.counts = like(own, "m"), like(own, "v"), true
  own.most = like(own, "most", function(group) return group.flag.amsgrad end)
end

local function share_corrections(_, s)
  s.rate, s.scale = s.lr / correction(s.beta1, s.t), 1 / correction(s.beta2, s.t)
end

-- The moments, set to what they are after g.
local function moments(own, i, g, s)
  local m = s.beta1 * own.m[i] + (1 - s.beta1) * g
  local v = s.beta2 * own.v[i] + (1 - s.beta2) * (g * g)
  class.keep(own, own.m[i], m)
  class.keep(own, own.v[i], v)
  return m, v
end

local function adam(own, i, x, g, s)
  local m, v = moments(own, i, g, s)
  if own.most[i] then
    v = own.most[i]:maximum(v)
    own.set(own.most[i], v)
  end
  return x - s.rate * m / ((v * s.scale):sqrt() + s.eps)
end

local function decays_where_told(flag)
  return flag.decoupled_weight_decay and "parameter" or "gradient"
end

---Adam (Kingma and Ba, 2015, algorithm 1). `weight_decay` w adds w p to the gradient; with
---`decoupled_weight_decay` it is that of AdamW. `amsgrad` divides by the largest second moment so far (Reddi,
---Kale and Kumar, 2018). As torch.optim.Adam.
---
---    optim.Adam(net:parameters(), { lr = 1e-3 })
---@class deepc.optim.Adam: deepc.optim.Optimizer
---@field lr deepc.Cell 1e-3
---@field beta1 deepc.Cell 0.9
---@field beta2 deepc.Cell 0.999
---@field eps deepc.Cell 1e-8
---@field amsgrad boolean false
---@field decoupled_weight_decay boolean false
---@overload fun(params: deepc.Cell[], options?: table<string, number|boolean>): deepc.optim.Adam
optim.Adam = class.new { name = "optim.Adam", defaults = { lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8 },
  flags = { amsgrad = true, decoupled_weight_decay = true } }

optim.Adam._init, optim.Adam._share, optim.Adam._update = init_moments, share_corrections, adam
optim.Adam._decays = decays_where_told

---Adam with decoupled weight decay (Loshchilov and Hutter, 2019): p is multiplied by 1 - lr w first, and
---the moments know nothing of it. weight_decay is 0.01 unless given. As torch.optim.AdamW.
---
---    optim.AdamW(net:parameters(), { lr = 1e-3, weight_decay = 0.05 })
---@class deepc.optim.AdamW: deepc.optim.Optimizer
---@field lr deepc.Cell 1e-3
---@field beta1 deepc.Cell 0.9
---@field beta2 deepc.Cell 0.999
---@field eps deepc.Cell 1e-8
---@field weight_decay deepc.Cell 1e-2
---@field amsgrad boolean false
---@overload fun(params: deepc.Cell[], options?: table<string, number|boolean>): deepc.optim.AdamW
optim.AdamW = class.new { name = "optim.AdamW", flags = { amsgrad = true },
  defaults = { lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 1e-2 } }

optim.AdamW._init, optim.AdamW._share, optim.AdamW._update = init_moments, share_corrections, adam

function optim.AdamW._decays()
  return "parameter"
end

---Adam by the infinity norm (Kingma and Ba, 2015, algorithm 2): u = max(beta2 u, |g| + eps),
---p = p - lr m / ((1 - beta1^t) u). As torch.optim.Adamax.
---
---    optim.Adamax(net:parameters(), { lr = 2e-3 })
---@class deepc.optim.Adamax: deepc.optim.Optimizer
---@field lr deepc.Cell 2e-3
---@field beta1 deepc.Cell 0.9
---@field beta2 deepc.Cell 0.999
---@field eps deepc.Cell 1e-8
---@overload fun(params: deepc.Cell[], options?: table<string, number|boolean>): deepc.optim.Adamax
optim.Adamax = class.new { name = "optim.Adamax", defaults = { lr = 2e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8 } }

function optim.Adamax._init(own)
  own.m, own.u, own.counts = like(own, "m"), like(own, "u"), true
end

function optim.Adamax._share(_, s)
  s.rate = s.lr / correction(s.beta1, s.t)
end

function optim.Adamax._update(own, i, x, g, s)
  local m = s.beta1 * own.m[i] + (1 - s.beta1) * g
  local u = (s.beta2 * own.u[i]):maximum(g:abs() + s.eps)
  class.keep(own, own.m[i], m)
  class.keep(own, own.u[i], u)
  return x - s.rate * m / u
end

---Adam with Nesterov's momentum (Dozat, 2016), whose momentum rises by `momentum_decay` as in
---torch.optim.NAdam: mu_t = beta1 (1 - 0.96^(t momentum_decay) / 2).
---
---    optim.NAdam(net:parameters(), { lr = 2e-3 })
---@class deepc.optim.NAdam: deepc.optim.Optimizer
---@field lr deepc.Cell 2e-3
---@field beta1 deepc.Cell 0.9
---@field beta2 deepc.Cell 0.999
---@field eps deepc.Cell 1e-8
---@field momentum_decay deepc.Cell 4e-3
---@field decoupled_weight_decay boolean false
---@overload fun(params: deepc.Cell[], options?: table<string, number|boolean>): deepc.optim.NAdam
optim.NAdam = class.new { name = "optim.NAdam", flags = { decoupled_weight_decay = true },
  defaults = { lr = 2e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, momentum_decay = 4e-3 } }

optim.NAdam._decays = decays_where_told

-- Each group has a product of its own, since its settings may differ.
function optim.NAdam._init(own)
  own.m, own.v, own.counts = like(own, "m"), like(own, "v"), true
  for i, group in ipairs(own.groups) do
    group.product = class.scalar(own, #own.groups == 1 and "product" or ("groups.%d.product"):format(i), 1)
  end
end

function optim.NAdam._share(own, s, _, group)
  local function momentum(t)
    return s.beta1 * (1 - 0.5 * (math.log(0.96) * s.momentum_decay * t):exp())
  end
  local mu, after = momentum(s.t), momentum(s.t + 1)
  local product = group.product * mu
  own.set(group.product, product)
  s.scale = 1 / correction(s.beta2, s.t)
  s.of_gradient = s.lr * (1 - mu) / (1 - product)
  s.of_moment = s.lr * after / (1 - product * after)
end

function optim.NAdam._update(own, i, x, g, s)
  local m, v = moments(own, i, g, s)
  local scale = (v * s.scale):sqrt() + s.eps
  return x - s.of_gradient * g / scale - s.of_moment * m / scale
end

---Adam whose rate is rectified while the second moment has seen few gradients (Liu et al., 2020): the first
---steps go by the first moment alone. As torch.optim.RAdam.
---
---    optim.RAdam(net:parameters(), { lr = 1e-3 })
---@class deepc.optim.RAdam: deepc.optim.Optimizer
---@field lr deepc.Cell 1e-3
---@field beta1 deepc.Cell 0.9
---@field beta2 deepc.Cell 0.999
---@field eps deepc.Cell 1e-8
---@field decoupled_weight_decay boolean false
---@overload fun(params: deepc.Cell[], options?: table<string, number|boolean>): deepc.optim.RAdam
optim.RAdam = class.new { name = "optim.RAdam", flags = { decoupled_weight_decay = true },
  defaults = { lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8 } }

optim.RAdam._decays = decays_where_told

function optim.RAdam._init(own)
  own.m, own.v, own.counts = like(own, "m"), like(own, "v"), true
end

-- coth(y) - 1 / y, by its series where the difference would cancel.
local function langevin(y)
  local z = y * y
  local series = y * (1 / 3 - z * (1 / 45 - z * (2 / 945 - z * (1 / 4725 - z * (2 / 93555 - z * (1382 / 638512875))))))
  local large = y:maximum(0.25)
  return dc.where(y:lt(0.5), series, 1 / large:tanh() - 1 / large)
end

-- The paper's rho_t = rho_inf - 2 t beta2^t / (1 - beta2^t) with rho_inf = 2 / (1 - beta2) - 1 is a small difference
-- of large numbers. With u = -ln(beta2) it is t + L(u / 2) - t L(u t / 2), L(y) = coth(y) - 1 / y.
function optim.RAdam._share(_, s)
  local u = -s.beta2:maximum(1e-30):log()
  local rho = s.t + langevin(u / 2) - s.t * langevin(u * s.t / 2)
  local last = (1 + s.beta2) / (1 - s.beta2)
  local safe = rho:maximum(5)
  local rectified = ((safe - 4) * (safe - 2) * last / ((last - 4) * (last - 2) * safe)):sqrt()
  local seen = rho:gt(5)
  s.rate = s.lr / correction(s.beta1, s.t)
  s.rectified = dc.where(seen, rectified * correction(s.beta2, s.t):sqrt(), 0)
  s.plain = dc.where(seen, dc.zeros(rho), 1)
end

function optim.RAdam._update(own, i, x, g, s)
  local m, v = moments(own, i, g, s)
  return x - s.rate * m * (s.plain + s.rectified / (v:sqrt() + s.eps))
end

