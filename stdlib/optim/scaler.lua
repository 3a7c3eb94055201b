-- Loss scaling for gradients of f16: the loss is multiplied before gradients are taken, they are divided afterwards; a
-- step whose gradients overflowed is left out and the scale falls, and many good ones let it rise.

local dc = require "deepc"
local optim = require "deepc.optim.class"
local _, core = ...

local class = core.optim

local OP = "optim.GradScaler"

---Dynamic loss scaling (Micikevicius et al., 2018; torch.amp.GradScaler). The scale and the count of good steps are
---states: it changes inside the graph, nothing is read and nothing is compiled again.
---@class deepc.optim.GradScaler
---@field scale deepc.Cell 65536
local Scaler = {}

local meta = { __name = OP, _versioned = true }

local defaults = { scale = 65536, growth_factor = 2, backoff_factor = 0.5, growth_interval = 2000 }

local function new(options)
  core.options(OP, options, "scale", "growth_factor", "backoff_factor", "growth_interval")
  local own = { scaler = true, options = {} }
  for key, value in pairs(defaults) do
    own.options[key] = options and options[key] or value
  end
  local o = own.options
  for key, fits in pairs { scale = function(v) return v > 0 and v < math.huge end,
    growth_factor = function(v) return v > 1 and v < math.huge end,
    backoff_factor = function(v) return v > 0 and v < 1 end,
    growth_interval = function(v) return math.type(v) == "integer" and v > 0 end } do
    if type(o[key]) ~= "number" or not fits(o[key]) then
      core.fail("ARG", OP, ("%s is %s"):format(key, core.shown(o[key])),
        "scale > 0, growth_factor > 1, backoff_factor between 0 and 1, growth_interval a number of steps")
    end
  end
  own.scale, own.good = dc.state("f32[]", o.scale), dc.state "i32[]"
  core.label(own.scale, "scaler.scale")
  core.label(own.good, "scaler.good")
  return setmetatable({ _own = own }, meta)
end

function meta.__index(self, key)
  if key == "scale" then
    return rawget(self, "_own").scale
  end
  return Scaler[key]
end

function meta.__newindex(self, key, value)
  if key ~= "scale" then
    core.fail("FIELD", nil, ("%s has no setting '%s' to assign"):format(OP, tostring(key)), "scaler.scale is one")
  end
  rawget(self, "_own").scale:set(value)
end

function meta.__tostring()
  return OP
end

local function check_self(op, self)
  local own = type(self) == "table" and rawget(self, "_own")
  if not own or not own.scaler then
    core.fail("ARG", op, "an optim.GradScaler is needed, not " .. core.describe(self),
      ("with a colon: scaler:%s(...)"):format(op))
  end
  return own
end

-- Are all numbers of all gradients finite?
local function all_finite(grads)
  local ok
  for _, g in ipairs(grads) do
    if g then
      local finite = g:isfinite():all()
      ok = ok and ok & finite or finite
    end
  end
  return ok
end

-- The scale after a step that was good, or not; only where it is due.
local function move(own, ok, due)
  local o, scale, good = own.options, own.scale, own.good + 1
  local grows = good:ge(o.growth_interval)
  local larger = scale * o.growth_factor
  local after = dc.where(ok, dc.where(grows & larger:isfinite(), larger, scale), scale * o.backoff_factor)
  local count = dc.where(ok & ~grows, good, 0)
  own.scale:set(due and dc.where(due, after, scale) or after)
  own.good:set(due and dc.where(due, count, own.good) or count)
end

---In the place of opt:step(loss, options): gradients are those of the scaled loss, divided by the scale. Where one of
---them is not finite nothing is updated and the scale falls.
---
---    scaler:step(opt, loss)
---
---Errors: as opt:step.
---@param opt deepc.optim.Optimizer
---@param loss deepc.Tensor a scalar
---@param options? { lr?: deepc.Tensor|number, unused?: "zero" }
---@return deepc.Tensor? # with clip_norm, the norm of all gradients before it
function Scaler:step(opt, loss, options)
  local own = check_self("step", self)
  if type(opt) ~= "table" or rawget(opt, "_own") == nil then
    core.fail("ARG", "step", "an optimiser is needed, not " .. core.describe(opt), "scaler:step(opt, loss)")
  elseif type(opt._gradients) ~= "function" then
    core.fail("ARG", "step", ("%s takes steps of its own"):format(tostring(opt)))
  end
  class.check_rate("step", opt, options, "lr", "unused")
  options = options or {}
  local scale = own.scale
  local grads = opt:_gradients("step", loss, options, scale)
  local norm = opt:_apply(grads, options.lr, function(list, due)
    local ok = all_finite(list)
    move(own, ok, due)
    return ok
  end)
  opt:_taken(loss)
  return norm
end

---What is saved of it.
---
---    dc.checkpoint("run.safetensors", { model = net, optimizer = opt, scaler = scaler })
---@return table[] # { name, cell }
function Scaler:named_cells()
  local own = check_self("named_cells", self)
  return { { "scale", own.scale }, { "good", own.good } }
end

---Its states lie on that device from now on, with their values; see net:to.
---
---    scaler:to "eval"
---
---Errors: DC1002 for a device that is not there, DC0604 in a typed function.
---@param device string "cpu", "opencl:0"
---@return deepc.optim.GradScaler # itself
function Scaler:to(device)
  local own = check_self("to", self)
  own.scale:move(device)
  own.good:move(device)
  return self
end

core.entries(Scaler)

---Scales losses so that small gradients of f16 do not vanish: `scale` (65536) to begin with, times `growth_factor`
---(2) after `growth_interval` (2000) good steps, times `backoff_factor` (0.5) after one whose gradients are not finite.
---
---    optim.GradScaler()
---
---Errors: DC0101 for options that do not fit.
---@param options? { scale?: number, growth_factor?: number, backoff_factor?: number, growth_interval?: integer }
---@return deepc.optim.GradScaler
function optim.GradScaler(options)
  return (new(options))
end
