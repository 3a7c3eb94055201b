-- Shapes that are none of the usual ones, on simulated devices for groups of threads, which check every access: each
-- function as kernels, beside what the interpreter makes of the same operations.
local lu = require "luaunit"
local program = require "tests.lua.program"

TestOddShapes = {}

local head = [[
local dc = require "deepc"
local function filled(dtype, ...)
  local n = 1
  for _, d in ipairs { ... } do n = n * d end
  return ((dc.iota("i32[" .. n .. "]") * 7919 % 1009):cast "f32" / 256 - 2):cast(dtype):reshape(...)
end
local function same(what, tolerance, got, want)
  local a, b = got:cast "f64":reshape(-1):totable(), want:cast "f64":reshape(-1):totable()
  assert(#a == #b, what)
  for i = 1, #b do
    if not (math.abs(a[i] - b[i]) <= tolerance * (1 + math.abs(b[i]))) then
      error(("%s: element %d is %s, not %s"):format(what, i, a[i], b[i]))
    end
  end
end
-- The function of that type on these tensors: compiled, and by the interpreter (DEEPC_LAZY=eval).
local function compare(signature, tolerance, body, ...)
  local got, want = { dc.fn("f" .. signature, body)(...) }, { body(...) }
  for i = 1, #want do same(signature .. ", result " .. i, tolerance, got[i], want[i]) end
end
]]

local function check(body)
  local path = program.script(head .. body .. '\nprint(dc.stats().fallbacks)')
  for _, device in ipairs { "sim:cuda", "sim:opencl" } do
    local text, status = program.run(path, "DEEPC_CACHE=off DEEPC_LAZY=eval DEEPC_DEVICE=" .. device)
    lu.assertEquals({ text, status }, { "0\n", 0 }, device)
  end
  os.remove(path)
end

-- Rows whose columns lie across memory: one thread to a row, several, as many columns to each or not.
function TestOddShapes.test_rows_across()
  check [[
for _, size in ipairs { { 21, 300 }, { 10, 33 }, { 2, 40 }, { 33, 70 }, { 37, 600 }, { 64, 31 }, { 127, 45 },
  { 300, 32 }, { 1009, 33 }, { 1100, 20 } } do
  local c, r = table.unpack(size)
  local x = filled("f32", c, r)
  compare(("(x: f32[%d, %d]) -> f32[%d]"):format(c, r, r), 1e-5,
    function(x) return x:transpose(1, 2):logsumexp(2) end, x)
  compare(("(x: f32[%d, %d]) -> f32[%d, %d]"):format(c, r, r, c), 1e-5,
    function(x) return x:transpose(1, 2):softmax(2) end, x)
  compare(("(x: f32[%d, %d], y: f32[%d, %d]) -> f32[%d]"):format(c, r, r, c, r), 1e-4, function(x, y)
    return (x:transpose(1, 2):softmax(2) * y):sum(2)
  end, x, filled("f32", r, c))
end
for _, dtype in ipairs { "f16", "f64" } do
  compare(("(x: %s[48, 100]) -> %s[100, 48]"):format(dtype, dtype), 2e-3,
    function(x) return x:transpose(1, 2):softmax(2) end, filled(dtype, 48, 100))
end]]
end

-- Images whose channels are last, as rows of all their elements: an axis of the result is several of the operand.
function TestOddShapes.test_flattened()
  check [[
for _, size in ipairs { { 3, 64, 8, 8 }, { 2, 33, 7, 9 }, { 5, 16, 1, 12 }, { 2, 12, 24, 16 } } do
  local n, c, h, w = table.unpack(size)
  compare(("(x: f32[%d, %d, %d, %d]) -> f32[%d, %d]"):format(n, h, w, c, n, c * h * w), 0,
    function(x) return x:transpose(3, 4):transpose(2, 3):reshape(n, c * h * w) * 2 end, filled("f32", n, h, w, c))
  compare(("(x: f32[%d, %d]) -> f32[%d, %d, %d, %d]"):format(n, c * h * w, n, h, w, c), 0,
    function(x) return x:reshape(n, c, h, w):transpose(2, 3):transpose(3, 4) + 1 end, filled("f32", n, c * h * w))
end]]
end

-- Many products of tiny matrices, in all layouts, with rests behind the last group; an epilogue, another type.
function TestOddShapes.test_tiny_products()
  check [[
for _, size in ipairs { { 4099, 8, 8, 8 }, { 1000, 3, 3, 3 }, { 70, 4, 4, 4 }, { 133, 16, 16, 16 }, { 500, 3, 1, 3 },
  { 301, 5, 12, 7 }, { 9, 2, 2, 2 } } do
  local b, m, n, k = table.unpack(size)
  local x, y = filled("f32", b, m, k), filled("f32", b, k, n)
  compare(("(x: f32[%d, %d, %d], y: f32[%d, %d, %d]) -> f32[%d, %d, %d]"):format(b, m, k, b, k, n, b, m, n), 1e-5,
    function(x, y) return x:matmul(y) end, x, y)
  compare(("(x: f32[%d, %d, %d], y: f32[%d, %d, %d]) -> f32[%d, %d, %d]"):format(b, k, m, b, n, k, b, m, n), 1e-5,
    function(x, y) return x:transpose(2, 3):matmul(y:transpose(2, 3)):relu() + 1 end, filled("f32", b, k, m),
    filled("f32", b, n, k))
end
for _, dtype in ipairs { "f16", "f64", "i32" } do
  local d = dtype
  compare(("(x: %s[515, 8, 8], y: %s[515, 8, 8]) -> %s[515, 8, 8]"):format(d, d, d == "i32" and "i64" or d), 2e-3,
    function(x, y) return x:matmul(y) end, filled(d, 515, 8, 8), filled(d, 515, 8, 8))
end
for _, size in ipairs { { 10007, 3, 3 }, { 1000, 16, 16 }, { 333, 12, 5 } } do
  local m, n, k = table.unpack(size)
  compare(("(x: f32[%d, %d], y: f32[%d, %d], z: f32[%d]) -> f32[%d, %d]"):format(m, k, k, n, n, m, n), 1e-5,
    function(x, y, z) return x:matmul(y) + z end, filled("f32", m, k), filled("f32", k, n), filled("f32", n))
end]]
end

-- Losses of classes in the middle of images.
function TestOddShapes.test_segmentation()
  check [[
local nn = require "deepc.nn"
local function body(x, y)
  local l = nn.cross_entropy(x:transpose(2, 3):transpose(3, 4):reshape(-1, 5), y:reshape(-1))
  return l, dc.grad(l, x)
end
compare("(x: f32[2, 5, 9, 8], y: i32[2, 9, 8]) -> f32[], f32[2, 5, 9, 8]", 1e-5, body, filled("f32", 2, 5, 9, 8),
  (dc.iota "i32[144]" * 3 % 5):reshape(2, 9, 8))]]
end
