---@meta deepc.optim

-- Made by scripts/reference from stdlib/optim.lua.

---Optimisers.
---
---    local optim = require "deepc.optim"
---@class deepc.optim
local optim = {}

---What the optimisers have in common. Their settings are fields, states that may be assigned:
---`opt.lr = 1e-4` acts at the next call, nothing is compiled again.
---@class deepc.optim.Optimizer
---@field lr deepc.Cell
---@field params deepc.Cell[]
local Optimizer = {}

---Takes the gradients of loss and updates the parameters. Inside a typed function.
---
---    opt:step(loss, { lr = lr })
---
---Errors: as dc.grad.
---@param loss deepc.Tensor a scalar
---@param options? { lr?: deepc.Tensor|number, unused?: "zero" } instead of opt.lr; zeros instead of an error
function Optimizer:step(loss, options) end

---Stochastic gradient descent; with momentum m: v = m v + g, p = p - lr v.
---
---    optim.SGD(net:parameters(), { lr = 1e-2, momentum = 0.9 })
---@class deepc.optim.SGD: deepc.optim.Optimizer
---@overload fun(params: deepc.Cell[], options?: { lr?: number, momentum?: number }): deepc.optim.SGD
optim.SGD = {}

---Adam (Kingma and Ba, 2015, algorithm 1). The powers of beta1 and beta2 that correct the bias are
---states, multiplied once in each step.
---
---    optim.Adam(net:parameters(), { lr = 1e-3 })
---@class deepc.optim.Adam: deepc.optim.Optimizer
---@overload fun(params: deepc.Cell[], options?: table<string, number>): deepc.optim.Adam
optim.Adam = {}

return optim
