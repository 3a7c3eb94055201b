-- What ranks exchange, of every kind and dtype, written by each rank to FILE.RANK: the same whichever way it goes.
--
--   mpirun -n N deepc tests/ranks/devices.lua FILE
local dc = require "deepc"

local world = dc.world()
dc.mesh { data = world.size }
local n, rank = world.size, world.rank
local lines = {}

local function words_of(t, words)
  if type(t) == "table" then
    for _, x in ipairs(t) do words_of(x, words) end
  else
    words[#words + 1] = type(t) == "number" and ("%.17g"):format(t) or tostring(t)
  end
  return words
end

local function write(name, t)
  lines[#lines + 1] = name .. " " .. table.concat(words_of(t:totable(), {}), " ")
end

-- Small whole numbers, so that sums are exact in any order.
local function values(dtype, rows, columns)
  local all = {}
  for i = 1, rows do
    all[i] = {}
    for k = 1, columns do all[i][k] = (i * columns + k * 3 + rank * 5) % 7 % (dtype == "bool" and 2 or 7) end
  end
  return dc.tensor(all):cast(dtype)
end

-- A typed function is called twice: the second time it is known.
local function exchange(name, dtype, rows, columns, body, to_rows, to_columns)
  local f = dc.fn(("f(x: %s[%d, %d]) -> %s[%d, %d]"):format(dtype, rows, columns, dtype, to_rows or rows,
    to_columns or columns), body)
  for _ = 1, 2 do write(name .. " " .. dtype, f(values(dtype, rows, columns))) end
end

for _, dtype in ipairs { "f32", "f64", "f16", "bf16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool" } do
  for _, op in ipairs { "sum", "max", "min" } do
    if dtype ~= "bool" or op ~= "sum" then
      exchange("all_reduce " .. op, dtype, 6, 4, function(x) return dc.all_reduce(x, { op = op }) end)
    end
  end
end
for _, dtype in ipairs { "f32", "f16", "i16", "bool", "u64" } do
  for axis = 1, 2 do
    local rows, columns = axis == 1 and n or 1, axis == 2 and n or 1
    exchange("all_gather " .. axis, dtype, 6, 4, function(x) return dc.all_gather(x, axis) end, 6 * rows, 4 * columns)
    exchange("all_to_all " .. axis, dtype, 2 * n, 3 * n, function(x) return dc.all_to_all(x, axis, axis) end)
  end
  exchange("broadcast", dtype, 6, 4, function(x) return dc.broadcast(x, n - 1) end)
end
exchange("all_to_all along two axes", "f32", 2 * n, 3, function(x) return dc.all_to_all(x, 1, 2) end, 2, 3 * n)
for axis = 1, 2 do
  local rows, columns = axis == 1 and n or 1, axis == 2 and n or 1
  exchange("reduce_scatter " .. axis, "f32", 6 * rows, 4 * columns,
    function(x) return dc.reduce_scatter(x, axis) end, 6, 4)
end

-- Gradients, and a loop whose body exchanges.
exchange("gradient", "f32", 6 * n, 4, function(x)
  local y = dc.all_gather(x * x, 1):sum() + dc.all_reduce(x * 2):sum() + (dc.reduce_scatter(x, 1) * 3):sum()
  return dc.grad(y + (dc.all_to_all(x, 1, 1) * x):sum() + dc.broadcast(x, 0):sum(), { x })[1]
end)
exchange("loop", "f32", 5, 4, function(x)
  local s = dc.scan(function(s, row) return s + dc.all_reduce(row), nil end, dc.zeros "f32[4]", x)
  return x * s
end)

local file = assert(io.open(arg[1] .. "." .. rank, "w"))
file:write(table.concat(lines, "\n"), "\n")
file:close()
print(("exchanged %d values, %d bytes"):format(#lines, dc.world().sent))
