-- What ranks exchange, of every kind and dtype, written by each rank to FILE.RANK as numbers: the same whichever way it goes.
--
--   mpirun -n N deepc tests/ranks/devices.lua FILE
local dc = require "deepc"

local world = dc.world()
dc.mesh { data = world.size }
local n, rank = world.size, world.rank
local lines = {}

local function write(name, t)
  local words = {}
  for _, x in ipairs(t:flatten():totable()) do
    words[#words + 1] = type(x) == "number" and ("%.17g"):format(x) or tostring(x)
  end
  lines[#lines + 1] = name .. " " .. table.concat(words, " ")
end

-- Small whole numbers, so that sums are exact in any order.
local function values(dtype, rows, columns)
  local x = dc.arange(("f32[%d]"):format(rows * columns)):reshape(rows, columns)
  return ((x * 3 + rank * 5) % 7 + (rank == 0 and 1 or 0)):cast(dtype)
end

local sums = { "f32", "f64", "f16", "bf16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool" }

-- Inside of typed functions, several times each.
for _, dtype in ipairs(sums) do
  for _, op in ipairs { "sum", "max", "min", "prod" } do
    local f = dc.fn(("f(x: %s[6, 4]) -> %s[6, 4]"):format(dtype, dtype), function(x)
      return dc.all_reduce(x, { op = op })
    end)
    for _ = 1, 2 do
      write("all_reduce " .. op .. " " .. dtype, f(values(dtype, 6, 4)))
    end
  end
end
for _, dtype in ipairs { "f32", "f16", "i16", "bool", "u64" } do
  for axis = 1, 2 do
    write("all_gather " .. axis .. dtype, dc.all_gather(values(dtype, 6, 4), axis))
    write("all_to_all " .. axis .. dtype, dc.all_to_all(values(dtype, 6 * n, 2 * n), axis, axis))
  end
  write("broadcast " .. dtype, dc.broadcast(values(dtype, 6, 4), n - 1))
end
for axis = 1, 2 do
  write("reduce_scatter " .. axis, dc.reduce_scatter(values("f32", 6 * n, 4 * n), axis))
end

-- Gradients, and a loop whose body exchanges.
local g = dc.fn("g(x: f32[6, 4]) -> f32[6, 4]", function(x)
  local y = dc.all_gather(x * x, 1):sum() + dc.all_reduce(x * 2):sum() + (dc.reduce_scatter(x:pad { { 0, 6 * n - 6 } }, 1) * 3):sum()
  return dc.grad(y * dc.broadcast(y, 0):sum(), x)
end)
write("gradient", g(values("f32", 6, 4)))
local h = dc.fn("h(x: f32[5, 4]) -> f32[4]", function(x)
  return (dc.scan(function(s, row) return s + dc.all_reduce(row), nil end, dc.zeros "f32[4]", x))
end)
write("loop", h(values("f32", 5, 4)))

local file = assert(io.open(arg[1] .. "." .. rank, "w"))
file:write(table.concat(lines, "\n"), "\n")
file:close()
print("exchanged " .. #lines .. " values")
