-- A step of an optimiser: gradients, added up and bounded, then the update of each parameter by its class.

local dc = require "deepc"
local _, core = ...

local class = core.optim
local methods = class.methods
local as, check_self, check_setting = class.as, class.check_self, class.check_setting
local working_dtype, parts, is_complex = class.working_dtype, class.parts, class.is_complex

-- Options with a rate for one step.
local function check_rate(op, self, options, ...)
  core.options(op, options, ...)
  if options and options.lr ~= nil then
    check_setting(op, "lr", options.lr)
    if rawget(self, "_own").everywhere.lr then
      core.fail("ARG", op, "lr is given, and each group has one of its own", "lr_scale of a group multiplies the rate")
    end
  end
end

-- A second step with one loss would repeat the first one's gradients: what was meant is another loss.
local function check_loss(op, self, loss)
  local own = rawget(self, "_own")
  if not core.kind(loss) then
    core.fail("ARG", op, "the loss is needed, a tensor, not " .. core.describe(loss))
  elseif rawequal(own.last.loss, loss) then
    core.fail("ARG", op, ("%s has taken a step with this loss before"):format(getmetatable(self).__name),
      "compute the loss anew for another step; opt:apply(gradients) repeats gradients", "loss", loss)
  end
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
  elseif g.dtype ~= p.dtype and (is_complex(p) or g.dtype ~= working_dtype(p)) then
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
  check_rate("apply", self, options, "lr")
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

-- The scalars that a group's parameters share.
local function share(own, own_class, group, lr, t)
  local s = setmetatable({ t = t }, { __index = group.hyper })
  s.lr = not rawget(group.hyper, "lr") and lr or s.lr
  if s.lr_scale then
    s.lr = s.lr * s.lr_scale
  end
  if s.weight_decay then
    s.shrink = 1 - s.lr * s.weight_decay
  end
  own_class._share(own, s, group.flag, group)
  return { f32 = scalars_in("f32", s), f64 = scalars_in("f64", s) }
end

-- Sets the parameters, and the states that belong to them, by own.set.
local function update(own, own_class, grads, lr)
  local t
  if own.count then
    t = own.count + 1
    own.set(own.count, t)
    t = t:cast(own.dtype)
  end
  local scalars = {}
  for i, p in ipairs(own.params) do
    if grads[i] then
      local at = own.group_of[i]
      local flag = own.groups[at].flag
      scalars[at] = scalars[at] or share(own, own_class, own.groups[at], lr, t)
      local dtype = working_dtype(p)
      local x, g, s = as(parts(p), dtype), as(grads[i], dtype), scalars[at][dtype]
      if flag.maximize then
        g = -g
      end
      local decayed = s.weight_decay and own_class._decays(flag)
      if decayed == "parameter" then
        x = x * s.shrink
      elseif decayed == "gradient" then
        g = g + s.weight_decay * x
      end
      local new = own_class._update(own, i, x, g, s, flag)
      own.set(p, class.value_of(p, new))
    end
  end
end

-- Adds gradients to those of earlier steps; their mean, and whether it is time for an update.
local function accumulate(own, grads)
  local n = own.summed + 1
  local due = n:ge(own.hyper.accumulate)
  local means = {}
  for i in ipairs(own.params) do
    local g = grads[i] or false
    if g then
      local sum = own.sums[i] + as(g, own.sums[i].dtype)
      own.sums[i]:set(dc.where(due, 0, sum))
      g = sum / n:cast(sum.dtype)
    end
    means[i] = g
  end
  own.summed:set(dc.where(due, 0, n))
  return means, due
end

local function set(cell, v)
  cell:set(v)
end

-- Behind so many steps outside typed functions of one optimiser it is told what they cost, once.
local MANY_STEPS, told = 10, false

local function count_outside(own)
  own.outside = (own.outside or 0) + 1
  if own.outside == MANY_STEPS and not told and not core.checking() then
    told = true
    core.note(("%s: %d steps outside typed functions, where one takes ten times as long, and more: "):format(own.name,
      MANY_STEPS) .. "local step = dc.fn(\"step(x: f32[n, d], y: f32[n]) -> f32[]\", function(x, y) ... opt:step(loss) "
      .. "return loss end)")
  end
end

-- A step that is left out by a choice in each element, not by a branch: in place, where a branch would copy what it
-- sets.
--
-- Gradients of complex parameters are their parts from here on.
--
-- finite(grads), if it is given, is called with the gradients of an update, and whether it is due: no update
-- where what it returns is false.
function methods:_apply(grads, lr, finite)
  local own, own_class, due = rawget(self, "_own"), getmetatable(self)._class, nil
  if not core.tracing() then
    count_outside(own)
  end
  for _, p in ipairs(core.tracing() and {} or own.params) do
    if core.cell_split(p) then
      local label = core.label(p) or "a parameter"
      core.fail("SHARDING", own.name, label .. " is in parts, and those are updated in a typed function")
    end
  end
  if type(lr) ~= "number" and lr ~= nil then
    lr = as(lr, own.dtype)
  end
  local real = {}
  for i = 1, #own.params do
    real[i] = grads[i] and parts(grads[i])
  end
  grads = real
  if own.sums then
    grads, due = accumulate(own, grads)
  end
  local ok = finite and finite(grads, due)
  local norm
  grads, norm = class.clip(own, grads)
  local when = due and ok and due & ok or due or ok
  own.set = when and function(cell, v) cell:set(dc.where(when, v, cell)) end or set
  update(own, own_class, grads, lr)
  return norm
end

-- The gradients of a loss for the parameters that are not frozen, false for the others. With a scale those of the loss
-- times it, divided by it.
function methods:_gradients(op, loss, options, scale)
  check_loss(op, self, loss)
  local trained, index, grads = {}, {}, {}
  for i, p in ipairs(self.params) do
    grads[i] = false
    if core.kind(p) == "param" then -- a frozen one counts as a state
      trained[#trained + 1], index[#index + 1] = p, i
    end
  end
  if #trained == 0 then
    core.fail("ARG", op, "every parameter is frozen", "net:unfreeze()")
  end
  if scale then
    loss = loss.dtype == "f64" and loss * as(scale, "f64") or as(loss, "f32") * scale
  end
  for k, g in ipairs(core.step_grad(getmetatable(self).__name, loss, trained, { unused = options.unused })) do
    if scale then
      local dtype = working_dtype(trained[k])
      g = is_complex(g) and g * as(1 / scale, dtype):cast(g.dtype) or as(g, dtype) * as(1 / scale, dtype)
    end
    grads[index[k]] = g
  end
  return grads
end

-- Takes note that a step was taken with a loss.
function methods:_taken(loss)
  rawget(self, "_own").last.loss = loss
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
  check_rate("step", self, options, "lr", "unused")
  options = options or {}
  local norm = self:_apply(self:_gradients("step", loss, options), options.lr)
  self:_taken(loss)
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

---Its settings and states lie on that device from now on, with their values, as the parameters do after net:to. Those
---of an optimiser that is made later are beside its parameters by themselves.
---
---    net:to "eval"
---    opt:to "eval"
---
---Errors: DC1002 for a device that is not there, DC0604 in a typed function.
---@param device string "cpu", "opencl:0"
---@return deepc.optim.Optimizer # itself
function methods:to(device)
  check_self("to", self)
  for _, entry in ipairs(rawget(self, "_own").cells) do
    entry[2]:move(device)
  end
  return self
end

class.check_rate = check_rate
