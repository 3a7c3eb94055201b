-- Eleven programs without typed functions, each in a new process with an empty cache: by the interpreter alone, by
-- kernels alone, and as they run by themselves. scripts/bench lazy [NAME ...]
local dc = require "deepc"

local programs = {}
local order = {}
local function program(name, f)
  programs[name] = f
  order[#order + 1] = name
end

-- A mean of each of many lengths.
program("means", function()
  for i = 1, 60 do dc.rand(("f32[%d]"):format(1000 + 37 * i)):mean():item() end
end)

program("concat", function()
  local x = dc.iota "f32[5000]":clone()
  for i = 1, 300 do dc.concat({ x[{ { 1, 1000 + i } }], x[{ { i, 2000 } }] }, 1):sum():item() end
end)

program("put", function()
  local x = dc.zeros "f32[60, 80]":clone()
  for i = 1, 300 do x = x:put({ { i % 50 + 1, i % 50 + 5 }, { i % 60 + 1, i % 60 + 9 } }, i) end
  x:sum():item()
end)

-- Columns to mean 0 and deviation 1, outliers cut off, classes counted: each once.
program("prepare", function()
  local x = dc.randn("f32[4000, 20]", { seed = 1 }):clone()
  x = x:clamp(-3, 3)
  x = (x - x:mean { axis = 1, keep = true }) / (x:var { axis = 1, keep = true } + 1e-6):sqrt()
  local label = (x[{ {}, { 1, 3 } }]:sum(2) * 2):floor():clamp(-3, 3)
  for k = -3, 3 do label:eq(k):cast("f32"):sum():item() end
  for k = 1, 20 do
    local c = x[{ {}, k }]
    print(c:mean():item(), c:max():item(), (c * x[{ {}, 1 }]):mean():item())
  end
end)

-- Windows of a signal, each longer than the one before.
program("windows", function()
  local t = dc.iota "f32[4000]":clone() * 0.01
  local signal = (t:sin() + (t * 3):cos()):clone()
  for i = 1, 400 do
    local w = signal[{ { 1, 400 + 9 * i } }]
    local deviation = ((w - w:mean()):square():mean() + 1e-9):sqrt()
    ;(deviation / w:abs():max()):item()
  end
end)

-- The same with longer ones: one program for all of them.
program("lengths", function()
  local signal = dc.rand("f32[300000]", { seed = 6 }):clone()
  for i = 1, 100 do (signal[{ { 1, 100000 + 371 * i } }]:tanh() * 2):mean():item() end
end)

program("regression", function()
  local x = dc.randn("f32[1000, 10]", { seed = 2 }):clone()
  local y = (x[{ {}, 1 }] * 2 - x[{ {}, 2 }]):gt(0):cast("f32"):clone()
  local w, b = dc.param("f32[10]", 0), dc.param("f32[]", 0)
  for _ = 1, 300 do
    local p = (x:matmul(w) + b):sigmoid()
    local loss = -(y * (p + 1e-7):log() + (1 - y) * (1 - p + 1e-7):log()):mean()
    local dw, db = table.unpack(dc.grad(loss, { w, b }))
    w:set(w - 0.5 * dw)
    b:set(b - 0.5 * db)
  end
  print(w)
end)

program("power", function()
  local a = dc.rand("f32[400, 400]", { seed = 3 }):clone()
  local v = dc.ones "f32[400]"
  for _ = 1, 400 do
    v = a:matmul(v)
    v = v / v:square():sum():sqrt()
    v[1]:item()
  end
end)

program("life", function()
  local x = dc.rand("f32[200, 200]", { seed = 4 }):gt(0.6):cast("f32"):clone()
  for _ = 1, 150 do
    local rows = x + x:roll(1, 1) + x:roll(-1, 1)
    local n = rows + rows:roll(1, 2) + rows:roll(-1, 2) - x
    x = (n:eq(3) | (n:eq(2) & x:eq(1))):cast "f32"
    x:sum():item()
  end
end)

program("mandelbrot", function()
  local w, h = 200, 150
  local re = (dc.iota(("f32[%d]"):format(w)) * (3 / w) - 2):reshape(1, w):expand(h, w)
  local im = (dc.iota(("f32[%d]"):format(h)) * (2 / h) - 1):reshape(h, 1):expand(h, w)
  local a, b, count = re * 1, im * 1, dc.zeros(("f32[%d, %d]"):format(h, w))
  for _ = 1, 100 do
    local inside = (a * a + b * b):le(4)
    count = count + inside:cast "f32"
    a, b = dc.where(inside, a * a - b * b + re, a), dc.where(inside, 2 * a * b + im, b)
  end
  print(count:sum():item())
end)

-- One large product, and a few small things.
program("matmul", function()
  local a = dc.rand("f32[1500, 1500]", { seed = 5 }):clone()
  for i = 1, 2 do print((a:matmul(a) * i):sum():item()) end
end)

local which = ...
if programs[which] and select(2, ...) == "run" then
  programs[which]()
  io.stderr:write(("%.6f\n"):format(os.clock()))
  return
end

local function run(name, mode)
  local best = math.huge
  for _ = 1, 3 do
    local line = ("DEEPC_CACHE=off DEEPC_LAZY=%s '%s' bench/lazy.lua %s run 2>&1 >/dev/null"):format(mode,
      arg[-1], name)
    local p <close> = assert(io.popen(line))
    best = math.min(best, tonumber(p:read("a"):match "([%d.]+)\n$") or error(name .. " failed"))
  end
  return best
end

print(("%-12s %9s %9s %9s   %s"):format("seconds", "eval", "compile", "auto", "auto : the better"))
for _, name in ipairs(which and { ... } or order) do
  local eval, compile, auto = run(name, "eval"), run(name, "compile"), run(name, "auto")
  print(("%-12s %9.3f %9.3f %9.3f   %.2f"):format(name, eval, compile, auto, auto / math.min(eval, compile)))
end
