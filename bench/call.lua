-- What a call of a compiled function costs beside its kernels, on one thread: seconds of the processor
-- per call, the median of some rounds of many calls; and what a steady step allocates.
--
--   captures   a function with 0, 5 and 20 captured locals that do not change
--   fields     with a captured table of so many numbers; with an object of them, which has a class of ten
--              methods and a class above it; with 64 of them in eight tables
--   kernels    kernels of four elements each, each waiting for the one before; the line through the times
--              gives the cost of a call without any (intercept) and of a kernel
--   allocates  per step, of the same call again and again and of a training loop over batches:
--              calls of malloc and its like outside of Lua's allocator, mappings, device memory, and what Lua
--              itself asks for. Needs bench/count.c, which scripts/bench loads
local dc = require "deepc"
local data = require "deepc.data"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local has_count, count = pcall(require, "count")

local CALLS, ROUNDS = 20000, 9
local us = 1e6

local function per_call(f, ...)
  for _ = 1, 100 do
    f(...)
  end
  local times = {}
  for r = 1, ROUNDS do
    local start = os.clock()
    for _ = 1, CALLS do
      f(...)
    end
    times[r] = (os.clock() - start) / CALLS
  end
  table.sort(times)
  return times[(ROUNDS + 1) // 2]
end

-- A function with n captured locals, which it reads while it is traced.
local function capturing(n)
  local lines, names = {}, {}
  for i = 1, n do
    lines[i] = ("local c%d = %d"):format(i, i)
    names[i] = "c" .. i
  end
  local text = ("local dc = ...; %s; return dc.fn('f(x: f32[1]) -> f32[1]', function(x) return x * (1%s) end)")
    :format(table.concat(lines, " "), n > 0 and " + " .. table.concat(names, " + ") or "")
  return assert(load(text))(dc)
end

print(("deepc %s on %s, %d calls, median of %d rounds"):format(dc._VERSION, dc.stats().device, CALLS, ROUNDS))
local element = dc.ones "f32[1]"
local base
for _, n in ipairs { 0, 5, 20 } do
  local t = per_call(capturing(n), element) * us
  base = base or t
  print(("captures %3d    %7.3f us per call, %6.3f more than without"):format(n, t, t - base))
end

local function show_fields(what, n, captured)
  local f = dc.fn("f(v: f32[1]) -> f32[1]", function(v) return v * captured.k1 end)
  local t = per_call(f, element) * us
  print(("%-8s %3d    %7.3f us per call, %6.3f more than without"):format(what, n, t, t - base))
end

local function numbers(n)
  local t = {}
  for i = 1, n do
    t["k" .. i] = i
  end
  return t
end

for _, n in ipairs { 5, 64, 100, 250 } do
  show_fields("fields", n, numbers(n))
end
local above, class = numbers(10), {}
above.__index, class.__index = above, class
for i = 1, 10 do
  class["method" .. i] = function() end
end
setmetatable(class, above)
for _, n in ipairs { 5, 64 } do
  show_fields("object", n, setmetatable(numbers(n), class))
end
local nested = { k1 = 1 }
for i = 1, 8 do
  nested["t" .. i] = numbers(8)
end
show_fields("nested", 64, nested)

-- Products of small matrices: each is a kernel of its own.
local function chain(n)
  return dc.fn("f(v: f32[2, 2], w: f32[2, 2]) -> f32[2, 2]", function(v, w)
    for _ = 1, n do
      v = v:matmul(w)
    end
    return v
  end)
end

local points, one = {}, dc.ones "f32[2, 2]"
for _, n in ipairs { 1, 2, 4, 8, 16 } do
  local f = chain(n)
  f(one, one)
  local launches = f:info()[1].launches
  points[#points + 1] = { launches, per_call(f, one, one) * us }
  print(("kernels  %3d    %7.3f us per call"):format(launches, points[#points][2]))
end
local n, sx, sy, sxx, sxy = #points, 0, 0, 0, 0
for _, p in ipairs(points) do
  sx, sy, sxx, sxy = sx + p[1], sy + p[2], sxx + p[1] ^ 2, sxy + p[1] * p[2]
end
local slope = (n * sxy - sx * sy) / (n * sxx - sx ^ 2)
print(("a call without kernels %.3f us, a kernel %.3f us"):format((sy - slope * sx) / n, slope))

-- ---- allocations ----

-- run(mark) calls mark() where counting begins, after what warms up, and returns the number of steps from
-- there; the collector runs as always.
local function show(what, run)
  local before, heap, maps, inside = nil, 0, 0, 0
  local steps = run(function()
    before = dc.stats()
    if has_count then
      heap, maps, inside = count()
    end
  end)
  local heap_after, maps_after, inside_after = heap, maps, inside
  if has_count then
    heap_after, maps_after, inside_after = count()
  end
  local after = dc.stats()
  print(("allocates per %-26s %sdevice memory %g; results moved out of the way %g"):format(what,
    has_count and ("malloc %g, mmap %g, in Lua %.2f, "):format((heap_after - heap) / steps,
      (maps_after - maps) / steps, (inside_after - inside) / steps) or "malloc not counted, ",
    (after.allocs - before.allocs) / steps, (after.moved_out - before.moved_out) / steps))
end

local f = capturing(20)
local STEPS, WARM = 10000, 2000
show("call, its result closed", function(mark)
  for k = 1, WARM + STEPS do
    f(element):close()
    if k == WARM then mark() end
  end
  return STEPS
end)
show("call", function(mark)
  local y
  for k = 1, WARM + STEPS do
    y = f(element)
    if k == WARM then mark() end
  end
  return STEPS, y
end)

local net = nn.Sequential {
  nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10),
}
local opt = optim.Adam(net:parameters())
local step = dc.fn("step(x: u8[64, 28, 28], y: i32[64], lr: f32[]) -> f32[]", function(x, y, lr)
  local loss = nn.cross_entropy(net(x:cast "f32" / 255), y)
  opt:step(loss, { lr = lr })
  return loss
end)
local set = data.set(dc.zeros "u8[64000, 28, 28]", dc.zeros "i32[64000]")
show("step of a loop over batches", function(mark)
  local total, k = 0, 0
  for images, labels in set:batches { size = 64, shuffle = true, seed = 1, last = "drop" } do
    total, k = total + step(images, labels, 1e-3):item(), k + 1
    if k == 500 then mark() end
  end
  return k - 500
end)
