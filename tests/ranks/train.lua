-- Trains a small model for some steps and writes what came of it: losses, parameters, bytes given to other ranks.
--
--   [mpirun -n N] deepc tests/ranks/train.lua MODEL MODE FILE
--
-- MODEL: mlp, gpt, cnn, rnn. MODE: how it lies on the ranks: data (parallel), zero1, zero3, model (tensor-parallel) or
-- mixed.
-- The file is the same for each mode and number of ranks, but for rounding.
local dc, nn, optim = require "deepc", require "deepc.nn", require "deepc.optim"

local kind, mode, path = arg[1], arg[2], arg[3]
local world = dc.world()
local model = mode == "model" and world.size or mode == "mixed" and 2 or 1
dc.mesh { data = world.size // model, model = model }
dc.seed(3)

local width, heads, vocab, time = 32, 4, 40, 12

local Block = dofile((arg[0]:gsub("train.lua$", "block.lua")))(width, heads, 0.1)

local models = {}

function models.mlp()
  local net = nn.Sequential { nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 32), nn.Dropout(0.2), nn.ReLU(),
    nn.Linear(32, 10) }
  return net, "x: f32[32 @ data, 24], y: i32[32 @ data]", dc.randn "f32[32, 24]", (dc.rand "f32[32]" * 10):cast "i32",
    { ["1.weight"] = "[24, 64 @ model]", ["1.bias"] = "[64 @ model]", ["3.weight"] = "[64 @ model, 32]" }
end

function models.gpt()
  local net = nn.Sequential { nn.Embedding(vocab, width), Block(), Block(), nn.LayerNorm(width),
    nn.Linear(width, vocab), function(x) return x:reshape(-1, vocab) end }
  local ids = (dc.rand(("f32[8, %d]"):format(time + 1)) * vocab):cast "i32"
  local column, row = "[%d, %d @ model]", "[%d @ model, %d]"
  local spec = { ["*.fc1.weight"] = column:format(width, 4 * width), ["*.fc1.bias"] = "[128 @ model]",
    ["*.fc2.weight"] = row:format(4 * width, width), ["*.proj.weight"] = row:format(width, width),
    ["1.weight"] = "[40 @ model, 32]" }
  for _, name in ipairs { "q", "k", "v" } do
    spec["*." .. name .. ".weight"], spec["*." .. name .. ".bias"] = column:format(width, width), "[32 @ model]"
  end
  return net, ("x: i32[8 @ data, %d], y: i32[8 @ data, %d]"):format(time, time), ids[{ {}, { 1, time } }],
    ids[{ {}, { 2, time + 1 } }], spec
end

function models.cnn()
  local net = nn.Sequential { nn.Conv2d(1, 8, 3, { padding = 1 }), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(8, 16, 3, { padding = 1 }), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 10) }
  return net, "x: f32[16 @ data, 1, 8, 8], y: i32[16 @ data]", dc.randn "f32[16, 1, 8, 8]",
    (dc.rand "f32[16]" * 10):cast "i32",
    { ["1.weight"] = "[8 @ model, 1, 3, 3]", ["9.weight"] = "[64 @ model, 10]" }
end

function models.rnn()
  local cell, last = nn.GRUCell(16, 32), nn.Linear(32, 10)
  local Net = nn.class "Net"
  function Net:init()
    self.cell, self.last = cell, last
  end
  function Net:forward(x)
    local h = dc.scan(function(h, xt) return self.cell(xt, h), nil end, dc.zeros(("f32[%d, 32]"):format(x:size(1))),
      x:transpose(1, 2))
    return self.last(h)
  end
  return Net(), "x: f32[16 @ data, 9, 16], y: i32[16 @ data]", dc.randn "f32[16, 9, 16]",
    (dc.rand "f32[16]" * 10):cast "i32", { ["last.weight"] = "[32 @ model, 10]" }
end

dc.seed(5)
local net, types, all, all_labels, spec = models[kind]()
if mode == "zero3" then
  dc.shard(net, "data")
elseif model > 1 then
  dc.shard(net, spec)
end
local opt = optim.SGD(net:parameters(), { lr = 0.1, momentum = 0.9, clip_norm = 1.0,
  shard = mode == "zero1" and "data" or nil })
local step = dc.fn(("step(%s) -> f32[]"):format(types), function(x, y)
  local loss = nn.cross_entropy(net(x), y:reshape(-1))
  opt:step(loss)
  return loss
end)

local function part(t, name)
  return dc.part(t, types:match(name .. ": ([^%]]+%])"))
end

dc.seed(7)
local mine, labels = part(all, "x"), part(all_labels, "y")
local lines, given = {}, 0
for i = 1, 4 do
  if i == 4 then
    given = dc.world().sent
  end
  lines[i] = ("loss %a"):format(step(mine, labels):item())
end
given = dc.world().sent - given
local formula = 0
for _, exchange in ipairs(step:exchanges()) do
  formula = formula + exchange.bytes * exchange.times
end
for _, named in ipairs(net:named_parameters()) do
  local whole = dc.whole(named[2])
  lines[#lines + 1] = ("%s %a %a"):format(named[1], whole:sum():item(), (whole * whole):sum():sqrt():item())
end
if world.rank == 0 then
  local file = assert(io.open(path, "w"))
  file:write(table.concat(lines, "\n"), "\n")
  file:close()
  print(("%s %s, %d ranks: %d bytes given in a step, %d by the formula"):format(kind, mode, world.size, given, formula))
end
