-- Optimisers: opt:step(loss) takes the gradients and updates the parameters, as part of the graph of
-- the typed function it is called in. Hyperparameters are states: opt.lr = 1e-4 acts at the next
-- call, nothing is compiled again.

local dc = require "deepc"
local _, core = ...

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
local methods = {}

local function check_params(op, params)
  if type(params) ~= "table" or #params == 0 then
    core.fail("ARG", op, "a list of parameters is needed", op .. "(net:parameters())")
  end
  local seen = {}
  for i, p in ipairs(params) do
    if core.kind(p) ~= "param" then
      core.fail("ARG", op, ("number %d of the list is no parameter"):format(i), "dc.param makes one")
    elseif seen[p] then
      core.fail("ARG", op, ("numbers %d and %d of the list are the same parameter"):format(seen[p], i))
    end
    seen[p] = i
  end
end

local function check_setting(op, key, value)
  if type(value) ~= "number" and not core.kind(value) then
    core.fail("ARG", op, ("%s is a number or a scalar, not %s"):format(key, type(value)))
  end
end

local function new_state(name, type_text, init)
  local cell = dc.state(type_text, init)
  core.label(cell, name)
  return cell
end

-- One state of zeros for every parameter, named after it.
local function like(params, name)
  local list = {}
  for i, p in ipairs(params) do
    local t = ("%s[%s]"):format(p.dtype, table.concat(p.shape, ", "))
    list[i] = new_state(("%s.%s"):format(name, core.label(p) or i), t)
  end
  return list
end

-- An optimiser keeps its parts in a table of its own, so that assigning opt.lr reaches __newindex.
local function new_class(name, defaults)
  local class, known = {}, {}
  for key in pairs(defaults) do
    known[#known + 1] = key
  end
  table.sort(known)
  local meta = {
    __name = name,
    __index = function(self, key)
      local own = rawget(self, "_own")
      local v = own.hyper[key]
      if v == nil then
        v = own[key]
      end
      if v == nil then
        v = class[key]
      end
      if v == nil then
        core.fail("FIELD", nil, ("%s has no '%s'"):format(name, tostring(key)),
          "its settings are " .. table.concat(known, ", "))
      end
      return v
    end,
    __newindex = function(self, key, value)
      local cell = rawget(self, "_own").hyper[key]
      if not cell then
        core.fail("FIELD", nil, ("%s has no setting '%s'"):format(name, tostring(key)),
          "its settings are " .. table.concat(known, ", "))
      end
      check_setting(name, key, value)
      if key == "momentum" and not rawget(self, "_own").velocity then
        core.fail("ARG", nil, name .. " was made without momentum", name .. "(params, { momentum = 0.9 })")
      end
      cell:set(value)
    end,
    __tostring = function()
      return name
    end,
  }
  setmetatable(class, {
    __index = methods,
    __call = function(_, params, options)
      check_params(name, params)
      core.options(name, options, table.unpack(known))
      local own = { hyper = {}, params = params }
      for key, dflt in pairs(defaults) do
        local v = options and options[key]
        v = v == nil and dflt or v
        check_setting(name, key, v)
        own.hyper[key] = new_state(("%s.%s"):format(name, key), "f32[]", v)
      end
      class.init(own, options or {})
      return setmetatable({ _own = own }, meta)
    end,
  })
  return class
end

---Takes the gradients of loss and updates the parameters. Inside a typed function.
---
---    opt:step(loss, { lr = lr })
---
---Errors: as dc.grad.
---@param loss deepc.Tensor a scalar
---@param options? { lr?: deepc.Tensor|number, unused?: "zero" } instead of opt.lr; zeros instead of an error
function methods:step(loss, options)
  core.options("step", options, "lr", "unused")
  options = options or {}
  local trained, index = {}, {}
  for i, p in ipairs(self.params) do
    if core.kind(p) == "param" then -- a frozen one counts as a state
      trained[#trained + 1], index[#index + 1] = p, i
    end
  end
  if #trained == 0 then
    core.fail("ARG", "step", "every parameter is frozen", "net:unfreeze()")
  end
  local grads = {}
  for k, g in ipairs(dc.grad(loss, trained, { unused = options.unused })) do
    grads[index[k]] = g
  end
  self:update(grads, options.lr or self.lr)
end

-- Calls update(i, p, g) for the parameters that have a gradient.
local function each_gradient(params, grads, update)
  for i, p in ipairs(params) do
    if grads[i] then
      update(i, p, grads[i])
    end
  end
end

---Stochastic gradient descent; with momentum m: v = m v + g, p = p - lr v.
---
---    optim.SGD(net:parameters(), { lr = 1e-2, momentum = 0.9 })
---@class deepc.optim.SGD: deepc.optim.Optimizer
---@overload fun(params: deepc.Cell[], options?: { lr?: number, momentum?: number }): deepc.optim.SGD
optim.SGD = new_class("optim.SGD", { lr = 1e-2, momentum = 0 })

function optim.SGD.init(own, options)
  if options.momentum and options.momentum ~= 0 then
    own.velocity = like(own.params, "velocity")
  end
  own.velocity = own.velocity or false
end

function optim.SGD:update(grads, lr)
  each_gradient(self.params, grads, function(i, p, v)
    if self.velocity then
      v = self.momentum * self.velocity[i] + v
      self.velocity[i]:set(v)
    end
    p:set(p - lr * v)
  end)
end

---Adam (Kingma and Ba, 2015, algorithm 1). The powers of beta1 and beta2 that correct the bias are
---states, multiplied once in each step.
---
---    optim.Adam(net:parameters(), { lr = 1e-3 })
---@class deepc.optim.Adam: deepc.optim.Optimizer
---@overload fun(params: deepc.Cell[], options?: table<string, number>): deepc.optim.Adam
optim.Adam = new_class("optim.Adam", { lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8 })

function optim.Adam.init(own)
  own.m, own.v = like(own.params, "adam.m"), like(own.params, "adam.v")
  own.power1 = new_state("adam.power1", "f32[]", 1)
  own.power2 = new_state("adam.power2", "f32[]", 1)
end

function optim.Adam:update(grads, lr)
  local b1, b2 = self.beta1, self.beta2
  local power1, power2 = self.power1 * b1, self.power2 * b2
  local rate, scale = lr / (1 - power1), 1 / (1 - power2)
  self.power1:set(power1)
  self.power2:set(power2)
  each_gradient(self.params, grads, function(i, p, g)
    local m = b1 * self.m[i] + (1 - b1) * g
    local v = b2 * self.v[i] + (1 - b2) * (g * g)
    self.m[i]:set(m)
    self.v[i]:set(v)
    p:set(p - rate * m / ((v * scale):sqrt() + self.eps))
  end)
end

return core.module("deepc.optim", optim)
