-- Typed functions that use each operation which StableHLO has something for, with arguments: what
-- tests/lua/test_stablehlo_out.lua writes and reads again, and tests/stablehlo/xla.lua gives to XLA.
--
-- A case is { name =, f =, args =, near = }: a typed function, its arguments, and how far results may be off, relative
-- to the larger of the number and 1; the function may read cells.
local dc = require "deepc"
local nn = require "deepc.nn"
local fft = require "deepc.fft"
local linalg = require "deepc.linalg"
local optim = require "deepc.optim"

local cases = {}

local function add(name, signature, body, ...)
  cases[#cases + 1] = { name = name, f = dc.fn(signature, body), args = { ... }, near = 1e-5 }
  return cases[#cases]
end

local function exact(...)
  add(...).near = 0
end

-- n numbers from `low` to `high`, in steps as even as they get.
local function steps(low, high, n, dtype)
  local list = {}
  for i = 1, n do
    list[i] = low + (high - low) * (i - 1) / (n - 1)
  end
  return dc.tensor(list, ("%s[%d]"):format(dtype or "f32", n))
end

local function matrix(rows, columns, seed, dtype)
  local list = {}
  for i = 1, rows do
    list[i] = {}
    for j = 1, columns do
      list[i][j] = math.sin(i * 3.7 + j * 1.3 + (seed or 0))
    end
  end
  return dc.tensor(list, ("%s[%d, %d]"):format(dtype or "f32", rows, columns))
end

-- ---- element by element --------------------------------------------------------------------------

local functions = { neg = { -4, 4 }, abs = { -4, 4 }, exp = { -30, 30 }, log = { 1e-3, 40 }, sqrt = { 0, 9 },
  floor = { -4, 4 }, round = { -4, 4 }, expm1 = { -3, 3 }, log1p = { -0.9, 9 }, erf = { -5, 5 }, sin = { -9, 9 },
  cos = { -9, 9 }, tan = { -1.4, 1.4 }, asin = { -1, 1 }, acos = { -1, 1 }, atan = { -9, 9 }, sinh = { -20, 20 },
  cosh = { -20, 20 }, asinh = { -50, 50 }, acosh = { 1, 50 }, atanh = { -0.99, 0.99 }, exp2 = { -40, 40 },
  log2 = { 1e-3, 40 }, log10 = { 1e-3, 40 }, cbrt = { -9, 9 }, erfc = { -3, 9 }, erf_inv = { -0.9999, 0.9999 },
  lgamma = { 0.05, 30 }, digamma = { 0.05, 30 }, sigmoid = { -20, 20 }, silu = { -20, 20 }, gelu = { -6, 6 } }
local names = {}
for name in pairs(functions) do
  names[#names + 1] = name
end
table.sort(names)
for _, name in ipairs(names) do
  local low, high = table.unpack(functions[name])
  for _, dtype in ipairs { "f32", "f64" } do
    add(name .. " " .. dtype, ("f(x: %s[n]) -> %s[n]"):format(dtype, dtype), function(x) return x[name](x) end,
      steps(low, high, 131, dtype))
  end
end
for _, name in ipairs { "lgamma", "digamma" } do
  add(name .. " below 0", "f(x: f32[n]) -> f32[n]", function(x) return x[name](x) end, steps(-7.45, 0.45, 80))
end
add("ends", "f(x: f32[n]) -> f32[n, 12]", function(x)
  return dc.stack({ x:erf(), x:erfc(), x:lgamma(), x:sigmoid(), x:tanh(), x:asinh(), x:sinh(), x:cosh(), x:exp2(),
    x:gelu(), x:silu(), x:atan() }, 2)
end, dc.tensor { math.huge, -math.huge, 0 / 0, 0, 88, -100, 3e38, -3e38, 1e-30 })
add("gelu tanh", "f(x: f32[n]) -> f32[n]", function(x) return x:gelu { approximate = "tanh" } end, steps(-6, 6, 60))
add("short floats", "f(x: bf16[n], y: f16[n]) -> bf16[n], f16[n], f16[], bf16[]", function(x, y)
  return x:gelu(), y:erf() * y, y:sum(), x:max()
end, steps(-3, 3, 40, "bf16"), steps(-3, 3, 40, "f16")).near = 1e-2
add("floats", "f(x: f32[n], y: f32[n]) -> f32[n, 9]", function(x, y)
  return dc.stack({ x + y, x - y, x * y, x / y, x:rem(y), dc.maximum(x, y), dc.minimum(x, y), dc.atan2(x, y),
    x:copysign(y) }, 2)
end, steps(-4, 4, 40), steps(3, -3.3, 40))
add("powers", "f(x: f32[n], y: f32[n]) -> f32[n, 4]", function(x, y)
  return dc.stack({ x ^ y, x ^ 3, x ^ 2.5, 2 ^ y }, 2)
end, steps(0.1, 4, 40), steps(3, -3.3, 40))
exact("compare", "f(x: f32[n], y: f32[n]) -> bool[n, 6], f32[n]", function(x, y)
  return dc.stack({ x:lt(y), x:le(y), x:eq(y), x:ne(y), x:gt(y), x:ge(y) }, 2), dc.where(x:lt(y), x, y)
end, dc.tensor { 1, 2, 3, 0 / 0, math.huge }, dc.tensor { 2, 2, 1, 1, math.huge })
for _, dtype in ipairs { "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64" } do
  local a, b = dc.tensor({ 7, 100, 13, 1, 0, 9 }, dtype .. "[6]"), dc.tensor({ 2, 3, 5, 1, 4, 8 }, dtype .. "[6]")
  if dtype:find "^i" then
    a = a * dc.tensor({ 1, -1, 1, -1, 1, -1 }, dtype .. "[6]")
  end
  exact("integers " .. dtype, ("f(x: %s[n], y: %s[n]) -> %s[n, 11], bool[n], f32[n]"):format(dtype, dtype, dtype),
    function(x, y)
      return dc.stack({ x + y, x - y, x * y, x:floor_div(y), x:rem(y), dc.maximum(x, y), dc.minimum(x, y), x & y,
        x | y, x ~ y, ~x }, 2), x:lt(y), x:cast "f32"
    end, a, b)
  exact("shifts " .. dtype, ("f(x: %s[n], y: %s[n]) -> %s[n, 3]"):format(dtype, dtype, dtype), function(x, y)
    return dc.stack({ x:shift_left(y), x:shift_right(y), x:integer_pow(y) }, 2)
  end, a, b)
end
exact("bool", "f(x: bool[n], y: bool[n]) -> bool[n, 5], f32[n], i32[], bool[]", function(x, y)
  return dc.stack({ x & y, x | y, x ~ y, ~x, dc.maximum(x, y) }, 2), x:cast "f32", y:sum(), x:max()
end, dc.tensor({ true, true, false, false }, "bool"), dc.tensor({ true, false, true, false }, "bool"))
exact("casts", "f(x: f32[n]) -> f64[n], i32[n], f16[n], bool[n], u8[n]", function(x)
  return x:cast "f64", x:cast "i32", x:cast "f16", x:ne(0), x:abs():cast "u8"
end, steps(-5.5, 5.5, 12))
exact("patterns", "f(x: f32[n], y: i32[n]) -> i32[n], f32[n], f32[n]", function(x, y)
  return x:bitcast "i32", y:bitcast "f32", (y & 0x7BFF):cast("u16"):half_float()
end, steps(-5, 5, 9), dc.tensor({ 0, 1, 1 << 30, -1 << 31, 5, 6, 7, 8, 9 }, "i32[9]"))

-- ---- movement and reductions ---------------------------------------------------------------------

local cube = dc.iota("f32[24]"):reshape(2, 3, 4)
exact("movement", "f(x: f32[2, 3, 4]) -> f32[6, 4], f32[4, 2, 3], f32[2, 3, 4, 2], f32[1, 2, 2], f32[2, 3, 4]",
  function(x)
    return x:reshape(6, 4), x:permute(3, 1, 2), x:reshape(2, 3, 4, 1):expand(2, 3, 4, 2),
      x:slice { { 2, 2 }, { 1, 3, 2 }, { 2, 4, 2 } }, x:flip { 1, 3 }
  end, cube)
exact("padding", "f(x: f32[2, 3, 4]) -> f32[3, 3, 7], f32[2, 6, 4]", function(x)
  return x:pad({ { 1, 0 }, { 0, 0 }, { 1, 2 } }, -1), dc.concat({ x, x * 2 }, 2)
end, cube)
exact("positions", "f() -> f32[3, 2], i32[3, 2], bool[4]", function()
  return dc.iota("f32[3, 2]", 1), dc.iota("i32[3, 2]", 2), dc.iota("i32[4]"):rem(2):eq(1)
end)
add("reductions", "f(x: f32[2, 3, 4]) -> f32[2, 4], f32[], f32[3], f32[2, 3], f32[2]", function(x)
  return x:sum(2), x:sum(), x:max { 1, 3 }, x:min(3), (x * 0.1 + 0.5):prod { 2, 3 }
end, cube)
exact("reductions of integers", "f(x: i32[n], y: u8[n]) -> i64[], i32[], i32[], u64[], u8[]", function(x, y)
  return x:sum(), x:max(), x:min(), y:sum(), y:max()
end, dc.tensor({ 5, -7, 3 }, "i32[3]"), dc.tensor({ 200, 100, 3 }, "u8[3]"))
add("running", "f(x: f32[3, 40]) -> f32[3, 40], f32[3, 40], f32[3, 40], f32[3, 40]", function(x)
  return x:cumsum(2), x:cumprod(2), x:cummax { axis = 1 }, x:cummin { axis = 2, reverse = true }
end, matrix(3, 40))

exact("no elements", "f(x: f32[0, 3], y: f32[2, 0]) -> f32[3], f32[0], f32[2, 3], f32[1, 3], f32[0, 3], f32[0, 3]",
  function(x, y)
    return x:sum(1), x:max(2), y:matmul(x), x:pad({ { 1, 0 }, { 0, 0 } }, 7), x:cumsum(1), x:sort(2)
  end, dc.zeros "f32[0, 3]", dc.zeros "f32[2, 0]")

-- ---- gather and scatter --------------------------------------------------------------------------

local places = dc.tensor({ 2, 0, 1, 1, 2 }, "i32[5]")
exact("gather", "f(x: f32[2, 3, 4], i: i32[5], j: i64[2, 2]) -> f32[2, 5, 4], f32[2, 2, 4], f32[2, 2, 3, 4]",
  function(x, i, j)
    return x:take(i, 2), x:gather(j:reshape(2, 2, 1):expand(2, 2, 4), 2), x:take(j, 1):reshape(2, 2, 3, 4)
  end, cube, places, dc.tensor({ { 0, 1 }, { 1, 1 } }, "i64[2, 2]"))
for _, how in ipairs { "set", "add", "mul", "max", "min" } do
  add("scatter " .. how, "f(x: f32[4, 3], i: i32[5], u: f32[5, 3]) -> f32[4, 3]", function(x, i, u)
    return x:scatter(i:reshape(5, 1):expand(5, 3), u, 1, { reduce = how })
  end, matrix(4, 3), places, matrix(5, 3, 1))
end
add("gradient of gather", "f(x: f32[4, 3], i: i32[5]) -> f32[4, 3]", function(x, i)
  return dc.grad((x:take(i, 1) ^ 2):sum(), x)
end, matrix(4, 3), dc.tensor({ 2, 0, 3, 2, 2 }, "i32[5]"))

-- ---- order ---------------------------------------------------------------------------------------

local mixed = dc.tensor { { 3, -1, 0 / 0, 3, -math.huge }, { -0.0, 0, 5, math.huge, -2 } }
exact("sort", "f(x: f32[2, 5]) -> f32[2, 5], f32[2, 5], i32[2, 5], i32[2, 5]", function(x)
  return x:sort(2), x:sort { axis = 2, descending = true }, x:argsort(2), x:argsort { axis = 2, descending = true }
end, mixed)
exact("sort of integers", "f(x: i32[6]) -> i32[6], f32[2], i32[2]", function(x)
  local values, index = x:cast("f32"):top_k(2)
  return x:sort(), values, index
end, dc.tensor({ 3, -1, 9, 3, 0, 7 }, "i32[6]"))

-- ---- contractions and matrices -------------------------------------------------------------------

add("dot", "f(x: f32[3, 4], y: f32[4, 5]) -> f32[3, 5], f32[5, 3], f32[4, 4]", function(x, y)
  return x:matmul(y), dc.einsum("i k, k j -> j i", x, y), dc.einsum("i k, i l -> k l", x, x)
end, matrix(3, 4), matrix(4, 5, 1))
add("batched dot", "f(x: f32[2, 3, 4], y: f32[2, 4, 5], z: f16[3, 4]) -> f32[2, 3, 5], f16[3, 3]", function(x, y, z)
  return x:matmul(y), z:matmul(z:permute(2, 1))
end, matrix(6, 4):reshape(2, 3, 4), matrix(8, 5, 1):reshape(2, 4, 5), matrix(3, 4, 2, "f16")).near = 1e-3
add("conv", "f(x: f32[2, 4, 9, 8], w: f32[6, 2, 3, 2]) -> f32[2, 6, 5, 4], f32[2, 4, 9, 8], f32[6, 2, 3, 2]",
  function(x, w)
    local y = dc.conv2d(x, w, { stride = 2, padding = 1, dilation = { 1, 2 }, groups = 2 })
    local loss = (y * y):sum()
    return y, dc.grad(loss, x), dc.grad(loss, w)
  end, matrix(2 * 4 * 9, 8):reshape(2, 4, 9, 8), matrix(6 * 2 * 3, 2, 1):reshape(6, 2, 3, 2))
add("transposed conv", "f(x: f32[1, 3, 5], w: f32[3, 2, 4]) -> f32[1, 2, 12]", function(x, w)
  return dc.conv_transpose1d(x, w, { stride = 2 })
end, matrix(3, 5):reshape(1, 3, 5), matrix(6, 4, 1):reshape(3, 2, 4))
add("pooling", "f(x: f32[1, 2, 6, 6]) -> f32[1, 2, 3, 3], f32[1, 2, 3, 3], f32[1, 2, 6, 6]", function(x)
  local y = dc.max_pool2d(x, 2)
  return y, dc.avg_pool2d(x, 2), dc.grad((y * y):sum(), x)
end, matrix(12, 6):reshape(1, 2, 6, 6))
local square = dc.tensor { { 4, 1, 0.5 }, { 1, 3, 0.2 }, { 0.5, 0.2, 2 } }
add("cholesky", "f(a: f32[3, 3], b: f32[3, 2]) -> f32[3, 3], f32[3, 2], f32[3, 2], f32[3, 2]", function(a, b)
  local l = linalg.cholesky(a)
  return l, linalg.triangular_solve(l, b), linalg.triangular_solve(l, b, { transposed = true }),
    linalg.triangular_solve(a, b, { upper = true, unit = true })
end, square, matrix(3, 2))
add("gradient of cholesky", "f(a: f32[3, 3]) -> f32[3, 3]", function(a)
  return dc.grad((linalg.cholesky(a) * 2):sum(), a)
end, square)
add("fft", "f(x: f32[3, 10]) -> f32[3, 10], f32[3, 10], c64[3, 6]", function(x)
  local z = fft.fft(x)
  return z:real(), fft.ifft(z * z):real(), fft.rfft(x)
end, matrix(3, 10))
add("complex", "f(z: c64[n]) -> c64[n], f32[n]", function(z)
  return (z * z):exp(), z:abs()
end, dc.complex(steps(-1, 1, 7), steps(2, -1, 7)))
add("fft along another axis", "f(x: f64[4, 3]) -> f64[4, 3]", function(x)
  return fft.fft(x, { axis = 1 }):imag()
end, matrix(4, 3, 0, "f64"))

-- ---- loops and branches --------------------------------------------------------------------------

add("scan", "f(x: f32[5, 3], w: f32[3, 3]) -> f32[3], f32[5, 3], f32[3, 3]", function(x, w)
  local h, ys = dc.scan(function(h, e)
    local new = (h:reshape(1, 3):matmul(w):reshape(3) + e):tanh()
    return new, new * 2
  end, dc.zeros "f32[3]", x)
  return h, ys, dc.grad(h:sum(), w)
end, matrix(5, 3), matrix(3, 3, 1))
add("scan from the end", "f(x: f32[5, 3]) -> f32[3], f32[5, 3]", function(x)
  return dc.scan(function(c, e, i) return c * 0.5 + e * i:cast "f32", c end, dc.zeros "f32[3]", x, { reverse = true })
end, matrix(5, 3))
exact("while", "f(x: f32[]) -> f32[], f32[]", function(x)
  local c = dc.loop(function(c) return c.x:lt(100) end, function(c) return { x = c.x * 2, n = c.n + 1 } end,
    { x = x, n = 0 })
  return c.x, c.n
end, dc.tensor(3))
exact("loop that ends early", "f(x: f32[]) -> f32[]", function(x)
  return dc.loop(function(c) return c:lt(1000) end, function(c) return c * 2 end, x, { max = 4 })
end, dc.tensor(3))
exact("count that is data", "f(x: f32[], n: i32[]) -> f32[]", function(x, n)
  return dc.fori(n, function(i, c) return c + i:cast "f32" end, x, { max = 9 })
end, dc.tensor(1), dc.tensor(4, "i32[]"))
exact("branch", "f(x: f32[4], p: bool[]) -> f32[4], f32[]", function(x, p)
  local y = x * 3
  return dc.cond(p, function() return x + y, x:sum() end, function() return x - y, x:max() end)
end, steps(1, 4, 4), dc.tensor(false, "bool[]"))
exact("loop in a branch in a loop", "f(x: f32[3]) -> f32[3]", function(x)
  return (dc.scan(function(c, i)
    return dc.cond((i:rem(2)):eq(0), function()
      return (dc.fori(3, function(k, d) return d + k:cast "f32" * 2 end, c))
    end, function() return c * 2 end)
  end, x, dc.iota "i32[5]"))
end, steps(1, 3, 3))

-- ---- gradients, random numbers, cells -------------------------------------------------------------

add("gradients by hand", "f(x: f32[n]) -> f32[n], f32[n]", function(x)
  local f = dc.custom_grad(function(v) return v:exp() end, function(dy, v) return dy * v end)
  local y = f(x) + dc.remat(function(v) return v:sin() end)(x) + (x * 2):stop_gradient()
  return y, dc.grad(y:sum(), x)
end, steps(-1, 1, 5))
exact("random numbers", "f() -> f32[20], i32[9]", function()
  return dc.rand "f32[20]", dc.randint("i32[9]", { high = 100 })
end)
do
  local net = nn.Sequential { nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 3) }
  local opt = optim.Adam(net:parameters(), { lr = 0.01 })
  add("training step", "step(x: f32[6, 4], y: i32[6]) -> f32[]", function(x, y)
    local loss = nn.cross_entropy(net(x), y)
    opt:step(loss)
    return loss
  end, matrix(6, 4), dc.tensor({ 0, 1, 2, 0, 1, 2 }, "i32[6]"))
end
do
  local table_ = matrix(10, 3)
  add("captured tensors", "f(i: i32[4]) -> f32[4, 3]", function(i) return table_:take(i, 1) end,
    dc.tensor({ 1, 9, 0, 3 }, "i32[4]"))
end
do
  local layer = nn.quantize(nn.Sequential { nn.Linear(64, 8) }, "q8_0")
  add("quantised", "f(x: f32[2, 64]) -> f32[2, 8]", function(x) return layer(x) end, matrix(2, 64)).near = 1e-4
end

return cases
