-- All_reduces of 4 MiB and what they give: HOSTS.. of the ranks, bytes that this rank gave, and by the formula.
--
--   mpirun -n N deepc tests/ranks/bytes.lua [TIMES]
local dc = require "deepc"

local world = dc.world()
dc.mesh { data = world.size }
local before = dc.world().sent -- by dc.mesh, which ranks compare
local times, n = tonumber(arg[1] or 1), 1 << 20
local sum = dc.fn(("sum(v: f32[%d]) -> f32[%d]"):format(n, n), function(v)
  local y = dc.all_reduce(v)
  return y
end)
local x = dc.full(("f32[%d]"):format(n), world.rank + 1)
local begun = dc.clock()
for _ = 1, times do
  local y = sum(x)
  assert(y:min():item() == world.size * (world.size + 1) / 2 and y:max():item() == y:min():item())
end
local seconds = dc.clock() - begun
local formula = times * 2 * 4 * n * (world.size - 1) // world.size
local hosts = table.concat(world.hosts, " ")
local line = "rank %d of %s: %d bytes given, %d by the formula, %.3f s\n"
io.write(line:format(world.rank, hosts, dc.world().sent - before, formula, seconds))
