-- Rows that integers choose, and their gradients: groups of threads have a range of rows each, and look through all
-- integers for theirs. Whole numbers, so that sums are exact in any order.
local lu = require "luaunit"
local dc = require "deepc"

TestScatter = {}

-- Sums of the rows of g that go to each row.
local function gradient(rows, columns, at)
  local want = {}
  for i = 1, rows * columns do
    want[i] = 0
  end
  for k, row in ipairs(at) do
    for n = 1, columns do
      local place = row * columns + n
      want[place] = want[place] + ((k - 1) * columns + n) % 13
    end
  end
  return want
end

local function positions(count, of)
  local at = {}
  for k = 1, count do
    at[k] = of(k)
  end
  return at
end

local function check(rows, columns, at, type, axis)
  local count = #at
  local x = axis == 2 and { columns, rows } or { rows, columns }
  local g = axis == 2 and { columns, count } or { count, columns }
  local signature = "f(w: %s[%d, %d], places: i32[%d], h: %s[%d, %d]) -> %s[%d, %d]"
  local f = dc.fn(signature:format(type, x[1], x[2], count, type, g[1], g[2], type, x[1], x[2]), function(w, places, h)
    return dc.grad((w:take(places, axis) * h):sum(), w)
  end)
  local values = {}
  for i = 1, count * columns do
    values[i] = i % 13
  end
  local seen = dc.tensor(values):reshape(count, columns):cast(type)
  local got = f(dc.zeros(("%s[%d, %d]"):format(type, x[1], x[2])), dc.tensor(at):cast "i32",
    axis == 2 and seen:transpose(1, 2) or seen)
  if axis == 2 then
    got = got:transpose(1, 2)
  end
  lu.assertEquals(got:cast "f64":reshape(-1):totable(), gradient(rows, columns, at),
    ("%s, %d of %d rows of %d, axis %d"):format(type, count, rows, columns, axis))
end

function TestScatter:test_rows()
  for _, size in ipairs { { 1000, 100, 300 }, { 5000, 3, 700 }, { 4099, 1, 1000 }, { 700, 64, 65 }, { 7, 320, 200 },
    { 2, 33, 3000 }, { 1, 5, 100 }, { 300, 1025, 20 }, { 5, 1, 4000 }, { 3, 12, 997 },
    { 50, 300, 60 }, { 9, 99, 77 } } do
    local rows, columns, count = table.unpack(size)
    check(rows, columns, positions(count, function(k)
      return k * 7919 % rows
    end), "f32", 1)
  end
end

function TestScatter:test_one_row_gets_all()
  for _, row in ipairs { 0, 77, 999 } do
    check(1000, 40, positions(500, function()
      return row
    end), "f32", 1)
  end
end

function TestScatter:test_types()
  for _, type in ipairs { "f16", "bf16", "f64" } do
    check(500, 24, positions(90, function(k)
      return k * k % 500
    end), type, 1)
  end
end

function TestScatter:test_columns()
  for _, size in ipairs { { 100, 7, 300 }, { 513, 40, 90 } } do
    local rows, columns, count = table.unpack(size)
    check(rows, columns, positions(count, function(k)
      return k * 31 % rows
    end), "f32", 2)
  end
end

-- Without columns: places in rows of lanes, parts of the updates with sums of their own.
function TestScatter:test_numbers()
  for _, size in ipairs { { 1024, 300 }, { 1025, 20000 }, { 5000, 40009 }, { 70000, 9000 } } do
    local places, count = table.unpack(size)
    for _, of in ipairs { function(k) return k * 7919 % places end, function() return places - 1 end } do
      local at = positions(count, of)
      check(places, 1, at, "f32", 1)
      check(places, 2, at, "f32", 2)
    end
  end
end

-- A sum over what an integer of each row chooses is a gather; an integer that is no column chooses nothing.
function TestScatter:test_sums_of_chosen()
  local f = dc.fn("f(x: f32[5, 700], y: i32[5]) -> f32[5], f32[]", function(x, y)
    local one = dc.where(dc.iota("i32[700]"):reshape(1, 700):eq(y:reshape(5, 1)), x * 2, 0)
    return one:sum(2), one:sum()
  end)
  local rows, all = f(dc.iota("f32[3500]"):reshape(5, 700), dc.tensor({ 0, -1, 699, 700, 3 }):cast "i32")
  lu.assertEquals(rows:totable(), { 0, 0, 2 * 2099, 0, 2 * 2803 })
  lu.assertEquals(all:item(), 2 * (2099 + 2803))
end

-- The type of the integers need not hold the number of columns, and what chooses may be no integer.
function TestScatter:test_sums_of_chosen_of_each_type()
  for _, row in ipairs { { "i8", 128 }, { "u8", 256 }, { "i16", 300 }, { "u32", 7 }, { "i64", 300 }, { "u64", 300 },
    { "f32", 300 }, { "f64", 130 }, { "f16", 33 } } do
    local t, n = table.unpack(row)
    local f = dc.fn(("f(x: f32[3, %d], y: %s[3]) -> f32[3], f32[]"):format(n, t), function(x, y)
      local one = dc.where(dc.iota(("%s[%d]"):format(t, n)):reshape(1, n):eq(y:reshape(3, 1)), x, 0)
      return one:sum(2), one:sum()
    end)
    local rows, all = f(dc.iota(("f32[%d]"):format(3 * n)):reshape(3, n), dc.tensor({ 2, n - 1, 0 }, t))
    lu.assertEquals(rows:totable(), { 2, 2 * n - 1, 2 * n }, t)
    lu.assertEquals(all:item(), 4 * n + 1, t)
  end
end

function TestScatter:test_sums_of_chosen_of_no_rows()
  local f = dc.fn("f(x: f32[0, 3, 5], y: i32[0, 1]) -> f32[0, 3], f32[]", function(x, y)
    local one = dc.where(dc.iota("i32[5]"):reshape(1, 1, 5):eq(y:reshape(0, 1, 1)), x, 0)
    return one:sum(3), one:sum()
  end)
  local _, all = f(dc.zeros "f32[0, 3, 5]", dc.zeros "i32[0, 1]")
  lu.assertEquals(all:item(), 0)
end

function TestScatter:test_same_bits_in_each_run()
  local f = dc.fn("f(x: f32[900, 48], at: i32[2000], g: f32[2000, 48]) -> f32[900, 48]", function(x, at, g)
    return dc.grad((x:take(at, 1) * g):sum(), x)
  end)
  local at = dc.iota "i32[2000]" * 17 % 11
  local g = (dc.iota("f32[2000, 48]") * 0.37):sin()
  local x = dc.zeros "f32[900, 48]"
  local first = f(x, at, g):totable()
  for _ = 1, 3 do
    lu.assertEquals(f(x, at, g):totable(), first)
  end
end

-- Widths that vectors divide, and those with columns behind the last whole vector.
function TestScatter:test_widths()
  for _, n in ipairs { 16, 17, 19, 31, 33, 50, 97, 100, 101 } do
    local f = dc.fn(("f(x: f32[40, %d], at: i32[60], g: f32[60, %d])"):format(n, n), function(x, at, g)
      return dc.grad((x:take(at, 1) * g):sum(), x)
    end)
    local g = dc.randint(("i32[60, %d]"):format(n), { low = -9, high = 9, seed = n }):cast "f32"
    local at = dc.randint("i32[60]", { low = 0, high = 40, seed = n })
    local want = {}
    for i = 1, 40 do
      want[i] = {}
      for k = 1, n do want[i][k] = 0 end
    end
    local rows, places = g:totable(), at:totable()
    for i = 1, 60 do
      local row = want[places[i] + 1]
      for k = 1, n do row[k] = row[k] + rows[i][k] end
    end
    lu.assertEquals(f(dc.zeros(("f32[40, %d]"):format(n)), at, g):totable(), want, n)
  end
end
