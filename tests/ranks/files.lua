-- For test_ranks_files.sh: what ranks save and load. files.lua CASE PATH [SIZES]; SIZES: "data=2,model=2".

local dc, nn, optim, data = require "deepc", require "deepc.nn", require "deepc.optim", require "deepc.data"

local case, path, sizes = arg[1], arg[2], {}
for name, n in (arg[3] or ""):gmatch "(%w+)=(%d+)" do
  sizes[name] = math.tointeger(n)
end
local rank = dc.world().rank
local mesh = next(sizes) and dc.mesh(sizes)

-- Axes are split by those of the mesh that are there.
local function typed(text)
  return (text:gsub(" @ (%w+)", function(name)
    return mesh and mesh.sizes[name] and " @ " .. name or ""
  end))
end

-- The numbers from n on, as a whole value of this type.
local function numbers(text, n)
  local count, shape = 1, {}
  for size in text:match "%[(.*)%]":gmatch "%d+" do
    shape[#shape + 1] = math.tointeger(size)
    count = count * shape[#shape]
  end
  return (dc.iota(("i32[%d]"):format(count)) + n):reshape(shape):cast(text:match "^%w+")
end

-- A cell of this type, with such numbers.
local function cell(text, n)
  local make = text:match "^[bf]" and dc.param or dc.state
  return make(typed(text), numbers(text, n))
end

local function cells(n)
  return {
    rows = cell("f32[8 @ data, 6]", n), columns = cell("f32[6, 8 @ model]", n + 1),
    both = cell("f32[4 @ data, 3, 4 @ model]", n + 2), turned = cell("f32[4 @ model, 4 @ data]", n + 3),
    whole = cell("f32[5, 7]", n + 4), short = cell("bf16[16 @ model]", n + 5), count = cell("i32[4 @ data]", n + 6),
    deep = { list = { cell("f64[2, 4 @ data]", n + 7), cell("f32[]", n + 8) } },
  }
end

-- In the same order on all ranks.
local function each(list, f, prefix)
  local names = {}
  for name in pairs(list) do
    names[#names + 1] = name
  end
  table.sort(names)
  for _, name in ipairs(names) do
    if type(list[name]) == "table" then
      each(list[name], f, (prefix or "") .. name .. ".")
    else
      f(list[name], (prefix or "") .. name)
    end
  end
end

local function same(some, wanted)
  local all, n = {}, 0
  each(wanted, function(x, name) all[name] = dc.whole(x) end)
  each(some, function(x, name)
    x, n = dc.whole(x), n + 1
    assert(x.dtype == all[name].dtype and x:eq(all[name]):all():item(), name)
  end)
  assert(n == 9, n)
end

local function network()
  dc.seed(1)
  local net = nn.Sequential { nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4) }
  if mesh and mesh.sizes.model then
    dc.shard(net, { ["1.weight"] = "[6, 8 @ model]", ["3.weight"] = "[8 @ model, 4]", ["1.bias"] = "[8 @ model]" })
  end
  return net
end

local cases = {}

function cases.save()
  dc.save(path, cells(100), { note = 'a "text"' })
end

function cases.load()
  local into = cells(0)
  local metadata = dc.load(path, into)
  assert(metadata.note == 'a "text"')
  same(into, cells(100))
  local list, n = dc.load(path), 0
  for _ in pairs(list) do
    n = n + 1
  end
  assert(n == 9, n)
  assert(list.columns:eq(dc.whole(into.columns)):all():item())
  dc.load(path, cells(0), { alone = true })
end

-- Weights as PyTorch keeps them, other dtypes.
function cases.foreign()
  if rank == 0 then
    local layer = { weight = numbers("f32[8, 6]", 0), bias = numbers("f32[8]", 0) }
    dc.save(path, { a = layer, half = numbers("f16[16]", 0) }, nil, { alone = true })
  end
  dc.barrier()
  local into = { a = nn.Linear(6, 8), half = cell("f32[16 @ model]", 0) }
  dc.shard(into.a, { weight = typed "[6 @ data, 8 @ model]", bias = typed "[8 @ model]" })
  dc.load(path, into)
  assert(dc.whole(into.a.weight):eq(numbers("f32[8, 6]", 0):transpose()):all():item())
  assert(dc.whole(into.half):eq(numbers("f32[16]", 0)):all():item())
end

-- Four steps, or those behind two of another run; losses go to PATH.losses, of the first rank.
local function train(from, to)
  local net = network()
  local opt = optim.Adam(net:parameters(), { lr = 0.05 })
  local set = data.set(dc.rand("f32[32, 6]", { seed = 1 }), dc.iota "i32[32]" % 4)
  local axis = mesh and mesh.sizes.data and " @ data" or ""
  local step = dc.fn(("step(x: f32[8%s, 6], y: i32[8%s]) -> f32[]"):format(axis, axis), function(x, y)
    local loss = nn.cross_entropy(net(x), y)
    opt:step(loss)
    return loss
  end)
  local ckpt = dc.checkpoint(path, { model = net, optimizer = opt, data = set })
  local at = from > 0 and assert(ckpt:load()) or { step = 0 }
  assert(at.step == from, at.step)
  local file <close> = rank == 0 and assert(io.open(path .. ".losses", from > 0 and "a" or "w")) or nil
  for _ = set.epoch + 1, 2 do
    for x, y in set:batches { size = 8, shuffle = true } do
      if at.step == to then
        return
      end
      at.step = at.step + 1
      local loss = step(x, y):item()
      if file then
        file:write(("%.9g\n"):format(loss))
      end
      ckpt:save(at)
    end
  end
end

function cases.train()
  train(0, 6)
end

function cases.first()
  train(0, 3)
end

function cases.rest()
  train(3, 6)
end

-- Saves until it is killed; each value is a number everywhere.
function cases.forever()
  local stat <close> = assert(io.open "/proc/self/stat")
  local pid <close> = assert(io.open(("%s.pid.%d"):format(path, rank), "w"))
  pid:write(stat:read "n")
  pid:close()
  local a, b = dc.state(typed "f32[4096 @ data, 256]"), dc.state "f32[65536]"
  for n = 1, 1000000 do
    a:set(a * 0 + n)
    b:set(b * 0 + n)
    dc.save(path, { a = a, b = b })
    if rank == 0 and n == 2 then
      assert(io.open(path .. ".ready", "w")):close()
    end
  end
end

function cases.one_number()
  local t = dc.load(path)
  local n = t.b[1]:item()
  assert(n >= 2 and t.a:eq(n):all():item() and t.b:eq(n):all():item())
end

function cases.fails()
  if rank == dc.world().size - 1 then
    os.execute("mkdir " .. path:gsub("%.safetensors$", ".1-00002-of-00002.safetensors"))
  end
  dc.barrier()
  local ok, err = pcall(dc.save, path, cells(7))
  assert(not ok)
  io.stderr:write(("rank %d: %s\n"):format(rank, err.message:match "^[^\n]*"))
  local again = cells(0)
  dc.load(path, again)
  same(again, cells(100))
end

function cases.differ()
  dc.save(path, { a = rank == 0 and dc.ones "f32[2]" or dc.ones "f32[3]" })
end

function cases.misfit()
  dc.load(path, { rows = cell("f32[8 @ data, 7]", 0) }, { partial = true })
end

function cases.alone()
  if rank == 0 then
    dc.save(path, { a = dc.ones "f32[2]" }, nil, { alone = true })
    assert(dc.load(path).a:sum():item() == 2)
    dc.save(path, { a = cell("f32[8 @ data]", 0) }, nil, { alone = true })
  end
end

function cases.gguf()
  dc.save(path .. ".gguf", { a = dc.ones "f32[2]" })
  dc.save(path .. ".gguf", { a = cell("f32[8 @ data]", 0) })
end

cases[case]()
