-- One side of bench/memory.py: kernels that memory decides, on n x n numbers. Each line read from
-- standard input is "run NAME COUNT", answered when so many calls have been made, or "check NAME",
-- answered with sums of the results and some of their elements.
--
-- Inputs follow from the seed and the position by integer arithmetic that the other side repeats.
local dc = require "deepc"
local optim = require "deepc.optim"

local n, seed = tonumber(arg[1]), tonumber(arg[2])
local size = ("[%d, %d]"):format(n, n)

local square = dc.fn(("square(k: u32[]) -> f32%s"):format(size), function(k)
  local i = dc.iota(("u32[%d]"):format(n * n))
  local h = i * 2654435761 + k
  h = (h ~ (h >> 15)) * 2246822519
  h = (h ~ (h >> 13)) * 3266489917
  h = h ~ (h >> 16)
  return ((h >> 8):cast "f32" * (1 / (1 << 23)) - 1):reshape(n, n)
end)

local function input(k)
  return square((seed + k * 7919) % 4294967296):clone()
end

local x, g = input(1), input(2)
local w, b = input(3)[1]:clone(), input(4)[1]:clone()
local rows = ((input(5)[1] + 1) * (n / 2)):cast "i32":clone()
local param = dc.param(("f32%s"):format(size))
param:set(input(6))
local adam = optim.Adam({ param }, { lr = 1e-3 })

local function norm(x, w, b)
  local d = x - x:mean { axis = 2, keep = true }
  return d * ((d * d):mean { axis = 2, keep = true } + 1e-5):rsqrt() * w + b
end

local function fn(text, body)
  text = text:gsub("S", size):gsub("R", ("[%d]"):format(n))
  return dc.fn(text, body)
end

local lines = {
  gelu = { fn("gelu(x: f32S) -> f32S", function(x) return (x * 1.1 + 0.1):gelu() * x end), x },
  softmax = { fn("softmax(x: f32S) -> f32S", function(x) return x:softmax(2) end), x },
  softmax_grad = { fn("softmax_grad(x: f32S, g: f32S) -> f32S", function(x, g)
    return dc.grad((x:softmax(2) * g):sum(), { x })[1]
  end), x, g },
  norm = { fn("norm(x: f32S, w: f32R, b: f32R) -> f32S", norm), x, w, b },
  norm_grad = { fn("norm_grad(x: f32S, w: f32R, b: f32R, g: f32S) -> f32S, f32R, f32R", function(x, w, b, g)
    return table.unpack(dc.grad((norm(x, w, b) * g):sum(), { x, w, b }))
  end), x, w, b, g },
  transpose = { fn("transpose(x: f32S) -> f32S", function(x) return x:transpose() end), x },
  sum_rows = { fn("sum_rows(x: f32S) -> f32R", function(x) return x:sum(2) end), x },
  sum_columns = { fn("sum_columns(x: f32S) -> f32R", function(x) return x:sum(1) end), x },
  sum = { fn("sum(x: f32S) -> f32[]", function(x) return x:sum() end), x },
  gather = { fn("gather(x: f32S, rows: i32R) -> f32S", function(x, rows) return x:take(rows, 1) end), x, rows },
  adam = { fn("adam(g: f32S)", function(g) adam:update({ g }, adam.lr) end), g },
}

local function run(f, count, ...)
  for _ = 1, count do
    local x1, x2, x3 = f(...)
    if x1 then x1:close() end
    if x2 then x2:close() end
    if x3 then x3:close() end
  end
end

local function describe(t)
  t = t:reshape(-1)
  local at = (dc.iota("i64[64]") * 2654435761 + 12345) % #t
  local out = { ("%.9g"):format(t:cast "f64":sum():item()) }
  for i, v in ipairs(t:take(at:cast "i32", 1):totable()) do out[i + 1] = ("%.9g"):format(v) end
  return table.concat(out, " ")
end

for line in io.lines() do
  local what, name, count = line:match "^(%S+) (%S+) ?(%d*)$"
  local l = lines[name]
  if what == "run" then
    run(l[1], tonumber(count), table.unpack(l, 2))
    print "done"
  else
    local results = { l[1](table.unpack(l, 2)) }
    if name == "adam" then results = { param * 1 } end
    for i, t in ipairs(results) do results[i] = describe(t) end
    print(table.concat(results, " "))
  end
  io.flush()
end
