-- Kernels for groups of threads (jit/schedule/schedule_simt*.c) on simulated devices, which check every access: maps,
-- rows, columns, transposed and gathered operands of sizes around those of warps, vectors and groups, of several
-- element types. Whole numbers, so that sums are exact in any order.
local lu = require "luaunit"
local program = require "tests.lua.program"

TestGroups = {}

local head = [[
local dc = require "deepc"
local function value(i) return i * 7 % 23 end
local function filled(n, type) return (dc.iota("i32[" .. n .. "]") * 7 % 23):cast(type) end
local function same(what, tensor, want)
  local got = tensor:cast "f64":reshape(-1):totable()
  assert(#got == #want, what)
  for i = 1, #want do
    if got[i] ~= want[i] then error(("%s: element %d is %s, not %s"):format(what, i, got[i], want[i])) end
  end
end
local function list(n, f)
  local t = {}
  for i = 1, n do t[i] = f(i - 1) end
  return t
end
]]

local function check(body)
  local path = program.script(head .. body .. '\nprint(dc.stats().fallbacks)')
  for _, device in ipairs { "sim:cuda", "sim:opencl" } do
    local text, status = program.run(path, "DEEPC_CACHE=off DEEPC_DEVICE=" .. device)
    lu.assertEquals({ text, status }, { "0\n", 0 }, device)
  end
  os.remove(path)
end

-- Vectors with and without a rest, with a row and a column beside them.
function TestGroups.test_maps()
  check [[
for _, type in ipairs { "f32", "f16", "u8", "i64", "bool" } do
  for _, n in ipairs { 1, 31, 33, 127, 1000, 4097 } do
    local f = dc.fn(("f(x: %s[%d]) -> %s[%d]"):format(type, n, type, n), function(x) return x:flip(1) end)
    local of = type == "bool" and function(i) return value(i) ~= 0 and 1 or 0 end or value
    same(type .. " " .. n, f(filled(n, type)), list(n, function(i) return of(n - 1 - i) end))
  end
end
for _, size in ipairs { { 1, 1 }, { 3, 31 }, { 33, 7 }, { 5, 1000 }, { 300, 64 } } do
  local m, n = table.unpack(size)
  local f = dc.fn(("f(x: f32[%d, %d], r: f32[%d], c: f32[%d, 1]) -> f32[%d, %d]"):format(m, n, n, m, m, n),
    function(x, r, c) return x * 100 + r * 10 + c end)
  same(m .. " by " .. n, f(filled(m * n, "f32"):reshape(m, n), filled(n, "f32"), filled(m, "f32"):reshape(m, 1)),
    list(m * n, function(i) return value(i) * 100 + value(i % n) * 10 + value(i // n) end))
end]]
end

function TestGroups.test_rows()
  check [[
for _, type in ipairs { "f32", "f16", "i32", "f64" } do
  for _, size in ipairs { { 1, 33 }, { 3, 31 }, { 64, 10 }, { 7, 127 }, { 2, 4096 }, { 1, 5000 }, { 130, 1000 },
    { 1, 33793 } } do
    local m, n = table.unpack(size)
    local what = ("%s %d by %d"):format(type, m, n)
    local f = dc.fn(("f(x: %s[%d, %d]) -> f64[%d], %s[%d], %s[%d, %d]"):format(type, m, n, m, type, m, type, m, n),
      function(x) return x:cast "f64":sum(2), x:max(2), x - x:max { axis = 2, keep = true } end)
    local sum, most, rest = f(filled(m * n, type):reshape(m, n))
    local sums, maxima = {}, {}
    for i = 0, m * n - 1 do
      local row = i // n + 1
      sums[row] = (sums[row] or 0) + value(i)
      maxima[row] = math.max(maxima[row] or 0, value(i))
    end
    same(what .. ", sums", sum, sums)
    same(what .. ", maxima", most, maxima)
    same(what .. ", rows", rest, list(m * n, function(i) return value(i) - maxima[i // n + 1] end))
  end
end]]
end

function TestGroups.test_columns()
  check [[
for _, size in ipairs { { 33, 1 }, { 4097, 3 }, { 127, 31 }, { 1000, 40 }, { 64, 257 }, { 2, 4096 } } do
  local m, n = table.unpack(size)
  local f = dc.fn(("f(x: i32[%d, %d]) -> i64[%d], i64[%d]"):format(m, n, n, n),
    function(x) return x:sum(1), (x * x):sum(1) end)
  local sum, squares = f(filled(m * n, "i32"):reshape(m, n))
  local a, b = {}, {}
  for i = 0, m * n - 1 do
    local c, v = i % n + 1, value(i)
    a[c], b[c] = (a[c] or 0) + v, (b[c] or 0) + v * v
  end
  same(m .. " by " .. n, sum, a)
  same(m .. " by " .. n, squares, b)
end]]
end

function TestGroups.test_movement()
  check [[
for _, type in ipairs { "f32", "u8", "f16", "f64" } do
  for _, size in ipairs { { 1, 33 }, { 12, 31 }, { 33, 127 }, { 64, 64 }, { 3, 1000 } } do
    local m, n = table.unpack(size)
    local f = dc.fn(("f(x: %s[2, %d, %d]) -> %s[2, %d, %d]"):format(type, m, n, type, n, m),
      function(x) return x:transpose(2, 3) end)
    same(("%s %d by %d"):format(type, m, n), f(filled(2 * m * n, type):reshape(2, m, n)),
      list(2 * m * n, function(i) return value(i // (m * n) * m * n + i % m * n + i // m % n) end))
  end
end
for _, size in ipairs { { 31, 7 }, { 128, 300 }, { 5, 1000 } } do
  local m, n = table.unpack(size)
  local f = dc.fn(("f(x: f32[%d, %d], y: f32[%d, 12]) -> f32[%d, %d]"):format(m, n, m, m, n + 12),
    function(x, y) return dc.concat({ x, y }, 2) end)
  same("concat " .. n, f(filled(m * n, "f32"):reshape(m, n), filled(12 * m, "f32"):reshape(m, 12)),
    list(m * (n + 12), function(i)
      local r, c = i // (n + 12), i % (n + 12)
      return c < n and value(r * n + c) or value(r * 12 + c - n)
    end))
end]]
end

-- Transposed operands that are read at several places, with a tile of shared memory for each where there is room.
function TestGroups.test_shifted()
  check [[
for _, type in ipairs { "f32", "f16", "f64" } do
  for _, size in ipairs { { 40, 50, 2 }, { 33, 64, 7 }, { 13, 45, 12 } } do
    local m, n, places = table.unpack(size)
    local len = n - places + 1
    local function both(x, y)
      local all = x:transpose(1, 2)[{ {1, len} }] * 0
      for i = 1, places do
        all = all + x:transpose(1, 2)[{ {i, i + len - 1} }] - y:transpose(1, 2)[{ {places - i + 1, n - i + 1} }] * i
      end
      return all
    end
    local of = ("%s[%d, %d]"):format(type, m, n)
    local f = dc.fn(("f(x: %s, y: %s) -> %s[%d, %d]"):format(of, of, type, len, m), both)
    local x = filled(m * n, type):reshape(m, n)
    same(("%s %d by %d, %d"):format(type, m, n, places), f(x, x), list(len * m, function(i)
      local row, column, all = i % m * n, i // m, 0
      for p = 1, places do
        all = all + value(row + column + p - 1) - value(row + column + places - p) * p
      end
      return all
    end))
  end
end]]
end

-- Weights of convolutions change places of a few taps and of channels.
function TestGroups.test_short_axes()
  check [[
for _, type in ipairs { "f32", "u8", "f16", "f64" } do
  for _, size in ipairs { { 64, 16, 9 }, { 33, 5, 4 }, { 70, 19, 7 }, { 13, 3, 3 }, { 40, 33, 2 }, { 2, 130, 11 } } do
    for _, order in ipairs { { 3, 2, 1 }, { 1, 3, 2 }, { 3, 1, 2 }, { 2, 3, 1 }, { 2, 1, 3 } } do
      for turned = 0, 1 do
        local from = turned == 0 and size or { size[3], size[2], size[1] }
        local to, step = {}, { from[2] * from[3], from[3], 1 }
        for i = 1, 3 do to[i] = from[order[i] ] end
        local is, was = ("[%d, %d, %d]"):format(table.unpack(to)), ("[%d, %d, %d]"):format(table.unpack(from))
        local f = dc.fn(("f(x: %s%s, y: %s%s) -> %s%s, f64%s"):format(type, was, type, was, type, is, is),
          function(x, y)
            local a, b = x:permute(table.unpack(order)), y:permute(table.unpack(order))
            return a, a:cast "f64" * 2 - b:cast "f64"
          end)
        local n = to[1] * to[2] * to[3]
        local want = list(n, function(i)
          local at = { i // (to[2] * to[3]), i // to[3] % to[2], i % to[3] }
          return value(at[1] * step[order[1] ] + at[2] * step[order[2] ] + at[3] * step[order[3] ])
        end)
        local x = filled(n, type):reshape(from[1], from[2], from[3])
        local what = ("%s %d %d %d by %d %d %d"):format(type, from[1], from[2], from[3], table.unpack(order))
        local one, two = f(x, x)
        same(what, one, want)
        same(what .. ", two", two, want)
      end
    end
  end
end]]
end

-- A gather of rows, and its gradient, a scatter: rows that are named twice get both.
function TestGroups.test_rows_by_number()
  check [[
for _, size in ipairs { { 10, 1, 3 }, { 50, 31, 127 }, { 7, 64, 1000 } } do
  local rows, n, count = table.unpack(size)
  local sizes = ("f(w: f32[%d, %d], at: i32[%d]) -> f32[%d, %d], f32[%d, %d]"):format(rows, n, count, count, n, rows, n)
  local f = dc.fn(sizes,
    function(w, at) return w:take(at, 1), dc.grad((w:take(at, 1) * 3):sum(), w) end)
  local picked, grad = f(filled(rows * n, "f32"):reshape(rows, n), dc.iota("i32[" .. count .. "]") * 5 % rows)
  same("gather", picked, list(count * n, function(i) return value(i // n * 5 % rows * n + i % n) end))
  local times = {}
  for i = 0, count - 1 do times[i * 5 % rows] = (times[i * 5 % rows] or 0) + 3 end
  same("scatter", grad, list(rows * n, function(i) return times[i // n] or 0 end))
end]]
end
