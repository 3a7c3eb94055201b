-- Trains a small transformer for some steps in stages, and writes losses and parameters for tests/ranks/compare.lua.
--
--   [mpirun -n N] deepc tests/ranks/pipeline.lua SCHEDULE REPLICAS FILE
--
-- SCHEDULE: whole (one process, no pipeline), 1f1b, gpipe, or eager (1f1b outside of a typed function). Each stage
-- writes a file of its own, FILE.0, FILE.1 ...; one behind the other they are what `whole` writes, but for rounding.
local dc, nn, optim, pipeline = require "deepc", require "deepc.nn", require "deepc.optim", require "deepc.pipeline"

local how, replicas, path = arg[1], math.tointeger(tonumber(arg[2])), arg[3]
local world = dc.world()
local mesh = dc.mesh { data = replicas, pipe = world.size // replicas }
dc.seed(3)

local width, heads, vocab, time, rows, micro = 32, 4, 40, 12, 16, 4

local Block = dofile((arg[0]:gsub("pipeline.lua$", "block.lua")))(width, heads, 0)

local net = nn.Sequential { nn.Embedding(vocab, width), Block(), Block(), nn.LayerNorm(width), nn.Linear(width, vocab),
  function(x) return x:reshape(-1, vocab) end }
local ids = (dc.rand(("f32[%d, %d]"):format(rows, time + 1)) * vocab):cast "i32"
local input, labels = ids[{ {}, { 1, time } }], ids[{ {}, { 2, time + 1 } }]
if replicas > 1 then
  local part = ("i32[%d @ data, %d]"):format(rows, time)
  input, labels = dc.part(input, part), dc.part(labels, part)
end

local function loss_of(logits, target)
  return nn.cross_entropy(logits, target:reshape(-1))
end

-- ---- a step ----

local stages = pipeline.split(net, mesh.sizes.pipe == 4 and { 1, 1, 1, 3 } or mesh.sizes.pipe)
local stage = stages[mesh.place.pipe + 1]
local opt = optim.SGD(stage:parameters(), { lr = 0.3, momentum = 0.9 })
local own = rows // replicas
local signature = ("step(x: i32[%d, %d], y: i32[%d, %d]) -> f32[]"):format(own, time, own, time)
local step

if how == "whole" then
  step = dc.fn(signature, function(x, y)
    local loss = loss_of(net(x), y)
    opt:step(loss)
    return loss
  end)
else
  local schedule = pipeline[how == "gpipe" and "ScheduleGPipe" or "Schedule1F1B"] {
    stage = stage, over = "pipe", micro = micro, loss = loss_of, data = replicas > 1 and "data" or nil,
    activations = ("f32[%d, %d, %d]"):format(own // micro, time, width) }
  local function body(x, y)
    local loss, gradients = schedule:step(x, y)
    opt:apply(gradients)
    return loss
  end
  step = how == "eager" and body or dc.fn(signature, body)
  print(("stage %d of %d: %s"):format(schedule.place, schedule.stages, table.concat(schedule.order, " ")))
end

local losses = {}
for i = 1, 6 do
  losses[i] = ("%.9g"):format(step(input, labels):item())
end

-- How many kernels run between two messages that follow each other: what a message waits for is no part of a kernel
-- that waits for more.
local function kernels_between_sends()
  local counts, n = {}, nil
  for line in step:plan():gmatch "[^\n]+" do
    local name = line:match "^%s+%d+%s+([%w_]+)" or line:match "^%s+%+%s+([%w_]+)"
    if name == "send" then
      counts[#counts + 1], n = n, 0
    elseif n and name and name ~= "arrived" and name ~= "recv" then
      n = n + 1
    end
  end
  return table.concat(counts, " ")
end

if how == "gpipe" then
  print(("stage %d: %s kernels between its sends"):format(mesh.place.pipe, kernels_between_sends()))
end
if how ~= "eager" then
  print(("%d bytes of temporaries in stage %d"):format(step:info()[1].arena_bytes, mesh.place.pipe))
end

-- ---- what came of it ----

if mesh.place.data == 0 then
  local file = assert(io.open(path .. "." .. mesh.place.pipe, "w"))
  if mesh.place.pipe == 0 then
    file:write("losses ", table.concat(losses, " "), "\n")
  end
  for _, layer in ipairs(stage) do
    for _, named in ipairs(type(layer) == "table" and layer:named_parameters() or {}) do
      local numbers = {}
      for i, value in ipairs(named[2]:reshape(-1):totable()) do
        numbers[i] = ("%.9g"):format(value)
      end
      file:write(named[1], " ", table.concat(numbers, " "), "\n")
    end
  end
  file:close()
end
