-- Optimisers: opt:step(loss) takes the gradients and updates the parameters, as part of the graph of
-- the typed function it is called in. Hyperparameters are states: opt.lr = 1e-4 acts at the next
-- call, nothing is compiled again.
--
-- An update is element-wise over its parameter, so that it and its moments are one kernel. Scalars that
-- all parameters share - rates, corrections of the bias, the factor of clipping - are made once a step.

local dc = require "deepc"
local _, core = ...

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
local methods = {}

-- ---- what it is made of ----

local function check_params(op, params)
  if type(params) ~= "table" or core.kind(params) or getmetatable(params) ~= nil then
    core.fail("ARG", op, "a list of parameters is needed, not " .. core.describe(params), op .. "(net:parameters())")
  elseif #params == 0 then
    core.fail("ARG", op, "the list of parameters is empty",
      "net:parameters() lists those of a layer; none if it is frozen, see net:unfreeze()")
  end
  local seen = {}
  for i = 1, #params do
    local p = params[i]
    if core.kind(p) ~= "param" then
      core.fail("ARG", op, ("number %d of the list is %s, no parameter"):format(i, core.describe(p)),
        "dc.param makes one")
    elseif seen[p] then
      core.fail("ARG", op, ("numbers %d and %d of the list are the same parameter"):format(seen[p], i))
    end
    seen[p] = i
  end
end

-- What a setting may be: finite, at least 0, and below 1 for factors of moving averages.
local below_one = { momentum = true, beta1 = true, beta2 = true, alpha = true }

local function check_setting(op, key, value)
  if type(value) ~= "number" and not core.kind(value) then
    core.fail("ARG", op, ("%s is a number or a scalar, not %s"):format(key, core.describe(value)),
      type(value) == "function" and ("a schedule gives a number for each step: opt.%s = schedule(step)"):format(key)
      or nil)
  elseif type(value) == "number" and not (value >= 0 and value < (below_one[key] and 1 or math.huge)) then
    core.fail("ARG", op, ("%s is %s; it is 0 or more%s"):format(key, core.shown(value),
      below_one[key] and ", and below 1" or value > 0 and ", and finite" or ""))
  end
end

-- A state of the optimiser. `name` is that of the part in what is saved, `label` what errors call it.
local function new_state(own, name, label, type_text, init)
  local cell = dc.state(type_text, init)
  core.label(cell, label)
  own.cells[#own.cells + 1] = { name, cell }
  return cell
end

-- Computed in: updates of 16-bit parameters and their moments are f32.
local function working_dtype(p)
  return p.dtype == "f64" and "f64" or "f32"
end

-- One state of zeros for every parameter, named after it.
local function like(own, name)
  local list, paths, taken = {}, (core.paths_of or {})[own.params] or {}, {}
  for i, p in ipairs(own.params) do
    local t = ("%s[%s]"):format(working_dtype(p), table.concat(p.shape, ", "))
    local label = core.label(p) or tostring(i)
    local path = paths[p] or label
    path = taken[path] and tostring(i) or path -- of a list put together from several
    taken[path] = true
    list[i] = new_state(own, ("%s.%s"):format(name, path), ("%s.%s.%s"):format(own.name, name, label), t)
  end
  return list
end

local function sorted(...)
  local list = {}
  for _, set in ipairs { ... } do
    for key in pairs(set) do
      list[#list + 1] = key
    end
  end
  table.sort(list)
  return list
end

-- ---- classes ----

-- What stands in a hint for a setting that was not given.
local example = { momentum = "0.9", weight_decay = "1e-2" }

-- What optimisers have elsewhere.
local elsewhere = {
  backward = "opt:step(loss) takes the gradients and updates the parameters",
  load_state_dict = "dc.load(path, opt)",
  param_groups = "opt.params are its parameters, opt.lr its rate; several optimisers have several rates",
  state_dict = "opt:named_cells(); dc.save(path, opt)",
  zero_grad = "gradients are not kept: opt:step(loss) takes them anew",
}

-- How scripts see an optimiser: settings are fields. Its parts are in a table of their own (_own), so that
-- assigning opt.lr reaches __newindex.
local function new_meta(name, class, settings, chosen)
  local hint = "its settings are " .. table.concat(settings, ", ")
  local meta = { __name = name, _class = class, _versioned = true }

  local function missing(key, text, instead)
    if chosen[key] then
      core.fail("FIELD", nil, ("%s was made without %s"):format(name, key),
        ("%s(params, { %s = %s })"):format(name, key, example[key] or "1"))
    end
    core.fail("FIELD", nil, ("%s has no %s'%s'"):format(name, text, tostring(key)), instead or hint)
  end

  function meta.__index(self, key)
    local own = rawget(self, "_own")
    local v = own.hyper[key]
    if v == nil then
      v = class[key]
    end
    if v == nil then
      v = key == "params" and own.params or missing(key, "", elsewhere[key])
    end
    return v
  end

  function meta.__newindex(self, key, value)
    local cell = rawget(self, "_own").hyper[key] or missing(key, "setting ")
    check_setting(name, key, value)
    cell:set(value)
  end

  function meta.__tostring()
    return name
  end

  return meta
end

-- The settings of an optimiser as states, in order, and its flags.
local function read_options(own, name, options, spec)
  if type(options) == "number" then
    core.fail("ARG", name, ("options are a table, not %s"):format(core.describe(options)),
      ("%s(params, { lr = %s })"):format(name, options))
  end
  core.options(name, options, table.unpack(sorted(spec.defaults, spec.chosen, spec.flags)))
  options = options or {}
  for _, key in ipairs(spec.settings) do
    local v = options[key]
    if v == nil then
      v = spec.defaults[key] or 0
    end
    check_setting(name, key, v)
    if spec.defaults[key] or v ~= 0 then
      own.hyper[key] = new_state(own, key, ("%s.%s"):format(name, key), "f32[]", v)
    end
  end
  for _, key in ipairs(sorted(spec.flags)) do
    if options[key] ~= nil and type(options[key]) ~= "boolean" then
      core.fail("ARG", name, ("%s is true or false, not %s"):format(key, core.shown(options[key])))
    end
    own.flag[key] = options[key] or false
  end
end

-- A class of optimisers. Settings with a default are always there; `chosen` ones only where they are
-- given, and not 0; flags are true or false. A class has
--
--   _init(own)                makes its states
--   _share(own, s)            adds to s, the scalars of a step, and sets the states among them
--   _update(own, i, x, g, s)  sets the states of parameter i, now x, with gradient g; its new value
local function new_class(name, defaults, chosen, flags)
  local class = {}
  chosen.clip_norm, chosen.clip_value = true, true
  chosen.weight_decay = not defaults.weight_decay or nil
  local spec = { defaults = defaults, chosen = chosen, flags = flags or {}, settings = sorted(defaults, chosen) }
  local meta = new_meta(name, class, spec.settings, chosen)
  return setmetatable(class, {
    __index = methods,
    __call = function(_, params, options)
      check_params(name, params)
      local own = { name = name:match("[^.]+$"):lower(), params = params, cells = {}, hyper = {}, flag = {},
        last = setmetatable({}, { __mode = "v" }) }
      read_options(own, name, options, spec)
      class._init(own)
      return setmetatable({ _own = own }, meta)
    end,
  })
end

-- ---- a step ----

local function check_self(op, self)
  if type(self) ~= "table" or not rawget(self, "_own") then
    core.fail("ARG", op, "an optimiser is needed, not " .. core.describe(self),
      ("with a colon: opt:%s(...)"):format(op))
  end
end

-- Options with a rate for one step.
local function check_rate(op, options, ...)
  core.options(op, options, ...)
  if options and options.lr ~= nil then
    check_setting(op, "lr", options.lr)
  end
end

-- A second step with one loss would repeat the first one's gradients: what was meant is another loss.
local function check_loss(self, loss)
  local own = rawget(self, "_own")
  if not core.kind(loss) then
    core.fail("ARG", "step", "the loss is needed, a tensor, not " .. core.describe(loss))
  elseif rawequal(own.last.loss, loss) then
    core.fail("ARG", "step", ("%s has taken a step with this loss before"):format(getmetatable(self).__name),
      "compute the loss anew for another step; opt:apply(gradients) repeats gradients", "loss", loss)
  end
end

-- x in another dtype, if it is another one.
local function as(x, dtype)
  if type(x) == "number" or x.dtype == dtype then
    return x
  end
  return (x:cast(dtype))
end

-- The gradients that are there, every element within the bound.
local function clip_values(own, grads)
  local list, bound = {}, own.hyper.clip_value
  for i = 1, #own.params do
    local g = grads[i] or false
    if g and bound then
      local b = as(bound, g.dtype)
      g = g:minimum(b):maximum(-b)
    end
    list[i] = g
  end
  return list
end

-- All of them times the factor that brings their common norm down to the limit; and that norm.
local function clip_norm(own, grads)
  local limit, total = own.hyper.clip_norm, nil
  for _, g in ipairs(grads) do
    if g then
      g = as(g, "f32")
      local squares = (g * g):sum()
      total = total and total + squares or squares
    end
  end
  local norm = total and total:sqrt() or dc.zeros "f32[]"
  local factor = (limit / (norm + 1e-6)):minimum(1)
  for i, g in ipairs(grads) do
    grads[i] = g and g * as(factor, g.dtype)
  end
  return grads, norm
end

local function clip(own, grads)
  grads = clip_values(own, grads)
  if own.hyper.clip_norm then
    return clip_norm(own, grads)
  end
  return grads
end

-- A gradient has its parameter's shape, and its dtype or the one that it is updated in.
local function check_gradient(i, p, g)
  if g == false then
    return
  elseif not core.kind(g) then
    core.fail("ARG", "apply", ("gradient %d is %s, not a tensor"):format(i, core.describe(g)),
      "false leaves a parameter as it is")
  end
  local text = ("gradient %d is %s, its parameter %s"):format(i, core.describe(g), core.describe(p))
  if table.concat(g.shape, ",") ~= table.concat(p.shape, ",") then
    core.fail("DIMS", "apply", text, nil, "gradient", g, "parameter", p)
  elseif g.dtype ~= p.dtype and g.dtype ~= working_dtype(p) then
    core.fail("DTYPE", "apply", text, ("dtypes never mix; gradient:cast %q converts"):format(p.dtype),
      "gradient", g, "parameter", p)
  end
end

-- One for each parameter, no more and no fewer.
local function check_gradients(self, grads)
  local hint = "one for each of opt.params, in their order; false leaves a parameter as it is"
  if type(grads) ~= "table" or core.kind(grads) then
    core.fail("ARG", "apply", "a list of gradients is needed, not " .. core.describe(grads),
      core.kind(grads) and #self.params == 1 and "in a list: opt:apply({ gradient })"
      or "opt:apply(dc.grad(loss, opt.params))")
  end
  local n, given = #self.params, 0
  for key in pairs(grads) do
    if math.type(key) ~= "integer" or key < 1 then
      core.fail("ARG", "apply", "a list of gradients is needed, not a table with the key " .. tostring(key), hint)
    end
    given = math.max(given, key)
  end
  if given ~= n then
    core.fail("ARG", "apply", ("%d gradient%s for %d parameter%s"):format(given, given == 1 and "" or "s", n,
      n == 1 and "" or "s"), hint)
  end
  for i, p in ipairs(self.params) do
    check_gradient(i, p, grads[i])
  end
end

---Updates the parameters with gradients given by hand: one for each of opt.params, of its shape and dtype,
---or f32 for one of 16 bits; false leaves a parameter as it is.
---
---    opt:apply(dc.grad(loss, opt.params))
---
---Errors: DC0101 where there are more or fewer than parameters, DC0301, DC0202 for shapes and dtypes.
---@param grads (deepc.Tensor|false)[]
---@param options? { lr?: deepc.Tensor|number } instead of opt.lr
---@return deepc.Tensor? # with clip_norm, the norm of all gradients before it
function methods:apply(grads, options)
  check_self("apply", self)
  check_rate("apply", options, "lr")
  check_gradients(self, grads)
  local norm = self:_apply(grads, options and options.lr)
  return norm
end

-- The scalars of a step in the dtype that a parameter is updated in.
local function scalars_in(dtype, shared)
  return setmetatable({}, {
    __index = function(s, key)
      local x = shared[key]
      if x ~= nil then
        x = as(x, dtype)
        s[key] = x
      end
      return x
    end,
  })
end

function methods:_apply(grads, lr)
  local own, class = rawget(self, "_own"), getmetatable(self)._class
  local norm
  grads, norm = clip(own, grads)
  local shared = setmetatable({ lr = lr }, { __index = own.hyper })
  class._share(own, shared)
  local scalars = { f32 = scalars_in("f32", shared), f64 = scalars_in("f64", shared) }
  for i, p in ipairs(own.params) do
    if grads[i] then
      local dtype = working_dtype(p)
      local x, g, s = as(p, dtype), as(grads[i], dtype), scalars[dtype]
      if s.weight_decay and not class._decoupled then
        g = g + s.weight_decay * x
      end
      p:set(as(class._update(own, i, x, g, s), p.dtype))
    end
  end
  return norm
end

---Takes the gradients of loss and updates the parameters. Inside a typed function.
---
---    opt:step(loss, { lr = lr })
---
---Errors: as dc.grad.
---@param loss deepc.Tensor a scalar
---@param options? { lr?: deepc.Tensor|number, unused?: "zero" } instead of opt.lr; zeros instead of an error
---@return deepc.Tensor? # with clip_norm, the norm of all gradients before it
function methods:step(loss, options)
  check_self("step", self)
  check_rate("step", options, "lr", "unused")
  options = options or {}
  check_loss(self, loss)
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
  local norm = self:_apply(grads, options.lr)
  rawget(self, "_own").last.loss = loss
  return norm
end

---Everything that is saved of it: settings and states, named after the parameters they belong to.
---
---    for _, named in ipairs(opt:named_cells()) do print(named[1], named[2].dtype) end
---@return table[] # { name, cell }
function methods:named_cells()
  check_self("named_cells", self)
  local list = {}
  for i, entry in ipairs(rawget(self, "_own").cells) do
    list[i] = { entry[1], entry[2] }
  end
  return list
end

-- ---- optimisers ----

---Stochastic gradient descent. With momentum m: v = m v + g, p = p - lr v; with `nesterov` besides
---p = p - lr (g + m v) (Sutskever et al., 2013). `weight_decay` w adds w p to g.
---
---    optim.SGD(net:parameters(), { lr = 1e-2, momentum = 0.9 })
---@class deepc.optim.SGD: deepc.optim.Optimizer
---@field lr deepc.Cell 1e-2
---@field momentum deepc.Cell none
---@field nesterov boolean false
---@overload fun(params: deepc.Cell[], options?: table<string, number|boolean>): deepc.optim.SGD
optim.SGD = new_class("optim.SGD", { lr = 1e-2 }, { momentum = true }, { nesterov = true })

function optim.SGD._init(own)
  if own.flag.nesterov and not own.hyper.momentum then
    core.fail("ARG", "optim.SGD", "nesterov needs momentum", "optim.SGD(params, { momentum = 0.9, nesterov = true })")
  end
  own.velocity = own.hyper.momentum and like(own, "velocity")
end

function optim.SGD._share() end

function optim.SGD._update(own, i, x, g, s)
  if own.velocity then
    local v = s.momentum * own.velocity[i] + g
    own.velocity[i]:set(v)
    g = own.flag.nesterov and g + s.momentum * v or v
  end
  return x - s.lr * g
end

-- The moments of Adam and the powers of beta1 and beta2 that correct the bias; these are states,
-- multiplied once in each step.
local function init_moments(own)
  own.m, own.v = like(own, "m"), like(own, "v")
  own.power1 = new_state(own, "power1", own.name .. ".power1", "f32[]", 1)
  own.power2 = new_state(own, "power2", own.name .. ".power2", "f32[]", 1)
end

local function share_powers(own, s)
  local power1, power2 = own.power1 * s.beta1, own.power2 * s.beta2
  own.power1:set(power1)
  own.power2:set(power2)
  s.rate, s.scale = s.lr / (1 - power1), 1 / (1 - power2)
end

local function adam(own, i, x, g, s)
  local m = s.beta1 * own.m[i] + (1 - s.beta1) * g
  local v = s.beta2 * own.v[i] + (1 - s.beta2) * (g * g)
  own.m[i]:set(m)
  own.v[i]:set(v)
  return x - s.rate * m / ((v * s.scale):sqrt() + s.eps)
end

---Adam (Kingma and Ba, 2015, algorithm 1). `weight_decay` w adds w p to the gradient; see AdamW.
---
---    optim.Adam(net:parameters(), { lr = 1e-3 })
---@class deepc.optim.Adam: deepc.optim.Optimizer
---@field lr deepc.Cell 1e-3
---@field beta1 deepc.Cell 0.9
---@field beta2 deepc.Cell 0.999
---@field eps deepc.Cell 1e-8
---@overload fun(params: deepc.Cell[], options?: table<string, number|boolean>): deepc.optim.Adam
optim.Adam = new_class("optim.Adam", { lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8 }, {})

optim.Adam._init, optim.Adam._share, optim.Adam._update = init_moments, share_powers, adam

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
optim.AdamW = new_class("optim.AdamW", { lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 1e-2 }, {})

optim.AdamW._init, optim.AdamW._decoupled = init_moments, true

function optim.AdamW._share(own, s)
  share_powers(own, s)
  s.shrink = 1 - s.lr * s.weight_decay
end

function optim.AdamW._update(own, i, x, g, s)
  local y = adam(own, i, x * s.shrink, g, s)
  return y
end

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
optim.RMSprop = new_class("optim.RMSprop", { lr = 1e-2, alpha = 0.99, eps = 1e-8 }, { momentum = true },
  { centered = true })

function optim.RMSprop._init(own)
  own.v = like(own, "v")
  own.mean = own.flag.centered and like(own, "mean")
  own.velocity = own.hyper.momentum and like(own, "velocity")
end

function optim.RMSprop._share() end

function optim.RMSprop._update(own, i, x, g, s)
  local v = s.alpha * own.v[i] + (1 - s.alpha) * (g * g)
  own.v[i]:set(v)
  if own.mean then
    local mean = s.alpha * own.mean[i] + (1 - s.alpha) * g
    own.mean[i]:set(mean)
    v = (v - mean * mean):maximum(0) -- rounding may leave less
  end
  g = g / (v:sqrt() + s.eps)
  if own.velocity then
    g = s.momentum * own.velocity[i] + g
    own.velocity[i]:set(g)
  end
  return x - s.lr * g
end

return core.module("deepc.optim", optim)
