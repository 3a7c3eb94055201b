-- Averages of parameters over the steps of training, which take their place for an evaluation.

local dc = require "deepc"
local optim = require "deepc.optim.class"
local _, core = ...

local class = core.optim

---Averages of the parameters of a layer, or of a list of parameters, f32 or f64.
---@class deepc.optim.Average
---@field decay deepc.Cell of an EMA
local Average = {}

local function check_self(op, self)
  if type(self) ~= "table" or not rawget(self, "_own") or getmetatable(self)._is_average == nil then
    core.fail("ARG", op, "averages are needed, not " .. core.describe(self), ("with a colon: ema:%s()"):format(op))
  end
  return rawget(self, "_own")
end

local function check_decay(op, decay)
  if type(decay) ~= "number" or not (decay >= 0 and decay < 1) then
    core.fail("ARG", op, ("decay is %s; it is 0 or more, and below 1"):format(core.shown(decay)), op .. "(net, 0.999)")
  end
end

-- The parameters with the names that their averages have in files.
local function read_what(op, what)
  local list = {}
  if type(what) == "table" and getmetatable(what) ~= nil and core.check_layer then
    core.check_layer(op, what)
    for i, named in ipairs(what:named_parameters()) do
      list[i] = { named[1], named[2] }
    end
    if #list == 0 then
      core.fail("ARG", op, "the layer has no parameters that are trained", "net:unfreeze()")
    end
    return list
  end
  class.check_params(op, what, "")
  local paths = core.paths_of and core.paths_of[what] or {}
  for i, p in ipairs(what) do
    list[i] = { paths[p] or tostring(i), p }
  end
  return list
end

local function new(op, meta, what, decay)
  local own = { name = op, params = {}, averages = {}, cells = {} }
  for i, named in ipairs(read_what(op, what)) do
    local p = named[2]
    own.params[i] = p
    own.averages[i] = dc.state(class.type_of(p), class.as(class.parts(p), class.working_dtype(p)))
    core.label(own.averages[i], "average." .. named[1])
    own.cells[i] = { "average." .. named[1], own.averages[i] }
  end
  local beside = { device = own.params[1].device }
  own.count = dc.state("i32[]", 0, beside)
  table.insert(own.cells, { "count", own.count })
  if decay then
    own.decay = dc.state("f64[]", decay, beside)
    table.insert(own.cells, { "decay", own.decay })
  end
  return setmetatable({ _own = own }, meta)
end

-- The decay of the n-th update.
local function decay_at(own, n)
  if not own.warmup then
    return own.decay
  end
  n = n:cast "f64"
  return dc.minimum(own.decay, (n + 1) / (n + 10))
end

---Takes the parameters as they are now into the averages: behind opt:step, inside the same typed function or
---outside. The first call sets the averages to them.
---
---    ema:update()
---
---Errors: DC0101 while the averages stand in the place of the parameters.
function Average:update()
  local own = check_self("update", self)
  if own.kept then
    core.fail("ARG", "update", "the averages are swapped in: there is nothing to average", "ema:swap_out()")
  end
  local n = own.count + 1
  own.count:set(n)
  for i, p in ipairs(own.params) do
    local average = own.averages[i]
    local x = class.as(class.parts(p), average.dtype)
    local share = own.decay and (1 - decay_at(own, n)):cast(average.dtype) or 1 / n:cast(average.dtype)
    average:set(dc.where(n:eq(1), x, average + (x - average) * share))
  end
end

---Puts the averages in the place of the parameters, whose values are kept until :swap_out. Typed functions
---stay compiled.
---
---    ema:swap_in()
---
---Errors: DC0101 where they are swapped in, DC0608 inside a typed function.
function Average:swap_in()
  local own = check_self("swap_in", self)
  core.refuse_tracing("ema:swap_in")
  if own.kept then
    core.fail("ARG", "swap_in", "the averages are swapped in", "ema:swap_out()")
  end
  own.kept = {}
  for i, p in ipairs(own.params) do
    own.kept[i] = p:clone()
    p:set(class.value_of(p, own.averages[i]))
  end
end

---Puts the parameters back as they were before :swap_in.
---
---    ema:swap_out()
---
---Errors: DC0101 where they are not swapped in.
function Average:swap_out()
  local own = check_self("swap_out", self)
  core.refuse_tracing("ema:swap_out")
  if not own.kept then
    core.fail("ARG", "swap_out", "the averages are not swapped in", "ema:swap_in()")
  end
  for i, p in ipairs(own.params) do
    p:set(own.kept[i])
  end
  own.kept = nil
end

---Calls f, a function of Lua or a typed one, with the averages in the place of the parameters, which come back
---whatever happens.
---
---    local accuracy = ema:averaged(function() return evaluate(net) end)
---
---Errors: those of f.
---@param f fun(...: any): ...
---@param ... any
---@return any ... # what f returns
function Average:averaged(f, ...)
  check_self("averaged", self)
  if not core.control_callable(f) then
    core.fail("ARG", "averaged", "a function is needed, not " .. core.describe(f), "ema:averaged(function() ... end)")
  end
  self:swap_in()
  local back <close> = setmetatable({}, { __close = function() self:swap_out() end }) -- luacheck: ignore
  return f(...)
end

---Its states lie on that device from now on, with their values; see net:to.
---
---    ema:to "eval"
---
---Errors: DC1002 for a device that is not there, DC0604 in a typed function.
---@param device string "cpu", "opencl:0"
---@return deepc.optim.Average # itself
function Average:to(device)
  for _, entry in ipairs(check_self("to", self).cells) do
    entry[2]:move(device)
  end
  return self
end

---What is saved of it.
---
---    dc.checkpoint("run.safetensors", { model = net, optimizer = opt, average = ema })
---
---Errors: DC0101 while the averages stand in the place of the parameters: what is saved would be theirs.
---@return table[] # { name, cell }
function Average:named_cells()
  local own = check_self("named_cells", self)
  if own.kept then
    core.fail("ARG", "named_cells", "the averages are swapped in: parameters are not what training goes on from",
      "ema:swap_out()")
  end
  local list = {}
  for i, entry in ipairs(own.cells) do
    list[i] = { entry[1], entry[2] }
  end
  return list
end

local function meta_of(name)
  local meta = { __name = name, _versioned = true, _is_average = true }
  function meta.__index(self, key)
    if key == "decay" and rawget(self, "_own").decay then
      return rawget(self, "_own").decay
    end
    return Average[key]
  end
  function meta.__newindex(self, key, value)
    local cell = key == "decay" and rawget(self, "_own").decay
    if not cell then
      core.fail("FIELD", nil, ("%s has no setting '%s'"):format(name, tostring(key)))
    end
    check_decay(name, value)
    cell:set(value)
  end
  return meta
end

local ema, swa = meta_of "optim.EMA", meta_of "optim.SWA"

---Exponential moving averages of parameters: a = d a + (1 - d) p at each update (Polyak and Juditsky, 1992;
---torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn). `ema.decay = 0.99` compiles nothing again.
---
---The first update sets the averages to the parameters, which a decay near 1 remembers for thousands of steps. With
---`warmup` the decay of the n-th update is min(d, (1 + n) / (10 + n)), as of TensorFlow's ExponentialMovingAverage with
---num_updates: it comes to 0.9 after 80 steps, to 0.99 after 900 (timm.utils.ModelEmaV3 has another such curve).
---
---    optim.EMA(net, 0.999)
---    optim.EMA(net, 0.9999, { warmup = true })
---
---Errors: DC0101 for what is no layer and no list of parameters, for a decay that is not from 0 to 1, for options.
---@param what deepc.nn.Layer|deepc.Cell[]
---@param decay? number 0.999
---@param options? { warmup?: boolean } false
---@return deepc.optim.Average
function optim.EMA(what, decay, options)
  decay = decay == nil and 0.999 or decay
  check_decay("optim.EMA", decay)
  core.options("optim.EMA", options, "warmup")
  local warmup = options and options.warmup
  if warmup ~= nil and type(warmup) ~= "boolean" then
    core.fail("ARG", "optim.EMA", "warmup is true or false, not " .. core.describe(warmup))
  end
  local average = new("optim.EMA", ema, what, decay)
  average._own.warmup = warmup
  return average
end

---The mean of parameters over all updates: stochastic weight averaging (Izmailov et al., 2018;
---torch.optim.swa_utils.AveragedModel), with an update at the end of each epoch, say. Running statistics of
---batch norms belong to the parameters that they were collected with: collect them anew with the averages
---swapped in.
---
---    optim.SWA(net)
---
---Errors: DC0101 for what is no layer and no list of parameters.
---@param what deepc.nn.Layer|deepc.Cell[]
---@return deepc.optim.Average
function optim.SWA(what)
  local average = new("optim.SWA", swa, what)
  return average
end

core.entries(Average)
