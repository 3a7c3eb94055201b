-- Training as the host trainer.c runs it, and what a fresh process finds of it:
--
--   train  goes on from the checkpoint until step `last`; files of every kind after each few steps
--   check  the checkpoint is that of step `last` or of the one after it; the other files are whole, where they exist
--
-- say(word, step) tells the parent. Every few steps a kernel of a new size is compiled, so that the cache is written.
local dc, nn, optim, plot = require "deepc", require "deepc.nn", require "deepc.optim", require "deepc.plot"
local mode, folder, last, say = ...

local EVERY = 4 -- steps

dc.seed(1)
local net = nn.Sequential { nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 4) }
local opt = optim.Adam(net:parameters())
local drop = nn.Dropout(0.1)
local step = dc.fn("step(x: f32[20, 8], y: i32[20]) -> f32[]", function(x, y)
  local loss = nn.cross_entropy(net(drop(x)), y)
  opt:step(loss)
  return loss
end)

local function size_of_parameters()
  local sum = 0
  for _, p in ipairs(net:parameters()) do
    sum = sum + p:abs():sum()
  end
  return sum
end
local total = dc.fn("total() -> f32[]", size_of_parameters)

-- The step and the total of then, beside the parameters: those of one file belong together.
local kept = dc.state "f32[2]"
local exported = dc.fn("exported(x: f32[n, 8]) -> f32[n, 4], f32[2], f32[]", function(x)
  return net(x), kept * 1, size_of_parameters()
end)

local checkpoint = dc.checkpoint(folder .. "/ck", { model = net, opt = opt })

local function near(a, b)
  return math.abs(a - b) <= 1e-5 * math.abs(a)
end

local function check_cache(size)
  local f = dc.fn("sum(x: f32[" .. size .. "]) -> f32[]", function(x)
    return (x * 2 + 1):sum()
  end)
  assert(f(dc.ones("f32[" .. size .. "]")):item() == 3 * size)
end

-- ---- training ----

local function write_files(n)
  local size = total():item()
  checkpoint:save { n = n, total = size }
  say("saved", n)
  kept:set { n, size }
  dc.save(folder .. "/w.st", net, { total = ("%a"):format(size) })
  exported:export(folder .. "/f.dcfn", { n = 2 })
  local series = { { y = { 3, 1, n }, name = "loss" } }
  plot.lines(folder .. "/x.svg", series)
  plot.lines(folder .. "/x.png", series, { width = 200, height = 200 })
  check_cache(100 + n)
end

local function train()
  local at = checkpoint:load() or { n = 0 }
  local y = dc.iota "i32[20]" % 4
  for n = at.n + 1, last do
    local loss = step(dc.rand("f32[20, 8]", { seed = n }), y):item()
    assert(loss > 0 and loss < 10)
    if n % EVERY == 0 then
      write_files(n)
    end
  end
end

-- ---- looking ----

local function read(name)
  local f = io.open(folder .. "/" .. name, "rb")
  if f then
    local text = f:read "a"
    f:close()
    return text
  end
end

local function check()
  local at = checkpoint:load() or { n = 0 }
  assert(at.n % EVERY == 0 and (at.n == last or at.n == last + EVERY), ("step %s after %d"):format(at.n, last))
  assert(at.n == 0 or near(at.total, total():item()), "the checkpoint is no whole one")
  if read "w.st" then
    local sum = 0
    local tensors, metadata = dc.load(folder .. "/w.st")
    for _, t in pairs(tensors) do
      sum = sum + t:abs():sum():item()
    end
    assert(near(tonumber(metadata.total), sum), "the tensors are no whole ones")
  end
  local svg, png = read "x.svg", read "x.png"
  assert(not svg or (svg:find "^<svg" and svg:find "</svg>%s*$"), "half an SVG")
  assert(not png or (png:find "^\x89PNG\r\n" and png:find "IEND....$"), "half a PNG")
  for n = at.n - EVERY, at.n + EVERY, EVERY do
    check_cache(100 + n)
  end
  say("found", at.n)
end

if mode == "train" then train() else check() end
