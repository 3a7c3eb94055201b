-- Pipelines: each rank along an axis of the mesh has a stage of a network, through which the parts of a batch go one
-- after the other. What a rank does when is a list of numbers, k for the forward pass of part k, -k for its backward
-- pass, which a step walks through: dc.recv, the stage, dc.send, and dc.grad of what dc.send gave. So a typed function
-- that takes a step has the schedule unrolled, and its plan keeps what the schedule keeps.

local dc = require "deepc"
local nn = require "deepc.nn"
local _, core = ...

---Pipelines: stages of a network on ranks along an axis of the mesh.
---
---    local pipeline = require "deepc.pipeline"
---@class deepc.pipeline
local pipeline = {}

local function fail(op, text, ...)
  core.fail("ARG", op, text:format(...))
end

-- ---- stages ----

-- Numbers in the parameters of a layer, and a little for what has none.
local function weight_of(layer)
  local weight = 1
  for _, p in ipairs(core.is_layer(layer) and layer:parameters() or {}) do
    local count = 1
    for _, size in ipairs(p.shape) do
      count = count * size
    end
    weight = weight + count
  end
  return weight
end

-- How many layers each of n stages has, so that the heaviest one is as light as can be: best[k][i] is the least weight
-- of the heaviest of k stages of the first i layers, from[k][i] where the last of them begins.
local function balance(net, n)
  local before, from, best = { [0] = 0 }, {}, { [0] = {} }
  for i = 1, #net do
    before[i], best[0][i] = before[i - 1] + weight_of(net[i]), math.huge
  end
  best[0][0] = 0
  for k = 1, n do
    best[k], from[k] = {}, {}
    for i = k, #net - (n - k) do
      for j = k - 1, i - 1 do
        local heaviest = math.max(best[k - 1][j] or math.huge, before[i] - before[j])
        if heaviest < (best[k][i] or math.huge) then
          best[k][i], from[k][i] = heaviest, j
        end
      end
    end
  end
  local counts, at = {}, #net
  for k = n, 1, -1 do
    counts[k], at = at - from[k][at], from[k][at]
  end
  return counts
end

local function read_counts(net, list)
  local sum = 0
  for i = 1, #list do
    if math.type(list[i]) ~= "integer" or list[i] < 1 then
      fail("split", "stage %d has %s layers, and needs one at least", i, core.shown(list[i]))
    end
    sum = sum + list[i]
  end
  if sum ~= #net then
    fail("split", "the stages have %d layers, the network has %d", sum, #net)
  end
  return list
end

---The layers of a network, one behind the other, as n networks: those with the most parameters get few layers. A list
---says how many layers each of them has. The layers are shared with the network; a rank that keeps its stage alone has
---the memory of that one.
---
---    local pipeline, nn = require "deepc.pipeline", require "deepc.nn"
---    local stages = pipeline.split(nn.Sequential { nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2) }, 2)
---    print(#stages[1], #stages[2])
---
---Errors: DC0101 for what is no nn.Sequential, or has too few layers.
---@param net deepc.nn.Sequential
---@param n integer|integer[]
---@return deepc.nn.Sequential[]
function pipeline.split(net, n)
  if not core.is_layer(net) or getmetatable(net) ~= nn.Sequential then
    fail("split", "an nn.Sequential is needed, not %s", core.describe(net))
  elseif type(n) ~= "table" and (math.type(n) ~= "integer" or n < 1) then
    fail("split", "a number of stages is needed, or a list of numbers of layers, not %s", core.shown(n))
  elseif type(n) ~= "table" and n > #net then
    fail("split", "%d stages are too many for %d layers", n, #net)
  end
  local counts = type(n) == "table" and read_counts(net, n) or balance(net, n)
  local stages, at = {}, 0
  for i, count in ipairs(counts) do
    local layers = {}
    for k = 1, count do
      layers[k] = net[at + k]
    end
    stages[i], at = nn.Sequential(layers), at + count
  end
  return stages
end

-- ---- schedules ----

-- One forward pass and one backward pass in turns, behind as many forward passes as stages follow (PipeDream-flush:
-- Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training, 2021).
local function one_forward_one_backward(stage, stages, micro)
  local list, ahead = {}, math.min(micro, stages - 1 - stage)
  for k = 1, ahead do
    list[#list + 1] = k
  end
  for k = 1, micro do
    if k + ahead <= micro then
      list[#list + 1] = k + ahead
    end
    list[#list + 1] = -k
  end
  return list
end

-- All forward passes, then all backward passes (Huang et al., GPipe, 2019).
local function all_forward(_, _, micro)
  local list = {}
  for k = 1, micro do
    list[k], list[micro + k] = k, -k
  end
  return list
end

---The part of a network that this rank has, and when it computes what.
---@class deepc.pipeline.Schedule
---@field stages integer how many ranks stand along the axis
---@field place integer the number of this one's stage, from 0
---@field first boolean does it read the batch?
---@field last boolean does it compute the loss?
---@field params deepc.Cell[] what is trained of it
---@field order integer[] k for the forward pass of part k, -k for its backward pass
local Schedule = { __name = "pipeline.Schedule" }
Schedule.__index = Schedule

local function check_self(op, self)
  if getmetatable(self) ~= Schedule then
    fail(op, "a schedule is needed, not %s", core.describe(self))
  end
end

-- Types of what goes from each stage to the next.
local function read_activations(op, given, stages)
  local list = {}
  for i = 1, stages - 1 do
    list[i] = type(given) == "table" and given[i] or given
    if type(list[i]) ~= "string" then
      fail(op, 'activations is the type of what stages give each other, as in "f32[8, 128]", or a list of %d, not %s',
        stages - 1, core.describe(given))
    end
  end
  if type(given) == "table" and #given ~= stages - 1 then
    fail(op, "activations has %d types, and %d stages give each other %d", #given, stages, stages - 1)
  end
  return list
end

local function read_params(op, o)
  if o.params ~= nil then
    if type(o.params) ~= "table" then
      fail(op, "params is a list of parameters, not %s", core.describe(o.params))
    end
    return o.params
  elseif not core.is_layer(o.stage) then
    fail(op, "the stage is a function: params is the list of its parameters")
  end
  return o.stage:parameters()
end

local names = { stage = true, over = true, micro = true, activations = true, loss = true, data = true, params = true }

local function make(op, order, options)
  local o = options
  if type(o) ~= "table" or getmetatable(o) then
    fail(op, "a table of options is needed, not %s", core.describe(o))
  end
  for key in pairs(o) do
    if not names[key] then
      fail(op, "there is no option '%s'", tostring(key))
    end
  end
  if not core.control_callable(o.stage) then
    fail(op, "stage is the layer or the function of this rank, not %s", core.describe(o.stage))
  elseif math.type(o.micro) ~= "integer" or o.micro < 1 then
    fail(op, "micro is into how many parts a batch is cut, not %s", core.shown(o.micro))
  elseif not core.control_callable(o.loss) then
    fail(op, "loss is a function of what the last stage gives and the target, not %s", core.describe(o.loss))
  elseif type(o.over) ~= "string" then
    fail(op, "over is the axis of the mesh along which stages stand, not %s", core.describe(o.over))
  end
  local place, stages = core.mesh_group(op, o.over)
  local self = { stages = stages, place = place, first = place == 0, last = place == stages - 1,
    order = order(place, stages, o.micro), params = read_params(op, o), _over = o.over, _data = o.data,
    _replicas = 1, _stage = o.stage, _loss = o.loss, _micro = o.micro,
    _types = read_activations(op, o.activations, stages) }
  if o.data ~= nil then
    local _, replicas = core.mesh_group(op, o.data)
    self._replicas = replicas
  end
  return setmetatable(self, Schedule)
end

---Stages along an axis of the mesh; a batch is cut into `micro` equal parts along its first axis, which go through the
---stages one after the other. Each rank has begun at most as many parts as stages follow, and one more, so it keeps
---values of so many for the backward pass. All ranks make a schedule and call its step.
---
---Options: stage, the layer or the function of this rank; over, the axis; micro; loss, a function of what the last
---stage gives for a part and of the part of the target, whose mean over the parts is the loss; activations, the type of
---what stages give each other for a part, or a list of types; data, an axis of the mesh whose ranks have batches of
---their own, over which losses and gradients are averaged; params, where the stage is a function or trains only some.
---
---    dc.mesh { data = 1 }
---    local pipeline = require "deepc.pipeline"
---    local stages = pipeline.split(nn.Sequential { nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2) }, dc.world().size)
---    local schedule = pipeline.Schedule1F1B { stage = stages[dc.world().rank + 1], over = "data", micro = 4,
---      activations = "f32[2, 8]", loss = nn.cross_entropy }
---    local loss, gradients = schedule:step(dc.rand "f32[8, 4]", dc.zeros "i32[8]")
---
---Errors: DC0101 for options that do not fit; DC0313 without a mesh.
---@param options table stage, over, micro, loss, activations, data, params
---@return deepc.pipeline.Schedule
function pipeline.Schedule1F1B(options)
  local self = make("Schedule1F1B", one_forward_one_backward, options)
  return self
end

---The same, where the backward passes begin when all forward passes have ended: a rank keeps values of all parts.
---
---    local schedule = pipeline.ScheduleGPipe(options)
---
---Errors: as pipeline.Schedule1F1B.
---@param options table
---@return deepc.pipeline.Schedule
function pipeline.ScheduleGPipe(options)
  local self = make("ScheduleGPipe", all_forward, options)
  return self
end

-- ---- a step ----

-- The parts of a batch, each where it is wanted.
local function parts_of(op, what, x, micro)
  if not core.kind(x) then
    fail(op, "the %s is a tensor, not %s", what, core.describe(x))
  elseif not x.shape[1] or math.type(x.shape[1]) == "integer" and x.shape[1] % micro ~= 0 then
    fail(op, "the %s is %s, whose first axis cannot be cut into %d equal parts", what, core.describe(x), micro)
  end
  return table.pack(x:split(micro))
end

-- What a step has in its hands: parts of the batch, of each part what its backward pass begins with.
local function begin(op, self, x, target)
  return { x = self.first and parts_of(op, "batch", x, self._micro),
    target = self.last and parts_of(op, "target", target, self._micro), ends = {} }
end

local function forward(op, self, run, k)
  local x
  if self.first then
    x = core.after(run.x[k])
  else
    x = dc.recv(self._types[self.place], { from = self.place - 1, over = self._over })
  end
  local y = self._stage(x)
  if not core.kind(y) then
    fail(op, "stage %d returned %s, not a tensor", self.place, core.describe(y))
  elseif not self.last then
    run.ends[k] = dc.send(y, { to = self.place + 1, over = self._over })
    return
  end
  local loss = self._loss(y, run.target[k])
  if not core.kind(loss) or #loss.shape > 0 then
    fail(op, "the loss is a scalar, not %s", core.describe(loss))
  end
  run.ends[k] = loss / self._micro
  local value = dc.stop_gradient(run.ends[k]):cast "f32"
  run.loss = run.loss and run.loss + value or value
end

local function backward(self, run, k)
  local gradients = dc.grad(run.ends[k], self.params)
  for i, g in ipairs(gradients) do -- added up now: a sum at the end would keep those of all parts
    gradients[i] = core.settle(run.gradients and run.gradients[i] + g or g)
  end
  run.ends[k], run.gradients = nil, gradients
end

local function mean(self, x)
  return self._replicas > 1 and dc.all_reduce(x, { over = self._data }) / self._replicas or x
end

-- That of the last stage, on all ranks.
local function share_loss(self, run)
  local loss = run.loss or dc.zeros "f32[]"
  if self.stages > 1 then
    loss = dc.all_reduce(loss, { over = self._over })
  end
  return mean(self, loss)
end

---The loss of a batch, on all ranks, and the gradients of this rank's parameters, in the order of schedule.params,
---which opt:apply takes. The first stage reads the batch, the last one the target; the others may have anything in
---their place. Inside a typed function or outside.
---
---    local step = dc.fn("step(x: f32[8, 4], y: i32[8]) -> f32[]", function(x, y)
---      local loss, gradients = schedule:step(x, y)
---      opt:apply(gradients)
---      return loss
---    end)
---
---Errors: DC0101 where the batch cannot be cut; DC1007 where another stage expects something else.
---@param x deepc.Tensor
---@param target deepc.Tensor
---@return deepc.Tensor loss
---@return deepc.Tensor[] gradients
function Schedule:step(x, target)
  check_self("step", self)
  local run = begin("step", self, x, target)
  for _, k in ipairs(self.order) do
    if k > 0 then
      forward("step", self, run, k)
    else
      backward(self, run, -k)
    end
  end
  for i, g in ipairs(run.gradients) do
    run.gradients[i] = mean(self, g)
  end
  return share_loss(self, run), run.gradients
end

---The loss of a batch, on all ranks, without gradients.
---
---    print(schedule:evaluate(x, y))
---
---Errors: as schedule:step.
---@param x deepc.Tensor
---@param target deepc.Tensor
---@return deepc.Tensor
function Schedule:evaluate(x, target)
  check_self("evaluate", self)
  local run = begin("evaluate", self, x, target)
  for k = 1, self._micro do
    forward("evaluate", self, run, k)
  end
  local loss = share_loss(self, run)
  return loss
end

core.entries(Schedule)

return core.module("deepc.pipeline", pipeline)
