-- Optimisers by the gradient and running sums of its squares: SGD, Adagrad, Adadelta, RMSprop, ASGD.

local dc = require "deepc"
local optim = require "deepc.optim.class"
local _, core = ...

local class = core.optim

local like, nothing = class.like, class.nothing

-- ---- SGD ----

---Stochastic gradient descent. With momentum m: v = m v + (1 - d) g, p = p - lr v, where d is `dampening`,
---which the first step leaves out; with `nesterov` besides p = p - lr (g + m v) (Sutskever et al., 2013).
---`weight_decay` w adds w p to g. As torch.optim.SGD.
---
---    optim.SGD(net:parameters(), { lr = 1e-2, momentum = 0.9 })
---@class deepc.optim.SGD: deepc.optim.Optimizer
---@field lr deepc.Cell 1e-3
---@field momentum deepc.Cell none
---@field dampening deepc.Cell none
---@field nesterov boolean false
---@overload fun(params: deepc.Cell[], options?: table<string, number|boolean>): deepc.optim.SGD
optim.SGD = class.new { name = "optim.SGD", defaults = { lr = 1e-3 },
  chosen = { momentum = true, dampening = true }, flags = { nesterov = true } }

function optim.SGD._init(own)
  for _, group in ipairs(own.groups) do
    local momentum, dampening, nesterov = group.hyper.momentum, group.hyper.dampening, group.flag.nesterov
    if nesterov and dampening then
      core.fail("ARG", "optim.SGD", "nesterov is without dampening",
        "optim.SGD(params, { momentum = 0.9, nesterov = true })")
    elseif (nesterov or dampening) and not momentum then
      core.fail("ARG", "optim.SGD", (nesterov and "nesterov" or "dampening") .. " needs momentum",
        nesterov and "optim.SGD(params, { momentum = 0.9, nesterov = true })"
        or "optim.SGD(params, { momentum = 0.9, dampening = 0.1 })")
    end
    own.counts = own.counts or dampening ~= nil -- the first step is another one with it
  end
  own.velocity = like(own, "velocity", function(group) return group.hyper.momentum end)
end

function optim.SGD._share(_, s)
  if s.dampening then
    s.keep = dc.where(s.t:eq(1), 1, 1 - s.dampening)
  end
end

function optim.SGD._update(own, i, x, g, s, flag)
  if own.velocity[i] then
    local v = s.momentum * own.velocity[i] + (s.keep and s.keep * g or g)
    class.keep(own, own.velocity[i], v)
    g = flag.nesterov and g + s.momentum * v or v
  end
  return x - s.lr * g
end

-- ---- Adagrad, Adadelta ----

---Adagrad (Duchi, Hazan and Singer, 2011): s = s + g^2, p = p - lr g / (sqrt(s) + eps). `lr_decay` d divides
---the rate of step t by 1 + (t - 1) d, `initial` is what s begins with (initial_accumulator_value of
---torch.optim.Adagrad).
---
---    optim.Adagrad(net:parameters(), { lr = 1e-2 })
---@class deepc.optim.Adagrad: deepc.optim.Optimizer
---@field lr deepc.Cell 1e-2
---@field lr_decay deepc.Cell none
---@field eps deepc.Cell 1e-10
---@field initial number 0
---@overload fun(params: deepc.Cell[], options?: table<string, number|boolean>): deepc.optim.Adagrad
optim.Adagrad = class.new { name = "optim.Adagrad", defaults = { lr = 1e-2, eps = 1e-10 },
  chosen = { lr_decay = true },
  flags = { initial = function(v) return type(v) == "number" and v >= 0 and v < math.huge end },
  about = { initial = "what the sums of squares begin with, 0 or more" } }

function optim.Adagrad._init(own)
  own.sum = like(own, "squares", nil, function(group) return group.flag.initial end)
  for _, group in ipairs(own.groups) do
    own.counts = own.counts or group.hyper.lr_decay ~= nil
  end
end

function optim.Adagrad._share(_, s)
  s.rate = s.lr_decay and s.lr / (1 + (s.t - 1) * s.lr_decay) or s.lr
end

function optim.Adagrad._update(own, i, x, g, s)
  local sum = own.sum[i] + g * g
  own.set(own.sum[i], sum)
  return x - s.rate * g / (sum:sqrt() + s.eps)
end

---Adadelta (Zeiler, 2012): v = rho v + (1 - rho) g^2, d = g sqrt(u + eps) / sqrt(v + eps),
---u = rho u + (1 - rho) d^2, p = p - lr d. As torch.optim.Adadelta.
---
---    optim.Adadelta(net:parameters())
---@class deepc.optim.Adadelta: deepc.optim.Optimizer
---@field lr deepc.Cell 1
---@field rho deepc.Cell 0.9
---@field eps deepc.Cell 1e-6
---@overload fun(params: deepc.Cell[], options?: table<string, number|boolean>): deepc.optim.Adadelta
optim.Adadelta = class.new { name = "optim.Adadelta", defaults = { lr = 1, rho = 0.9, eps = 1e-6 } }

function optim.Adadelta._init(own)
  own.v, own.u = like(own, "v"), like(own, "u")
end

optim.Adadelta._share = nothing

function optim.Adadelta._update(own, i, x, g, s)
  local v, u = own.v[i], own.u[i]
  local mean = s.rho * v + (1 - s.rho) * (g * g)
  local d = (u + s.eps):sqrt() / (mean + s.eps):sqrt() * g
  class.keep(own, v, mean)
  class.keep(own, u, s.rho * u + (1 - s.rho) * (d * d))
  return x - s.lr * d
end

-- ---- RMSprop ----

---RMSprop (Tieleman and Hinton, 2012): v = alpha v + (1 - alpha) g^2, p = p - lr g / (sqrt(v) + eps). With
---`centered` the running mean of g, squared, is taken from v (Graves, 2013); with momentum m the quotient
---is collected as in SGD. As torch.optim.RMSprop.
---
---    optim.RMSprop(net:parameters(), { lr = 1e-3, alpha = 0.9 })
---@class deepc.optim.RMSprop: deepc.optim.Optimizer
---@field lr deepc.Cell 1e-2
---@field alpha deepc.Cell 0.99
---@field eps deepc.Cell 1e-8
---@field momentum deepc.Cell none
---@field centered boolean false
---@overload fun(params: deepc.Cell[], options?: table<string, number|boolean>): deepc.optim.RMSprop
optim.RMSprop = class.new { name = "optim.RMSprop", defaults = { lr = 1e-2, alpha = 0.99, eps = 1e-8 },
  chosen = { momentum = true }, flags = { centered = true } }

function optim.RMSprop._init(own)
  own.v = like(own, "v")
  own.mean = like(own, "mean", function(group) return group.flag.centered end)
  own.velocity = like(own, "velocity", function(group) return group.hyper.momentum end)
end

optim.RMSprop._share = nothing

function optim.RMSprop._update(own, i, x, g, s)
  local v = s.alpha * own.v[i] + (1 - s.alpha) * (g * g)
  class.keep(own, own.v[i], v)
  if own.mean[i] then
    local mean = s.alpha * own.mean[i] + (1 - s.alpha) * g
    class.keep(own, own.mean[i], mean)
    v = (v - mean * mean):maximum(0) -- rounding may leave less
  end
  g = g / (v:sqrt() + s.eps)
  if own.velocity[i] then
    g = s.momentum * own.velocity[i] + g
    class.keep(own, own.velocity[i], g)
  end
  return x - s.lr * g
end

-- ---- ASGD ----

---Averaged stochastic gradient descent (Polyak and Juditsky, 1992): p = p (1 - lambd r) - r g with the rate
---r = lr / (1 + lambd lr t)^alpha, which falls from the second step on. The mean of p over the steps from `t0`
---on is among its states, `average.NAME`. As torch.optim.ASGD.
---
---    optim.ASGD(net:parameters(), { lr = 1e-2, t0 = 100 })
---@class deepc.optim.ASGD: deepc.optim.Optimizer
---@field lr deepc.Cell 1e-2
---@field lambd deepc.Cell 1e-4
---@field alpha deepc.Cell 0.75
---@field t0 deepc.Cell 1e6
---@overload fun(params: deepc.Cell[], options?: table<string, number|boolean>): deepc.optim.ASGD
optim.ASGD = class.new { name = "optim.ASGD", defaults = { lr = 1e-2, lambd = 1e-4, alpha = 0.75, t0 = 1e6 } }

function optim.ASGD._init(own)
  own.average, own.counts = like(own, "average"), true
end

function optim.ASGD._share(_, s)
  s.rate = s.lr / (1 + s.lambd * s.lr * (s.t - 1)) ^ s.alpha
  s.share = 1 / (s.t - 1 - s.t0):maximum(1)
end

function optim.ASGD._update(own, i, x, g, s)
  local y = x * (1 - s.lambd * s.rate) - s.rate * g
  local average = own.average[i]
  own.set(average, dc.where(s.share:eq(1), y, average + (y - average) * s.share))
  return y
end

