-- The part of deepc in bench/processes.py and hosts.py:
--
--   [mpirun -n N] deepc bench/processes.lua KIND A B C D MS [exchanges]
--
-- mlp WIDTH LAYERS BATCH -; gpt WIDTH LAYERS BATCH TIME: data-parallel steps of Adam, sizes of one rank's batch.
-- reduce COUNT: all_reduce of so many f32. exchanges: those of the steps by themselves. Prints the milliseconds of a
-- step: of the slowest rank, the median of five parts.
local dc, nn, optim = require "deepc", require "deepc.nn", require "deepc.optim"

local kind, ms = arg[1], tonumber(arg[6])
local a, b, c, d = tonumber(arg[2]), tonumber(arg[3]), tonumber(arg[4]), tonumber(arg[5])
local world = dc.world()
dc.mesh { data = world.size }
dc.seed(1)

local function mlp()
  local layers = { nn.Linear(784, a), nn.ReLU() }
  for _ = 2, b do
    layers[#layers + 1], layers[#layers + 2] = nn.Linear(a, a), nn.ReLU()
  end
  layers[#layers + 1] = nn.Linear(a, 10)
  local types = ("x: f32[%d @ data, 784], y: i32[%d @ data]"):format(c * world.size, c * world.size)
  return nn.Sequential(layers), types, dc.randn(("f32[%d, 784]"):format(c)),
    (dc.rand(("f32[%d]"):format(c)) * 10):cast "i32"
end

local function gpt()
  local Block = dofile((arg[0]:gsub("processes.lua$", "gpt_block.lua")))
  local blocks = {}
  for i = 1, b do
    blocks[i] = Block(a, a // 32)
  end
  local whole, part = ("f32[%d @ data, %d, %d]"):format(c * world.size, d, a), ("f32[%d, %d, %d]"):format(c, d, a)
  return nn.Sequential(blocks), ("x: %s, y: %s"):format(whole, whole), dc.randn(part), dc.randn(part)
end

-- All_reduces of the sizes that a step has, together where they are small, as backends/cpu puts them into buckets.
local function exchanges_of(step)
  local most <const> = 4 << 20
  local sizes, cells = {}, {}
  for _, one in ipairs(step:exchanges()) do
    assert(one.op == "all_reduce" and one.times == 1, one.op)
    local bytes = one.bytes * world.size // (2 * (world.size - 1)) -- given are 2 (n - 1) / n
    local last = #sizes
    if last > 0 and sizes[last] + bytes <= most then
      sizes[last] = sizes[last] + bytes
    else
      sizes[last + 1] = bytes
    end
  end
  for i, bytes in ipairs(sizes) do
    cells[i] = dc.state(("f32[%d]"):format(bytes // 4))
  end
  local f = dc.fn("f() -> f32[]", function()
    for _, cell in ipairs(cells) do
      cell:set(dc.all_reduce(cell)) -- of zeros
    end
    return dc.zeros "f32[]"
  end)
  return function(n)
    for _ = 1, n do
      f():close()
    end
  end
end

-- Steps of training: runs n of them, and ends when the last one has.
local function steps()
  local net, types, images, labels = (kind == "mlp" and mlp or gpt)()
  local opt = optim.Adam(net:parameters(), { lr = 1e-6 }) -- so that gradients stay large
  local step = dc.fn(("step(%s) -> f32[]"):format(types), function(x, y)
    local out = net(x)
    local loss = kind == "mlp" and nn.cross_entropy(out, y) or (out - y):square():mean()
    opt:step(loss)
    return loss
  end)
  if arg[7] == "exchanges" then
    step(images, labels)
    return exchanges_of(step)
  end
  return function(n)
    local loss
    for _ = 1, n do
      loss = step(images, labels)
    end
    assert(loss:item() == loss:item(), "the loss is NaN")
  end
end

local function sums()
  local x = dc.rand(("f32[%d]"):format(a))
  local f = dc.fn(("f(v: f32[%d]) -> f32[%d]"):format(a, a), function(v)
    local y = dc.all_reduce(v)
    return y
  end)
  return function(n)
    for _ = 1, n do
      f(x):close()
    end
  end
end

local run = (kind == "reduce" and sums or steps)()

-- The longest of all ranks.
local function most(seconds)
  return dc.all_reduce(dc.tensor({ seconds }, "f64[1]"), { op = "max" })[1]:item()
end

local function timed(n)
  dc.barrier()
  local begun = dc.clock()
  run(n)
  return most(dc.clock() - begun)
end

timed(10)
local n = math.max(1, math.floor(ms / 1000 / (timed(5) / 5)))
local parts = {}
for i = 1, 5 do
  parts[i] = timed(n) / n * 1000
end
table.sort(parts)
if world.rank == 0 then
  print(("%.6f"):format(parts[3]))
end
