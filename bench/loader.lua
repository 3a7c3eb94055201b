-- Does a step of training wait for its data? A step on one thread with a batch that is there, beside the same step with
-- batches of a loader, in turn: medians of wall-clock times over passes, after a first one that warms caches of files.
--
--   scripts/bench loader [ROUNDS]
local dc = require "deepc"
local nn, optim, data = require "deepc.nn", require "deepc.optim", require "deepc.data"

local rounds, batch, rows = tonumber(arg[1]) or 15, 256, 4096
local folder = os.tmpname()
os.remove(folder)
os.execute("mkdir '" .. folder .. "'")

local images = dc.randint(("u8[%d, 28, 28]"):format(rows), { high = 255, seed = 1 })
local labels = dc.randint(("i32[%d]"):format(rows), { high = 10, seed = 2 })
data.write_npy(folder .. "/images.npy", images)
local files = {}
for i = 1, rows do
  files[i] = ("%s/%d.png"):format(folder, i)
  data.write_image(files[i], images[i])
end

local net = nn.Sequential { nn.Flatten(), nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 10) }
local opt = optim.Adam(net:parameters())
local step = dc.fn(("step(x: u8[%d, 28, 28, ...], y: i32[%d]) -> f32[]"):format(batch, batch), function(x, y)
  local loss = nn.cross_entropy(net(x:cast "f32" / 255), y)
  opt:step(loss)
  return loss
end)

local sets = {
  { "in memory, shuffled", data.set(images, labels) },
  { "rows of a .npy file, shuffled", data.set(data.rows(folder .. "/images.npy"), labels) },
  { "4096 PNG files, shuffled", data.set(data.images(files), labels) },
}

-- Lua has no clock of its own that goes on while a process waits.
local function now()
  local date <close> = assert(io.popen "date +%s%N")
  return tonumber(date:read "l") * 1e-9
end

local function run(x, y)
  local loss = step(x, y):item()
  assert(loss == loss)
end

-- Seconds of a step, over one pass.
local function pass(set, seed)
  local from = now()
  for x, y in set:batches { size = batch, shuffle = true, seed = seed, last = "drop" } do
    run(x, y)
  end
  return (now() - from) / (rows // batch)
end

local function fixed(x, y)
  local from = now()
  for _ = 1, rows // batch do
    run(x, y)
  end
  return (now() - from) / (rows // batch)
end

local function median(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

local x, y = images[{ { 1, batch } }]:clone(), labels[{ { 1, batch } }]:clone()
for _, row in ipairs(sets) do
  local with, without = {}, {}
  pass(row[2], 0)
  for i = 1, rounds do
    without[i] = fixed(x, y)
    with[i] = pass(row[2], i)
  end
  local a, b = median(without), median(with)
  print(("loader %s: step %.2f ms, with its batch %.2f ms, ratio %.2f"):format(row[1], a * 1e3, b * 1e3, a / b))
end
os.execute("rm -r '" .. folder .. "'")
