-- The parts of deepc doctor that touch compilers, drivers and other libraries. Each is run in a process of its own and
-- prints lines of words with tabs between them, at once, so that what was printed counts when the process is ended.

local dc = require "deepc"

local parts = {}

local function tell(...)
  io.write(table.concat({ ... }, "\t"), "\n")
  io.flush()
end

local function one_line(text)
  return (tostring(text):gsub("%s+", " "))
end

-- ---- what there is ----

function parts.devices(system, kind)
  system.devices(kind)
end

-- The first of these names that is a library; symbol, form: the function that tells its version ("": none).
function parts.library(system, symbol, form, ...)
  for _, name in ipairs { ... } do
    tell("try", name)
    local path, version = system.library(name, symbol ~= "" and symbol or nil, form)
    if path then
      tell("found", path, one_line(version or ""))
      return
    end
    tell("no", one_line(version))
  end
end

-- ---- is it right? ----

-- Random f32 of a normal distribution, made here: no device has a part in it.
local function normal(...)
  local sizes, n = { ... }, 1
  for _, size in ipairs(sizes) do
    n = n * size
  end
  local list = {}
  for i = 1, n do
    list[i] = math.sqrt(-2 * math.log(1 - math.random())) * math.cos(2 * math.pi * math.random())
  end
  return dc.tensor(list, ("f32[%d]"):format(n)):reshape(...)
end

local function integers(most, n)
  local list = {}
  for i = 1, n do
    list[i] = math.random(0, most)
  end
  return dc.tensor(list, ("i32[%d]"):format(n))
end

-- Steps of random functions: of one value, or of two, all of the same sizes and without kinks where a rounding matters.
local steps = {
  function(x) return x:tanh() end,
  function(x) return x:sigmoid() end,
  function(x) return (-x:square()):exp() end,
  function(x) return (x:square() + 1):log() end,
  function(x) return (x:abs() + 0.5):sqrt() end,
  function(x) return x:sin() end,
  function(x) return x:softmax(2) end,
  function(x) return x - x:mean(2):reshape(x.shape[1], 1) end,
  function(x) return x:flip(2) end,
  function(x) return x:roll(3, 1) end,
  function(x) return x:cumsum(2) / x.shape[2] end,
  function(x, y) return x + y end,
  function(x, y) return x * y end,
  function(x, y) return x - y * 0.5 end,
  function(x, y) return x:maximum(y) end,
  function(x, y) return dc.where(x:gt(0), x, y) end,
  function(x, y) return x:matmul(y:transpose()):matmul(y) / (x.shape[1] * x.shape[2]) end,
}

-- A function of two matrices out of random steps, and its arguments.
local function random_function(name, count)
  local rows, columns = math.random(3, 40), math.random(3, 70)
  local chosen = {}
  for i = 1, count do
    chosen[i] = { steps[math.random(#steps)], math.random(i + 1), math.random(i + 1) }
  end
  return dc.fn(name .. "(x: f32[n, m], y: f32[n, m]) -> f32[n, m], f32[m]", function(x, y)
    local values = { x, y }
    for i, step in ipairs(chosen) do
      values[i + 2] = step[1](values[step[2]], values[step[3]])
    end
    return values[#values], values[#values]:sum(1)
  end), { normal(rows, columns), normal(rows, columns) }
end

-- Rows: what it is, a typed function, its arguments, how large a difference may be beside the largest value.
local function cases()
  local list = {}
  local function add(what, f, args, most)
    list[#list + 1] = { what, f, args, most }
  end
  add("elements", dc.fn("elements(x: f32[n, m], y: f32[n, m]) -> f32[n, m]", function(x, y)
    return (x * y + x:tanh()):exp() * (y:abs() + 1):log() - x:sigmoid() / (y:square() + 1)
  end), { normal(37, 53), normal(37, 53) }, 1e-5)
  add("rows", dc.fn("rows(x: f32[n, m]) -> f32[n, m], f32[n], f32[m], i32[n]", function(x)
    return x:softmax(2), x:logsumexp(2), x:mean(1), x:argmax(2)
  end), { normal(61, 130) }, 1e-5)
  add("product", dc.fn("product(a: f32[n, k], b: f32[k, m], c: f32[m]) -> f32[n, m]", function(a, b, c)
    return (a:matmul(b) + c):relu()
  end), { normal(67, 129), normal(129, 45), normal(45) }, 1e-5)
  add("convolution", dc.fn("convolution(x: f32[b, c, h, w], k: f32[o, c, 3, 3]) -> f32[o, c, 3, 3], f32[b, c, h, w]",
    function(x, k)
      local by = dc.grad(dc.conv2d(x, k, { padding = 1 }):tanh():square():sum(), { k, x })
      return by[1], by[2]
    end), { normal(2, 3, 11, 13), normal(5, 3, 3, 3) }, 1e-4)
  add("integers", dc.fn("integers(a: i32[n], b: i32[n]) -> i32[n], i64[], i64[n]", function(a, b)
    return (a * b + 7):bit_xor(b) // 3 - a % 5, a:sum(), (a - b):cumsum(1)
  end), { integers(1000, 300), integers(1000, 300) }, 0)
  add("indices", dc.fn("indices(x: f32[v, m], i: i32[n]) -> f32[n, m], f32[v, m]", function(x, i)
    local rows = x:take(i, 1)
    return rows, dc.grad((rows * rows):sum(), x)
  end), { normal(50, 17), integers(49, 90) }, 1e-5)
  for i = 1, 4 do
    local f, args = random_function("random" .. i, 4 + 2 * i)
    add("random function " .. i, f, args, 1e-4)
  end
  return list
end

-- The largest difference of two results, beside the largest value that there should be. NaN has to be NaN.
local function difference(got, want)
  got, want = got:flatten():totable(), want:flatten():totable()
  local most, scale = 0, 1
  for i, w in ipairs(want) do
    local g = got[i]
    if w ~= w or g ~= g then
      most = (w ~= w) == (g ~= g) and most or math.huge
    elseif g ~= w then
      most = math.max(most, math.abs(g - w))
    end
    scale = math.max(scale, w == w and math.abs(w) or 0)
  end
  return most / (scale < math.huge and scale or 1)
end

-- Prints a line of each case: "case", what, ok or wrong, the difference; at the end what it took.
local function test_right(system)
  math.randomseed(20)
  local from = system.now()
  for _, case in ipairs(cases()) do
    local what, f, args, most = table.unpack(case)
    tell("begin", what)
    local got, there, largest = table.pack(f(table.unpack(args))), {}, 0
    for i, x in ipairs(args) do
      there[i] = x:to "eval"
    end
    local want = table.pack(f(table.unpack(there)))
    for i = 1, want.n do
      largest = math.max(largest, difference(got[i], want[i]))
    end
    tell("case", what, largest <= most and "ok" or "wrong", ("%.2g"):format(largest))
  end
  local stats = dc.stats()
  tell("right", ("%d"):format(stats.fallbacks), ("%.3f"):format(system.now() - from))
end

-- ---- how fast? ----

-- Seconds of f(), the best of those that fit into `room` seconds.
local function best(system, room, f)
  f()
  local least, from = math.huge, system.now()
  repeat
    local begin = system.now()
    f()
    least = math.min(least, system.now() - begin)
  until system.now() - from > room
  return least
end

local SIZE, COPY, ROOM = 1024, 1 << 24, 0.35 -- of matrices; elements; seconds of each measurement

local function test_speed(system)
  local n = tostring(SIZE)
  local product = dc.fn(("product(a: f32[%s, %s], b: f32[%s, %s]) -> f32[%s, %s]"):format(n, n, n, n, n, n),
    function(a, b) return a:matmul(b) end)
  local a, b = dc.rand(("f32[%s, %s]"):format(n, n)), dc.rand(("f32[%s, %s]"):format(n, n))
  local seconds = best(system, ROOM, function() product(a, b)[1][1]:item() end)
  tell("product", ("%.4g"):format(2 * SIZE ^ 3 / seconds / 1e9))
  local copy = dc.fn(("copy(x: f32[%d]) -> f32[%d]"):format(COPY, COPY), function(x) return -x end)
  local x = dc.rand(("f32[%d]"):format(COPY))
  seconds = best(system, ROOM, function() copy(x)[1]:item() end)
  tell("copy", ("%.4g"):format(2 * 4 * COPY / seconds / 1e9))
end

local function make_step()
  local nn, optim = require "deepc.nn", require "deepc.optim"
  local net = nn.Sequential { nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10) }
  local opt = optim.Adam(net:parameters(), { lr = 1e-3 })
  local step = dc.fn("step(x: f32[64, 784], y: i32[64]) -> f32[]", function(x, y)
    local loss = nn.cross_entropy(net(x), y)
    opt:step(loss)
    return loss
  end)
  return step, dc.rand "f32[64, 784]", integers(9, 64)
end

local function test_training(system)
  local step, x, y = make_step()
  local first = step(x, y):item()
  local seconds = best(system, ROOM, function() step(x, y):item() end)
  local last = step(x, y):item()
  tell("training", ("%.4g"):format(seconds * 1e3), last < first and "ok" or "wrong")
end

-- From nothing to the loss of a first step; who starts this process measures.
local function test_start()
  local step, x, y = make_step()
  tell("start", ("%.4f"):format(step(x, y):item()))
end

-- What one kernel more takes to compile, and the first one, which opens the compiler.
local function test_compiling(system)
  for i, what in ipairs { "first", "next" } do
    local from = system.now()
    local f = dc.fn(("f%d(x: f32[1000, 100]) -> f32[1000]"):format(i), function(x)
      return (x * (i + 0.5)):tanh():sum(2)
    end)
    f(dc.ones "f32[1000, 100]")[1]:item()
    tell("compile", what, ("%.4g"):format((system.now() - from) * 1e3))
  end
end

local function test_nothing()
end

local tests = { nothing = test_nothing, right = test_right, speed = test_speed, training = test_training,
  start = test_start, compiling = test_compiling }

-- On the device that DEEPC_DEVICE names.
function parts.test(system, name)
  tests[name](system)
end

return parts
