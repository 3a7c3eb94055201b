-- What a call of a compiled function costs beside its kernels: seconds of the processor per call, the
-- median of some rounds of many calls, on one thread.
--
--   captures   the same function with 0, 5 and 20 captured locals that do not change
--   fields     with a captured table of 100 numbers, looked at in every 16th call
--   kernels    1, 2, 4 and 8 kernels of one element each; the line through them gives the cost of a
--              call without any (intercept) and of a kernel
local dc = require "deepc"

local CALLS, ROUNDS = 20000, 9

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

local x = dc.ones "f32[1]"
local us = 1e6
print(("deepc %s on %s, %d calls, median of %d"):format(dc._VERSION, dc.stats().device, CALLS, ROUNDS))
local base
for _, n in ipairs { 0, 5, 20 } do
  local t = per_call(capturing(n), x) * us
  base = base or t
  print(("captures %3d    %7.3f us per call, %6.3f more than without"):format(n, t, t - base))
end

local cfg = {}
for i = 1, 100 do
  cfg["k" .. i] = i
end
local with_fields = dc.fn("f(v: f32[1]) -> f32[1]", function(v) return v * cfg.k1 end)
local t = per_call(with_fields, x) * us
print(("fields   100    %7.3f us per call, %6.3f more than without"):format(t, t - base))

-- Sums of sums: each one kernel, each waiting for the one before.
local function chain(n)
  return dc.fn("f(v: f32[2]) -> f32[2]", function(v)
    for _ = 1, n do
      v = v + v:sum()
    end
    return v
  end)
end

local points, y = {}, dc.ones "f32[2]"
for _, n in ipairs { 1, 2, 4, 8 } do
  local f = chain(n)
  f(y)
  local launches = f:info()[1].launches
  points[#points + 1] = { launches, per_call(f, y) * us }
  print(("kernels  %3d    %7.3f us per call"):format(launches, points[#points][2]))
end
local n, sx, sy, sxx, sxy = #points, 0, 0, 0, 0
for _, p in ipairs(points) do
  sx, sy, sxx, sxy = sx + p[1], sy + p[2], sxx + p[1] ^ 2, sxy + p[1] * p[2]
end
local slope = (n * sxy - sx * sy) / (n * sxx - sx ^ 2)
print(("a call without kernels %.3f us, a kernel %.3f us"):format((sy - slope * sx) / n, slope))

-- What a steady call allocates.
local f = capturing(20)
f(x):close()
f(x):close()
collectgarbage()
collectgarbage "stop"
local before, lua = dc.stats().allocs, collectgarbage "count"
for _ = 1, 1000 do
  f(x):close()
end
print(("allocations of device memory per call %g, bytes of Lua %g"):format(
  (dc.stats().allocs - before) / 1000, (collectgarbage "count" - lua) * 1024 / 1000))
