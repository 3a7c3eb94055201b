---@meta deepc.optim

-- Made by scripts/reference from stdlib/optim.lua.

---Optimisers.
---
---    local optim = require "deepc.optim"
---@class deepc.optim
local optim = {}

---What the optimisers have in common. Their settings are fields, states that may be assigned:
---`opt.lr = 1e-4` acts at the next call, nothing is compiled again. Each takes these besides its own:
---`weight_decay`, `clip_norm` scales all gradients so that the norm of all together is at most that
---(Pascanu, Mikolov and Bengio, 2013), `clip_value` bounds every element, before that. What is not given
---when the optimiser is made costs nothing and cannot be assigned later.
---@class deepc.optim.Optimizer
---@field params deepc.Cell[]
---@field lr deepc.Cell
---@field weight_decay deepc.Cell none
---@field clip_norm deepc.Cell none
---@field clip_value deepc.Cell none
local Optimizer = {}

---Updates the parameters with gradients given by hand: one for each of opt.params, of its shape and dtype,
---or f32 for one of 16 bits; false leaves a parameter as it is.
---
---    opt:apply(dc.grad(loss, opt.params))
---
---Errors: DC0101 where there are more or fewer than parameters, DC0301, DC0202 for shapes and dtypes.
---@param grads (deepc.Tensor|false)[]
---@param options? { lr?: deepc.Tensor|number } instead of opt.lr
---@return deepc.Tensor? # with clip_norm, the norm of all gradients before it
function Optimizer:apply(grads, options) end

---Takes the gradients of loss and updates the parameters. Inside a typed function.
---
---    opt:step(loss, { lr = lr })
---
---Errors: as dc.grad.
---@param loss deepc.Tensor a scalar
---@param options? { lr?: deepc.Tensor|number, unused?: "zero" } instead of opt.lr; zeros instead of an error
---@return deepc.Tensor? # with clip_norm, the norm of all gradients before it
function Optimizer:step(loss, options) end

---Everything that is saved of it: settings and states, named after the parameters they belong to.
---
---    for _, named in ipairs(opt:named_cells()) do print(named[1], named[2].dtype) end
---@return table[] # { name, cell }
function Optimizer:named_cells() end

---Stochastic gradient descent. With momentum m: v = m v + g, p = p - lr v; with `nesterov` besides
---p = p - lr (g + m v) (Sutskever et al., 2013). `weight_decay` w adds w p to g.
---
---    optim.SGD(net:parameters(), { lr = 1e-2, momentum = 0.9 })
---@class deepc.optim.SGD: deepc.optim.Optimizer
---@field lr deepc.Cell 1e-2
---@field momentum deepc.Cell none
---@field nesterov boolean false
---@overload fun(params: deepc.Cell[], options?: table<string, number|boolean>): deepc.optim.SGD
optim.SGD = {}

---Adam (Kingma and Ba, 2015, algorithm 1). `weight_decay` w adds w p to the gradient; see AdamW.
---
---    optim.Adam(net:parameters(), { lr = 1e-3 })
---@class deepc.optim.Adam: deepc.optim.Optimizer
---@field lr deepc.Cell 1e-3
---@field beta1 deepc.Cell 0.9
---@field beta2 deepc.Cell 0.999
---@field eps deepc.Cell 1e-8
---@overload fun(params: deepc.Cell[], options?: table<string, number|boolean>): deepc.optim.Adam
optim.Adam = {}

---Adam with decoupled weight decay (Loshchilov and Hutter, 2019): p is multiplied by 1 - lr w first, and
---the moments know nothing of it. weight_decay is 0.01 unless given.
---
---    optim.AdamW(net:parameters(), { lr = 1e-3, weight_decay = 0.05 })
---@class deepc.optim.AdamW: deepc.optim.Optimizer
---@field lr deepc.Cell 1e-3
---@field beta1 deepc.Cell 0.9
---@field beta2 deepc.Cell 0.999
---@field eps deepc.Cell 1e-8
---@field weight_decay deepc.Cell 1e-2
---@overload fun(params: deepc.Cell[], options?: table<string, number|boolean>): deepc.optim.AdamW
optim.AdamW = {}

---RMSprop (Tieleman and Hinton, 2012): v = alpha v + (1 - alpha) g^2, p = p - lr g / (sqrt(v) + eps). With
---`centered` the running mean of g, squared, is taken from v (Graves, 2013); with momentum m the quotient
---is collected as in SGD.
---
---    optim.RMSprop(net:parameters(), { lr = 1e-3, alpha = 0.9 })
---@class deepc.optim.RMSprop: deepc.optim.Optimizer
---@field lr deepc.Cell 1e-2
---@field alpha deepc.Cell 0.99
---@field eps deepc.Cell 1e-8
---@field momentum deepc.Cell none
---@field centered boolean false
---@overload fun(params: deepc.Cell[], options?: table<string, number|boolean>): deepc.optim.RMSprop
optim.RMSprop = {}

return optim
