-- Parts of tensors: every form of index, :slice and :put, against the same in plain Lua.
local lu = require "luaunit"
local dc = require "deepc"

-- The first line of what f raises, without place, the code behind it, and the hint.
local function raised(f, ...)
  local ok, err = pcall(f, ...)
  lu.assertFalse(ok)
  return (err.message:match "^[^\n]*":gsub("^[%w_./-]+:%d+: ", "")), err.code, err.hint
end

local function raises(want, code, f, ...)
  local text, got = raised(f, ...)
  lu.assertEquals(text, want)
  lu.assertEquals(got, code)
end

local function read(x, index) return function() return x[index] end end

TestIndexForms = {}

function TestIndexForms:setUp()
  self.v = dc.tensor { 10, 20, 30, 40, 50 }
  self.a = dc.tensor { { 1, 2, 3 }, { 4, 5, 6 } }
end

function TestIndexForms:test_number_drops_the_axis()
  lu.assertEquals(self.v[1]:item(), 10)
  lu.assertEquals(self.v[-1]:item(), 50)
  lu.assertEquals(self.a[2]:totable(), { 4, 5, 6 })
  lu.assertEquals(self.a[2.0]:totable(), { 4, 5, 6 })
  lu.assertEquals(self.a[{ 2, -1 }]:item(), 6)
  lu.assertEquals(self.a[{ {}, 2 }]:totable(), { 2, 5 })
end

function TestIndexForms:test_one_in_braces_keeps_it()
  lu.assertEquals(self.a[{ { 2 } }]:totable(), { { 4, 5, 6 } })
  lu.assertEquals(self.a[{ { -2 }, { 3 } }]:totable(), { { 3 } })
end

function TestIndexForms:test_empty_braces_are_all()
  lu.assertEquals(self.a[{}]:totable(), self.a:totable())
  lu.assertEquals(self.a[{ {}, {} }]:totable(), self.a:totable())
end

-- All ranges of an axis of five, forwards and backwards, by several steps.
function TestIndexForms:test_ranges_are_those_of_a_loop()
  for a = 1, 5 do
    for b = 1, 5 do
      for _, step in ipairs { 1, 2, 3, 7, -1, -2, -3, -9, math.maxinteger, math.mininteger } do
        local want = {}
        for k = a, b, step do
          want[#want + 1] = self.v[k]:item()
        end
        if #want > 0 then
          local got = self.v[{ { a, b, step } }]:totable()
          lu.assertEquals(got, want, ("%d %d %d"):format(a, b, step))
          lu.assertEquals(self.v[{ { a - 6, b - 6, step } }]:totable(), want)
        end
      end
    end
  end
end

function TestIndexForms:test_a_range_that_ends_before_it_starts_is_empty()
  for k = 0, 5 do
    lu.assertEquals(self.v[{ { k + 1, k } }].shape, { 0 })
  end
  lu.assertEquals(self.v[{ { -1, -2 } }].shape, { 0 })
end

function TestIndexForms:test_by_name_or_number()
  local z = dc.iota("i32[6]"):reshape "[batch=2, t=3]"
  lu.assertEquals(z:slice({ t = { 2, 3 } }):totable(), { { 1, 2 }, { 4, 5 } })
  lu.assertEquals(z:slice({ batch = 2, t = { 3, 1, -2 } }):totable(), { 5, 3 })
  lu.assertEquals(z:slice({ [2] = { 1 } }):totable(), { { 0 }, { 3 } })
  lu.assertEquals(z:slice({ [-1] = 1 }):totable(), { 0, 3 })
  lu.assertEquals(z[{ t = 1 }]:totable(), { 0, 3 })
end

function TestIndexForms:test_names_of_cut_axes_are_lost()
  local z = dc.zeros "f32[batch=4, t=3, c=2]"
  local text = function(x) return tostring(x):match "[^\n]*$" end
  lu.assertEquals(text(z[{ {}, 1 }]), "f32[batch=4, c=2]")
  lu.assertEquals(text(z[{ {}, { 1, 2 } }]), "f32[batch=4, 2, c=2]")
  lu.assertEquals(text(z[{ { -1, 1, -1 }, { 1, 3 } }]), "f32[batch=4, t=3, c=2]")
  lu.assertEquals(text(z[{ { 2, 2 } }]), "f32[1, t=3, c=2]")
  local row = dc.zeros "f32[n=1, 1]"
  lu.assertEquals(text(row[{ 1, {} }]), "f32[1]")
  lu.assertEquals(text(row[{ {}, 1 }]), "f32[n=1]")
end

function TestIndexForms:test_outside()
  local long = dc.zeros "f32[10, 3]"
  raises("index 0 outside 1..10 of axis 1 of f32[10, 3]", "DC0106", read(long, 0))
  lu.assertEquals(select(3, raised(read(long, 0))),
    "positions start at 1, values of argmax and labels at 0")
  raises("index 11 outside 1..10 of axis 1 of f32[10, 3]", "DC0106", read(long, 11))
  raises("index -11 outside 1..10 of axis 1 of f32[10, 3]", "DC0106", read(long, -11))
  raises("index 4 outside 1..3 of axis 2 of f32[10, 3]", "DC0106", read(long, { {}, 4 }))
  raises("index 0 outside 1..10 of axis 1 of f32[10, 3]", "DC0106", read(long, { { 0, 2 } }))
  raises("index 12 outside 1..10 of axis 1 of f32[10, 3]", "DC0106", read(long, { { 1, 12 } }))
  raises("index -14 outside 1..3 of axis 2 of f32[10, 3]", "DC0106", read(long, { 1, { 1, -14 } }))
  raises("index -4 outside 1..3 of axis 2 of f32[10, 3]", "DC0106", read(long, { 1, { 1, -4 } }))
  raises("slice: index 11 outside 1..10 of axis 1 of f32[batch=10]", "DC0106", function()
    return dc.zeros("f32[batch=10]"):slice { batch = { 3, 11 } }
  end)
  raises("index 1 outside 1..0 of axis 1 of f32[0]", "DC0106", read(dc.zeros "f32[0]", 1))
  raises("index -9223372036854775808 outside 1..5 of axis 1 of f32[5]", "DC0106",
    read(self.v, math.mininteger))
end

function TestIndexForms:test_too_many()
  raises("2 indices for f32[5]", "DC0106", read(self.v, { 2, 3 }))
  lu.assertEquals(select(3, raised(read(self.v, { 2, 3 }))), "a range is v[{ {2, 3} }]")
  raises("an index for a scalar, which has no axes", "DC0106", read(dc.zeros "f32[]", 1))
  lu.assertEquals(select(3, raised(read(dc.zeros "f32[]", 1))), ":item() gives the number")
end

function TestIndexForms:test_what_is_no_index()
  raises("an index must be an integer, not the number 1.5", "DC0106", read(self.v, 1.5))
  raises("an index must be an integer, not true", "DC0106", read(self.v, true))
  raises("an index must be an integer, not nil", "DC0106", function() return self.v[nil] end)
  raises("an index must be an integer, not a function", "DC0106", read(self.v, print))
  raises("an index must be an integer, not the string '1'", "DC0106", read(self.a, { "1" }))
  raises("an index must be an integer, not true", "DC0106", read(self.a, { {}, true }))
  raises("an index must be an integer, not a table", "DC0106", read(self.v, { { { 1 } } }))
  raises("the index of axis 1 is nil; {} is the whole axis", "DC0106", read(self.a, { nil, 2 }))
  raises("a range is {}, {k}, {first, last} or {first, last, step}", "DC0106",
    read(self.v, { { 1, 2, 1, 1 } }))
  raises("a range is {}, {k}, {first, last} or {first, last, step}", "DC0106",
    read(self.v, { { first = 1 } }))
  raises("a range in steps of 0 has no end", "DC0106", read(self.v, { { 1, 2, 0 } }))
  raises("the range 4 to 2 is empty in steps of 1", "DC0106", read(self.v, { { 4, 2 } }))
  lu.assertEquals(select(3, raised(read(self.v, { { 4, 2 } }))), "{4, 2, -1} goes backwards")
  raises("the range 2 to 4 is empty in steps of -1", "DC0106", read(self.v, { { 2, 4, -1 } }))
end

function TestIndexForms:test_tensors_are_no_positions()
  local text, code, hint = raised(read(self.v, dc.tensor({ 1, 2 }, "i32")))
  lu.assertEquals(text, "an index must be an integer, not i32[2]")
  lu.assertEquals(code, "DC0106")
  lu.assertStrContains(hint, ":take(idx, axis)")
  lu.assertEquals(select(3, raised(read(self.v, self.v:lt(3)))),
    "x:compact(mask, { bound = n }) has what it selects; dc.where(mask, x, 0) keeps the shape")
end

function TestIndexForms:test_axes_by_wrong_keys()
  local z = dc.zeros "f32[batch=2, t=3]"
  raises("slice: no axis of f32[batch=2, t=3] is called 'time'", "DC0101", z.slice, z, { time = 1 })
  local axes = "slice: axis %d of f32[batch=2, t=3]: axes are 1 to 2, -1 is the last, or a name"
  raises(axes:format(3), "DC0103", z.slice, z, { [3] = 1 })
  raises(axes:format(0), "DC0103", z.slice, z, { [0] = 1, time = 2 })
  raises("slice: axis 1 is given twice for f32[batch=2, t=3]", "DC0104", z.slice, z, { 1, batch = 2 })
  raises("slice: axes 1 and 2 of f32[n=2, n=2] are both 'n'", "DC0101", function()
    return dc.zeros("f32[n=2, n=2]"):slice { n = 1 }
  end)
  raises("slice: an axis is a number or a name, not true", "DC0101", z.slice, z, { [true] = 1 })
  raises("slice: a table of ranges such as { batch = { 1, 16 } } is needed, not the number 3", "DC0101", z.slice, z, 3)
end

function TestIndexForms:test_gradient_goes_where_the_part_was()
  local g = dc.fn("g(x: f32[2, 4]) -> f32[2, 4]", function(x)
    local part = x[{ 2, { 4, 2, -2 } }]
    local loss = (part * dc.tensor { 10, 1 }):sum()
    return dc.grad(loss, x)
  end)
  lu.assertEquals(g(dc.ones "f32[2, 4]"):totable(), { { 0, 0, 0, 0 }, { 0, 1, 0, 10 } })
end

TestPut = {}

function TestPut:setUp()
  self.a = dc.tensor { { 1, 2, 3 }, { 4, 5, 6 } }
end

function TestPut:test_numbers()
  lu.assertEquals(self.a:put(1, 0):totable(), { { 0, 0, 0 }, { 4, 5, 6 } })
  lu.assertEquals(self.a:put({ 2, -1 }, 9):totable(), { { 1, 2, 3 }, { 4, 5, 9 } })
  lu.assertEquals(self.a:put({ {}, { 1, 3, 2 } }, -1):totable(), { { -1, 2, -1 }, { -1, 5, -1 } })
  lu.assertEquals(self.a:put({}, 7):totable(), { { 7, 7, 7 }, { 7, 7, 7 } })
  lu.assertEquals(self.a:totable(), { { 1, 2, 3 }, { 4, 5, 6 } })
end

function TestPut:test_tensors_broadcast()
  lu.assertEquals(self.a:put({ 2 }, dc.tensor { 7, 8, 9 }):totable(), { { 1, 2, 3 }, { 7, 8, 9 } })
  lu.assertEquals(self.a:put({ {}, { 2, 3 } }, dc.tensor { { 0 }, { 1 } }):totable(),
    { { 1, 0, 0 }, { 4, 1, 1 } })
  lu.assertEquals(self.a:put({ 1, { 3, 1, -1 } }, dc.tensor { 7, 8, 9 }):totable(),
    { { 9, 8, 7 }, { 4, 5, 6 } })
  lu.assertEquals(self.a:put({}, dc.tensor { 7, 8, 9 }):totable(), { { 7, 8, 9 }, { 7, 8, 9 } })
  lu.assertEquals(self.a:put({ { 1, 0 } }, 3):totable(), self.a:totable())
end

function TestPut:test_what_was_read_can_be_put_back()
  for _, index in ipairs { 1, { 2 }, { { 2 } }, { {}, 3 }, { 1, { 3, 1, -2 } }, { { -1, 1, -1 } }, {} } do
    lu.assertEquals(self.a:put(index, self.a[index]):totable(), self.a:totable())
    lu.assertEquals(dc.zeros("f32[2, 3]"):put(index, self.a[index])[index]:totable(), self.a[index]:totable())
  end
end

function TestPut:test_nothing_of_what_is_replaced_remains()
  local x = dc.tensor { 0 / 0, 1 / 0, 1 }
  lu.assertEquals(x:put({ { 1, 2 } }, 0):totable(), { 0, 0, 1 })
  lu.assertEquals(dc.tensor({ true, false }, "bool"):put(2, true):totable(), { true, true })
  lu.assertEquals(dc.tensor({ 1, 2 }, "u8"):put(-1, 255):totable(), { 1, 255 })
end

function TestPut:test_the_type_stays()
  local z = dc.zeros "f32[batch=2, t=3]"
  lu.assertEquals(tostring(z:put({ { 1 }, 1 }, 1)):match "[^\n]*$", "f32[batch=2, t=3]")
  lu.assertEquals(tostring(z:put({}, 1)):match "[^\n]*$", "f32[batch=2, t=3]")
end

function TestPut:test_gradients()
  local g = dc.fn("g(x: f32[3], v: f32[2]) -> f32[3], f32[2]", function(x, v)
    local y = x:put({ { 2, 3 } }, v)
    local loss = (y * dc.tensor { 1, 2, 3 }):sum()
    local d = dc.grad(loss, { x, v })
    return d[1], d[2]
  end)
  local gx, gv = g({ 5, 6, 7 }, { 8, 9 })
  lu.assertEquals(gx:totable(), { 1, 0, 0 })
  lu.assertEquals(gv:totable(), { 2, 3 })
end

function TestPut:test_mistakes()
  local a = self.a
  raises("put: index 3 outside 1..2 of axis 1 of f32[2, 3]", "DC0106", a.put, a, 3, 0)
  raises("put: a value is needed, as in b = a:put({1}, 5)", "DC0101", a.put, a, 1)
  raises("put: axis 1: 2 against 3", "DC0301", a.put, a, 1, dc.ones "f32[2]")
  raises("put: dtypes differ: f32[2, 3] and i32[3]", "DC0201", a.put, a, 1, dc.ones "i32[3]")
  raises("put: 1.5 does not fit i32", "DC0203", function() return dc.zeros("i32[2]"):put(1, 1.5) end)
  raises("put: a tensor or a number is needed, not the string 'x'", "DC0101", a.put, a, 1, "x")
end
