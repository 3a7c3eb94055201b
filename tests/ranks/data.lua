-- For test_ranks_data.sh: what ranks get of data. data.lua CASE OUT [SIZES]; SIZES: "data=2,model=2". Each rank
-- writes its batches to OUT.PLACE.RANK: a line each, values between bars. PLACE is the rank's along data.

local dc, data = require "deepc", require "deepc.data"

local case, out, sizes = arg[1], arg[2], {}
for name, n in (arg[3] or ""):gmatch "(%w+)=(%d+)" do
  sizes[name] = math.tointeger(n)
end
local mesh = next(sizes) and dc.mesh(sizes)
local place = mesh and mesh.place.data or 0
local file <close> = assert(io.open(("%s.%d.%d"):format(out, place, dc.world().rank), "w"))

local function write(...)
  local parts = table.pack(...)
  for i = 1, parts.n do
    parts[i] = table.concat(parts[i]:reshape { -1 }:totable(), " ")
  end
  file:write(table.concat(parts, "|"), "\n")
end

local x = dc.iota("f32[50, 2]", 1) + dc.iota("f32[50, 2]", 2) * 100
local y = dc.iota "i32[50]"
local words = {}
for i = 1, 50 do
  words[i] = {}
  for k = 1, i * 7 % 11 + 1 do
    words[i][k] = i
  end
end

local cases = {}

function cases.shuffled()
  local set = data.set(x, y)
  for _ = 1, 2 do
    for a, b in set:batches { size = 8, shuffle = true, seed = 3, last = "drop" } do write(a, b) end
  end
end

function cases.kept()
  for a in data.set(x):batches { size = 8 + 4, last = "drop" } do write(a) end
  local some = data.set(x):rows { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 }
  for a in some:batches { size = 8, last = "keep" } do write(a) end
end

function cases.padded()
  for a, b, mask in data.set(x, y):batches { size = 16, last = "pad", shuffle = true, seed = 1 } do
    write(a, b, mask)
  end
end

function cases.ragged()
  local rows = data.ragged(words)
  local set = data.set(rows, rows:lengths())
  for a, n in set:batches { size = 8, last = "drop", group = rows, seed = 2, shuffle = true } do write(a, n) end
end

function cases.drawn()
  for a in data.set(y):batches { size = 20, balance = y % 3, draws = 40, seed = 5 } do write(a) end
end

function cases.files()
  local path = out .. ".npy"
  if dc.world().rank == 0 then
    data.write_npy(path, x)
  end
  dc.barrier()
  for a in data.set(data.rows(path)):batches { size = 8, shuffle = true, seed = 1, last = "drop" } do write(a) end
end

function cases.streamed()
  local collated = 0
  local s = data.stream(function()
    local i = 0
    return function()
      i = i + 1
      if i <= 50 then return i end
    end
  end)
  local function collate(rows)
    collated = collated + #rows
    local list = {}
    for i, row in ipairs(rows) do
      list[i] = row[1]
    end
    return dc.tensor(list, "i32")
  end
  for a in s:batches { size = 8, shuffle = 20, seed = 1, last = "drop", collate = collate } do write(a) end
  assert(collated == 48 // (mesh and mesh.sizes.data or 1), collated)
end

-- Stops in the middle of an epoch; goes on in another run, with as many ranks as that has.
function cases.stopped()
  local set = data.set(x, y)
  local ckpt, n = dc.checkpoint(out .. ".st", { data = set, cell = dc.state "f32[2]" }), 0
  for a, b in set:batches { size = 8, shuffle = true, seed = 3, last = "drop" } do
    write(a, b)
    n = n + 1
    if n == 2 then
      ckpt:save {}
      return
    end
  end
end

function cases.resumed()
  local set = data.set(x, y)
  assert(dc.checkpoint(out:gsub("resumed", "stopped") .. ".st", { data = set, cell = dc.state "f32[2]" }):load())
  for a, b in set:batches { size = 8, shuffle = true, seed = 3, last = "drop" } do write(a, b) end
end

-- Losses of epochs, of all rows.
function cases.fitted()
  local nn, optim, train = require "deepc.nn", require "deepc.optim", require "deepc.train"
  local metrics = require "deepc.metrics"
  dc.seed(1)
  local net = nn.Sequential { nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 4) }
  local set, valid = data.set(x / 100, y % 4), data.set(x / 50, y % 4)
  local run = train.fit {
    model = net, optimizer = optim.Adam(net:parameters(), { lr = 0.01 }), data = set, epochs = 3,
    batch = { size = 8, shuffle = true, seed = 1, last = "drop" },
    evaluate = valid, evaluate_batch = { size = 16, last = "pad" }, metrics = { accuracy = metrics.Accuracy() },
    loss = function(a, b, mask)
      local logits = net(a)
      return nn.cross_entropy(logits, b, mask and { mask = mask } or nil), logits
    end,
  }
  for _, row in ipairs(run.history) do
    file:write(("%.9g %.9g %.9g\n"):format(row.loss, row["eval.loss"], row["eval.accuracy"]))
  end
end

function cases.alone()
  for a in data.set(y):batches { size = 10, over = false } do write(a) end
end

function cases.odd()
  data.set(y):batches { size = 9 }
end

function cases.rest()
  data.set(x):batches { size = 16, last = "keep" }
end

function cases.seeds()
  for _ in data.set(x):batches { size = 8, last = "drop", shuffle = true, seed = dc.world().rank } do error "not so" end
end

function cases.orders()
  local set = data.set(x):random_split({ 40, 10 }, { seed = dc.world().rank })
  for _ in set:batches { size = 8 } do error "not so" end
end

function cases.keeps()
  data.stream(function() end):batches { size = 8 }
end

cases[case]()
