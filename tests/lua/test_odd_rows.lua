-- Copies of rows of any length: what stands at each place is told by a formula, for each move.
local dc = require "deepc"
local lu = require "luaunit"

TestOddRows = {}

-- What element (i, j) of the result is: that many elements into the input, or false for a border.
local moves = {
  flip = { function(x) return x:flip(2) end, function(i, j, _, c) return i * c + c - 1 - j end },
  flip_rows = { function(x) return x:flip(1) end, function(i, j, r, c) return (r - 1 - i) * c + j end },
  roll = { function(x) return x:roll(1, 2) end, function(i, j, _, c) return i * c + (j - 1) % c end },
  roll_rows = { function(x) return x:roll(2, 1) end, function(i, j, r, c) return (i - 2) % r * c + j end },
  pad = {
    function(x) return x:pad { [2] = { 1, 2 } } end,
    function(i, j, _, c) return j >= 1 and j <= c and i * c + j - 1 end,
    function(r, c) return r, c + 3 end,
  },
  concat = {
    function(x) return dc.concat({ x, x:flip(1) }, 2) end,
    function(i, j, r, c) return j < c and i * c + j or (r - 1 - i) * c + j - c end,
    function(r, c) return r, 2 * c end,
  },
  transpose = {
    function(x) return x:transpose() end,
    function(i, j, _, c) return j * c + i end,
    function(r, c) return c, r end,
  },
  step = {
    function(x) return x[{ {}, { 1, -1, 2 } }] end,
    function(i, j, _, c) return i * c + 2 * j end,
    function(r, c) return r, (c + 1) // 2 end,
  },
  slice = {
    function(x) return x[{ { 2, -1 }, { 2, -1 } }] end,
    function(i, j, _, c) return (i + 1) * c + j + 1 end,
    function(r, c) return r - 1, c - 1 end,
  },
  thrice = {
    function(x) return x:reshape(x.shape[1], -1, 1):expand(x.shape[1], x.shape[2], 3):reshape(x.shape[1], -1) end,
    function(i, j, _, c) return i * c + j // 3 end,
    function(r, c) return r, 3 * c end,
  },
}

local names = {}
for name in pairs(moves) do names[#names + 1] = name end
table.sort(names)

local function same(r, c)
  return r, c
end

local function expected(name, r, c)
  local move, list = moves[name], {}
  local rows, columns = (move[3] or same)(r, c)
  for i = 0, rows - 1 do
    for j = 0, columns - 1 do
      local at = move[2](i, j, r, c)
      list[#list + 1] = at and at % 101 or 0
    end
  end
  return list
end

local function check_some(t, r, c, first, last)
  local x = (dc.iota(r * c) % 101):cast(t):reshape(r, c):clone()
  local f = dc.fn(("f(a: %s[%d, %d])"):format(t, r, c), function(a)
    local found = {}
    for i = first, last do found[#found + 1] = moves[names[i]][1](a) end
    return table.unpack(found)
  end)
  local results = { f(x) }
  for i = first, last do
    lu.assertEquals(results[i - first + 1]:flatten():cast("f32"):totable(), expected(names[i], r, c),
      ("%s of %s[%d, %d]"):format(names[i], t, r, c))
  end
end

local function check(t, r, c)
  check_some(t, r, c, 1, 5)
  check_some(t, r, c, 6, #names)
end

function TestOddRows.test_short_rows()
  for c = 2, 20 do
    check("f32", 37, c)
  end
end

function TestOddRows.test_long_rows()
  for _, c in ipairs { 31, 32, 33, 47, 63, 65, 97, 127, 128, 129, 257 } do
    check("f32", 21, c)
  end
end

function TestOddRows.test_few_rows()
  for r = 2, 5 do
    for _, c in ipairs { 2, 3, 5, 16, 67 } do
      check("f32", r, c)
    end
  end
end

function TestOddRows.test_dtypes()
  for _, t in ipairs { "f16", "bf16", "f64", "i8", "i64" } do
    for _, c in ipairs { 2, 3, 5, 7, 17, 31, 67, 130 } do
      check(t, 19, c)
    end
  end
end

local orders = { { 1, 3, 2 }, { 2, 1, 3 }, { 2, 3, 1 }, { 3, 1, 2 }, { 3, 2, 1 } }

local function permuted(dims, order)
  local list, at, stride = {}, {}, { dims[2] * dims[3], dims[3], 1 }
  for i = 0, dims[order[1]] - 1 do
    for j = 0, dims[order[2]] - 1 do
      for k = 0, dims[order[3]] - 1 do
        at[order[1]], at[order[2]], at[order[3]] = i, j, k
        list[#list + 1] = (at[1] * stride[1] + at[2] * stride[2] + at[3]) % 101
      end
    end
  end
  return list
end

function TestOddRows.test_permutations()
  for _, t in ipairs { "f32", "f16", "i8", "i64", "bool" } do
    for _, dims in ipairs { { 5, 17, 33 }, { 3, 31, 20 }, { 19, 4, 37 }, { 7, 16, 7 }, { 2, 45, 29 } } do
      local size = table.concat(dims, ", ")
      local x = (dc.iota(dims[1] * dims[2] * dims[3]) % 101):cast(t):reshape(table.unpack(dims)):clone()
      local f = dc.fn(("f(a: %s[%s])"):format(t, size), function(a)
        local found = {}
        for i, order in ipairs(orders) do found[i] = a:permute(table.unpack(order)) end
        return table.unpack(found)
      end)
      local results = { f(x) }
      for i, order in ipairs(orders) do
        local wanted = permuted(dims, order)
        if t == "bool" then
          for n, v in ipairs(wanted) do wanted[n] = v > 0 and 1 or 0 end
        end
        lu.assertEquals(results[i]:flatten():cast("f32"):totable(), wanted,
          ("%s of %s[%s]"):format(table.concat(order), t, size))
      end
    end
  end
end

-- Rows that meet a row, a column, or both; in place, too, where an element must be read once.
function TestOddRows.test_broadcasts()
  for _, c in ipairs { 1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 17, 31, 63, 65, 100, 257 } do
    local r = 23
    local x, row = dc.iota(r * c):cast("f32"):reshape(r, c):clone(), dc.iota(c):cast("f32"):clone()
    local column = dc.iota(r):cast("f32"):clone()
    local cell = dc.state(("f32[%d, %d]"):format(r, c), x)
    local f = dc.fn(("f(a: f32[%d, %d], b: f32[%d], d: f32[%d])"):format(r, c, c, r), function(a, b, d)
      cell:set(cell * 2 + b)
      return a * b, a + d:reshape(-1, 1), d:reshape(-1, 1) * b
    end)
    local times, plus, outer = f(x, row, column)
    local t, p, o, s = {}, {}, {}, {}
    for i = 0, r - 1 do
      for j = 0, c - 1 do
        local v = i * c + j
        t[#t + 1], p[#p + 1], o[#o + 1], s[#s + 1] = v * j, v + i, i * j, 2 * v + j
      end
    end
    lu.assertEquals(times:flatten():totable(), t)
    lu.assertEquals(plus:flatten():totable(), p)
    lu.assertEquals(outer:flatten():totable(), o)
    lu.assertEquals(cell:flatten():totable(), s)
  end
end
