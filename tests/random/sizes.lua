-- Random operations of the sizes that layers have, where the rules for groups of threads choose tiles, stages, parts
-- and ranges; the graphs of tests/random/random.c are small beside them.
--
--   deepc sizes.lua save FILE [COUNT [SEED]]       computes COUNT (40) operations and writes their results
--   deepc sizes.lua compare FILE [COUNT [SEED]]    computes the same, with another device, and compares
--
-- All but those of rows are sums of products of small whole numbers, so f32 has to be exact in whatever order; 16-bit
-- floats are rounded once or twice. Rows (softmax and such) are compared with a tolerance beside their largest element.
-- luacheck: ignore 431 432
local dc = require "deepc"

local mode, path, count, seed = arg[1], arg[2], tonumber(arg[3] or 40), tonumber(arg[4] or 1)
if (mode ~= "save" and mode ~= "compare") or path == nil then
  error("sizes.lua save|compare FILE [COUNT [SEED]]", 0)
end

local function chance(percent)
  return math.random(100) <= percent
end

local function pick(list)
  return list[math.random(#list)]
end

local common = { 1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 96, 100, 127, 128, 129, 160, 192,
  255, 256, 257, 320, 384, 500, 512, 513, 768, 1000, 1024, 1025, 2048, 4096, 5000 }

local function size(most)
  return math.min(chance(60) and pick(common) or math.random(most), most)
end

local function type_text(dtype, shape)
  return ("%s[%s]"):format(dtype, table.concat(shape, ", "))
end

local function type_of(x)
  return type_text(x.dtype, x.shape)
end

-- Whole numbers -2 to 2; 0 to 3 of unsigned types.
local function digits(dtype, ...)
  local unsigned = dtype:sub(1, 1) == "u"
  return dc.randint(type_text("i32", { ... }), { low = unsigned and 0 or -2, high = unsigned and 4 or 3 }):cast(dtype)
end

-- Calls `body` as a typed function of these arguments, whose names are those in `body`. It gets dc.grad before them.
local function call(body, ...)
  local results, names, parameters = {}, {}, {}
  local function note(_, x)
    results[#results + 1] = type_of(x)
  end
  local y = body(note, ...) -- lazy, for its type: nothing is computed
  table.insert(results, 1, type_of(y))
  for i, x in ipairs { ... } do
    names[i] = debug.getlocal(body, i + 1)
    parameters[i] = ("%s: %s"):format(names[i], type_of(x))
  end
  local words = table.concat(names, ", ")
  local typed = load(("local body, grad = ... return function(%s) return body(grad, %s) end"):format(words, words))
  local signature = ("f(%s) -> %s"):format(table.concat(parameters, ", "), table.concat(results, ", "))
  return dc.fn(signature, typed(body, dc.grad))(...)
end

-- y, and where they are asked for the gradients of the sum of y * u.
local function with_gradients(grad, y, u, ...)
  local loss, gradients = (y * u):cast "f32":sum(), {}
  for i, x in ipairs { ... } do
    gradients[i] = grad(loss, x)
  end
  return y, table.unpack(gradients)
end

-- ---- each returns what it is in words, the tolerance of f32, and results ----

local kinds = {}

function kinds.product()
  local dtype = pick { "f32", "f32", "f16", "bf16", "f64" }
  local m, n, k = size(700), size(700), size(3000)
  while m * n * k > 3e7 do
    m, n, k = math.max(1, m // 2), math.max(1, n * 2 // 3), math.max(1, k * 2 // 3)
  end
  local batch = chance(25) and math.random(5) or nil
  local a_turned, b_turned = chance(40), chance(40)
  local function operand(rows, columns, turned, has_batch)
    local shape = turned and { columns, rows } or { rows, columns }
    if has_batch then table.insert(shape, 1, batch) end
    return digits(dtype, table.unpack(shape))
  end
  local a, b = operand(m, k, a_turned, batch), operand(k, n, b_turned, batch and chance(60))
  local c, u = digits(dtype, n), operand(m, n, false, batch)
  local before, bias, after, backward = chance(20), chance(60), chance(40), chance(40)
  local function turn(x)
    return #x.shape == 3 and x:permute(1, 3, 2) or x:transpose()
  end
  local what = ("product %s %s%dx%dx%d %s%s"):format(dtype, batch and batch .. " times " or "", m, n, k,
    a_turned and "t" or "n", b_turned and "t" or "n")
  return what, 0, call(function(grad, a, b, c, u)
    local x = before and a:relu() or a
    local y = (a_turned and turn(x) or x):matmul(b_turned and turn(b) or b)
    y = bias and y + c or y
    y = after and y:relu() or y
    if backward then return with_gradients(grad, y, u, a, b) end
    return y
  end, a, b, c, u)
end

function kinds.conv()
  local dtype, groups = pick { "f32", "f32", "f16", "bf16" }, chance(20) and pick { 2, 3, 4 } or 1
  local from = groups * pick { 1, 2, 3, 4, 5, 8, 16, 17, 32, 33, 64 }
  local to = groups * pick { 1, 2, 3, 5, 7, 8, 10, 16, 31, 32, 64 }
  if chance(10) then -- depthwise
    groups, to = from, from * pick { 1, 2 }
  end
  local kh = pick { 1, 1, 2, 3, 3, 5, 7 }
  local kw = chance(60) and kh or pick { 1, 3, 5 }
  local options = { stride = pick { 1, 1, 2, 3 }, padding = pick { 0, 1, 1, 2 }, dilation = chance(15) and 2 or 1,
    groups = groups }
  local h, w, batch = 2 * kh + math.random(0, 19), 2 * kw + math.random(0, 19), pick { 1, 2, 3, 8, 16 }
  while batch > 1 and batch * h * w * from * to // groups * kh * kw > 3e7 do
    batch = batch // 2
  end
  local x, kernel, c = digits(dtype, batch, from, h, w), digits(dtype, to, from // groups, kh, kw), digits(dtype, to)
  local after, backward = chance(50), chance(60)
  local what = ("conv %s %d of %dx%d, %d to %d, window %dx%d, stride %d, padding %d, dilation %d, groups %d"):format(
    dtype, batch, h, w, from, to, kh, kw, options.stride, options.padding, options.dilation, groups)
  local u = digits(dtype, table.unpack(dc.conv2d(x, kernel, options).shape))
  return what, 0, call(function(grad, x, kernel, c, u)
    local y = dc.conv2d(x, kernel, options)
    y = after and (y + c:reshape(1, to, 1, 1)):relu() or y
    if backward then return with_gradients(grad, y, u, x, kernel) end
    return y
  end, x, kernel, c, u)
end

function kinds.pool()
  local dtype, pool = pick { "f32", "f16" }, pick { dc.max_pool2d, dc.avg_pool2d }
  local shape = { pick { 1, 2, 8 }, pick { 1, 3, 16, 32, 64 }, math.random(4, 33), math.random(4, 33) }
  local window, options = pick { 2, 3 }, { stride = pick { 1, 2, 3 }, padding = pick { 0, 1 } }
  local x = digits(dtype, table.unpack(shape))
  local u = digits(dtype, table.unpack(pool(x, window, options).shape))
  local what = ("pool %s, window %d, stride %d, padding %d"):format(type_of(x), window, options.stride, options.padding)
  return what, 1e-6, call(function(grad, x, u) -- a ninth is no whole number
    return with_gradients(grad, pool(x, window, options), u, x)
  end, x, u)
end

function kinds.gather()
  local dtype = pick { "f32", "f16", "bf16" }
  local places, columns, updates = size(5000), chance(20) and 1 or size(800), size(5000)
  while places * columns > 1e6 do places = places // 2 end
  while updates * columns > 1e6 do updates = updates // 2 end
  local used = chance(40) and math.random(math.min(places, 4)) or places -- few: long sums
  local x, u = digits(dtype, places, columns), digits(dtype, updates, columns)
  local at = dc.randint(type_text("i32", { updates }), { low = 0, high = used })
  local flat = chance(20)
  local what = ("gather of %s at %d, of %d places, %s"):format(type_of(x), updates, used, flat and "flat" or "rows")
  return what, 0, call(function(grad, x, at, u)
    local y = (flat and x:cast "f32":sum(2) or x):take(at, 1)
    return with_gradients(grad, y, flat and u:cast "f32":sum(2) or u, x)
  end, x, at, u)
end

local function random_shape(rank, all, most)
  local shape = {}
  for i = 1, rank do
    shape[i] = math.max(1, math.min(size(most), all))
    all = all // shape[i]
  end
  return shape
end

function kinds.reduce()
  local dtype, rank = pick { "f32", "f16", "bf16", "i32", "u8", "i8" }, math.random(4)
  local x = digits(dtype, table.unpack(random_shape(rank, 800000, 1500)))
  local axes, name = {}, pick { "sum", "sum", "max", "min" }
  for axis = 1, rank do
    if chance(50) or (axis == rank and #axes == 0) then axes[#axes + 1] = axis end
  end
  local squared = chance(30)
  return ("%s of %s over %s"):format(name, type_of(x), table.concat(axes, ", ")), 0, call(function(_, x)
    local y = squared and x * x or x
    return y[name](y, { axis = axes })
  end, x)
end

function kinds.move()
  local rank, dtype = math.random(2, 4), pick { "f32", "f16", "u8", "f64", "i32" }
  local shape = random_shape(rank, 500000, 700)
  local x, order, ranges, flipped = digits(dtype, table.unpack(shape)), {}, {}, chance(30) and math.random(rank)
  for i = 1, rank do
    table.insert(order, math.random(i), i)
    ranges[i] = { chance(20) and math.min(shape[i], 3) or 1, -1 }
  end
  local twice = chance(30)
  return ("%s in order %s"):format(type_of(x), table.concat(order, " ")), 0, call(function(_, x)
    local y = x[ranges]:permute(table.unpack(order))
    y = flipped and y:flip(flipped) or y
    return twice and y + y or y
  end, x)
end

local rows = {
  softmax = function(x, axis) return x:softmax(axis) end,
  log_softmax = function(x, axis) return x:log_softmax(axis) end,
  logsumexp = function(x, axis) return x:logsumexp(axis) end,
  cross_entropy = function(x, axis, u) return -(x:log_softmax(axis) * u):sum(axis) end,
  norm = function(x, axis)
    local c = x - x:mean { axis = axis, keep = true }
    return c * ((c * c):mean { axis = axis, keep = true } + 1e-2):rsqrt()
  end,
  rms_norm = function(x, axis) return x * ((x * x):mean { axis = axis, keep = true } + 1e-2):rsqrt() end,
  variance = function(x, axis) return x:var(axis) end,
  max = function(x, axis) return x:max(axis) end,
  cumsum = function(x, axis) return x:cumsum(axis) end,
  cumprod = function(x, axis) return (x / 4096 + 1):cumprod { axis = axis, reverse = true } end,
  cummax = function(x, axis) return x:cummax(axis) end,
  logcumsumexp = function(x, axis) return x:logcumsumexp(axis) end,
}
local row_names = {}
for name in pairs(rows) do row_names[#row_names + 1] = name end
table.sort(row_names)

function kinds.rows()
  local dtype, name = pick { "f32", "f32", "f16", "bf16" }, pick(row_names)
  local long = chance(30) and pick { 8191, 8192, 12288, 20000, 32000, 50257, 60001, 65536 } or size(6000)
  local shape = { math.max(1, math.min(size(300), 600000 // long)), long }
  if chance(30) then table.insert(shape, 1, math.random(3)) end
  local axis, backward = chance(75) and #shape or math.random(#shape), chance(50)
  local function fractions()
    return (dc.randint(type_text("i32", shape), { low = -64, high = 65 }):cast "f32" / 16):cast(dtype)
  end
  local x, u = fractions(), fractions()
  return ("%s of %s over %d"):format(name, type_of(x), axis), 3e-5, call(function(grad, x, u)
    local y = rows[name](x:cast "f32", axis, u:cast "f32")
    if backward then
      local v = #y.shape == #x.shape and u:cast "f32" or 1
      return y, grad((y * v):sum(), x)
    end
    return y
  end, x, u)
end

-- ---- running ----

local names = {}
for name in pairs(kinds) do names[#names + 1] = name end
table.sort(names)

-- Of two roundings, beside the largest element.
local roundings = { f16 = 2 ^ -10, bf16 = 2 ^ -7 }

local function differs(got, want, tolerance)
  if got.dtype ~= want.dtype or type_of(got) ~= type_of(want) then return "its type is " .. type_of(got) end
  local bound = tolerance + (roundings[want.dtype] or 0)
  local x, y = got:cast "f64", want:cast "f64"
  local distance = dc.where(x:eq(y), 0, (x - y):abs()) -- equal infinities are not apart
  local apart, most = distance:max():item(), y:abs():max():item()
  if not (apart <= bound * most or apart == 0) then -- so NaN differs
    return ("%g apart, of %g, bound %g"):format(apart, most, bound * most)
  end
  -- Two roundings here and two there of sums that are exact; biases, -2 to 2, may have been added between them.
  local rounding = 2 * (roundings[want.dtype] or 0)
  local over = tolerance == 0 and distance:gt((y:abs() + 4) * rounding):any():item()
  return over and ("%g apart, more than roundings make of an element"):format(apart) or nil
end

local saved, passed, failed = mode == "save" and {} or dc.load(path), 0, 0
for number = seed, seed + count - 1 do
  math.randomseed(number)
  dc.seed(number)
  local kind = pick(names)
  local results = table.pack(kinds[kind]())
  for k = 3, results.n do
    local name = ("%d.%d"):format(number, k - 2)
    if mode == "save" then
      saved[name] = results[k]
    else
      local wrong = saved[name] == nil and "it is not in the file" or differs(results[k], saved[name], results[2])
      passed, failed = passed + (wrong and 0 or 1), failed + (wrong and 1 or 0)
      if wrong then print(("%s %s: result %d: %s"):format(number, results[1], k - 2, wrong)) end
    end
  end
end
if mode == "save" then
  dc.save(path, saved)
else
  print(("seed %d, %d operations"):format(seed, count))
  print(("%d passed, %d failed"):format(passed, failed))
  os.exit(failed == 0, true)
end
