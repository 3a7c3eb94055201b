-- concat, stack, split, pad, flip and roll against plain tables.
local lu = require "luaunit"
local dc = require "deepc"
local check = require "tests.lua.check"

local raises = check.raises

local function type_of(x) return tostring(x):match "[^\n]*$" end

TestConcat = {}

function TestConcat:test_along_each_axis()
  local a, b = dc.tensor { { 1, 2 }, { 3, 4 } }, dc.tensor { { 5, 6 } }
  lu.assertEquals(dc.concat({ a, b }):totable(), { { 1, 2 }, { 3, 4 }, { 5, 6 } })
  lu.assertEquals(dc.concat({ a, b, a }, 1)[{ { 3, 5 } }]:totable(), { { 5, 6 }, { 1, 2 }, { 3, 4 } })
  lu.assertEquals(dc.concat({ a, a }, -1):totable(), { { 1, 2, 1, 2 }, { 3, 4, 3, 4 } })
  lu.assertEquals(dc.concat({ a }):totable(), a:totable())
end

function TestConcat:test_any_number_of_them()
  for _, n in ipairs { 1, 2, 3, 7, 40 } do
    local list, want = {}, {}
    for i = 1, n do
      list[i] = dc.full(("i32[%d]"):format(i % 3), i)
      for _ = 1, i % 3 do want[#want + 1] = i end
    end
    lu.assertEquals(dc.concat(list):totable(), want)
    lu.assertEquals(#list, n) -- the list is not touched
  end
end

function TestConcat:test_every_value_stays()
  local special = dc.concat({ dc.tensor { -0.0, 1 / 0 }, dc.tensor { 0 / 0, -1 / 0, 0 } }):totable()
  lu.assertEquals(1 / special[1], -1 / 0)
  lu.assertEquals({ special[2], special[4] }, { 1 / 0, -1 / 0 })
  lu.assertIsNaN(special[3])
  lu.assertEquals(1 / special[5], 1 / 0)
  lu.assertEquals(dc.concat({ dc.tensor({ true }, "bool"), dc.tensor({ false, true }, "bool") }):totable(),
    { true, false, true })
  lu.assertEquals(dc.concat({ dc.tensor({ -1 }, "i32"), dc.tensor({ 7 }, "i32") }):totable(), { -1, 7 })
end

function TestConcat:test_names()
  local z = dc.zeros
  lu.assertEquals(type_of(dc.concat { z "f32[a=1, b=2]", z "f32[a=3, b=2]" }), "f32[4, b=2]")
  lu.assertEquals(type_of(dc.concat({ z "f32[a=1, 2]", z "f32[1, b=2]" }, 2)), "f32[a=1, 4]")
  lu.assertEquals(type_of(dc.concat({ z "f32[a=1, c=2]", z "f32[1, c=2]" }, "c")), "f32[a=1, 4]")
  raises("concat: axis 1: 'a' against 'b'", "DC0305", dc.concat, { z "f32[a=1, 2]", z "f32[b=1, 2]" }, 2)
end

function TestConcat:test_gradients()
  local g = dc.fn("g(a: f32[2], b: f32[1]) -> f32[2], f32[1]", function(a, b)
    local d = dc.grad((dc.concat { a, b, a } * dc.tensor { 1, 2, 3, 4, 5 }):sum(), { a, b })
    return d[1], d[2]
  end)
  local ga, gb = g({ 1, 1 }, { 1 })
  lu.assertEquals(ga:totable(), { 5, 7 })
  lu.assertEquals(gb:totable(), { 3 })
end

function TestConcat:test_mistakes()
  local z = dc.zeros
  raises("concat: axis 2: 2 against 3", "DC0301", dc.concat, { z "f32[1, 2]", z "f32[1, 3]" })
  raises("concat: dtypes differ: f32[1] and i32[1]", "DC0201", dc.concat, { z "f32[1]", z "i32[1]" })
  raises("concat: f32[1] has 1 axes, tensor 3 has 2", "DC0302", dc.concat, { z "f32[1]", z "f32[1]", z "f32[1, 1]" })
  raises("concat: a list of at least one tensor is needed", "DC0101", dc.concat, {})
  raises("concat: a list of tensors is needed, as in dc.concat({ a, b }, 1), not f32[1]", "DC0101", dc.concat,
    z "f32[1]", z "f32[1]")
  raises("concat: element 2 of the list is the number 1, a tensor is needed", "DC0101", dc.concat, { z "f32[1]", 1 })
  raises("concat: axis 1 of a scalar, which has no axes", "DC0101", dc.concat, { z "f32[]" })
end

function TestConcat:test_stack()
  local a, b = dc.tensor { 1, 2 }, dc.tensor { 3, 4 }
  lu.assertEquals(dc.stack({ a, b }):totable(), { { 1, 2 }, { 3, 4 } })
  lu.assertEquals(dc.stack({ a, b }, 2):totable(), { { 1, 3 }, { 2, 4 } })
  lu.assertEquals(dc.stack({ a, b, a }, -1):totable(), { { 1, 3, 1 }, { 2, 4, 2 } })
  lu.assertEquals(dc.stack({ dc.tensor(1), dc.tensor(2) }):totable(), { 1, 2 })
  lu.assertEquals(type_of(dc.stack({ dc.zeros "f32[n=2]", dc.zeros "f32[2]" })), "f32[2, n=2]")
  raises("stack: axis 1: 2 against 3", "DC0301", dc.stack, { a, dc.zeros "f32[3]" })
  raises("stack: axis 3 of the result: axes are 1 to 2, -1 is the last", "DC0101", dc.stack, { a, b }, 3)
end

TestSplit = {}

function TestSplit:test_parts()
  local a = dc.iota "i32[6]"
  local p, q, r = a:split(3)
  lu.assertEquals({ p:totable(), q:totable(), r:totable() }, { { 0, 1 }, { 2, 3 }, { 4, 5 } })
  p, q, r = a:split { 1, 0, 5 }
  lu.assertEquals({ p:totable(), q:totable(), r:totable() }, { { 0 }, {}, { 1, 2, 3, 4, 5 } })
  lu.assertEquals(select("#", a:split(6)), 6)
  local left, right = dc.iota("i32[2, 4]"):split(2, 2)
  lu.assertEquals(left:totable(), { { 0, 1 }, { 0, 1 } })
  lu.assertEquals(right:totable(), { { 2, 3 }, { 2, 3 } })
  lu.assertEquals(dc.concat({ left, right }, 2):totable(), dc.iota("i32[2, 4]"):totable())
  lu.assertEquals(type_of(dc.zeros "f32[n=2, t=4]":split(2, "t")), "f32[n=2, 2]")
end

function TestSplit:test_mistakes()
  local a = dc.iota "i32[6]"
  raises("split: an axis of 6 has no 4 equal parts", "DC0101", a.split, a, 4)
  raises("split: 2 sizes of sum 5, the axis has 6", "DC0101", a.split, a, { 2, 3 })
  raises("split: a size is 0 or more", "DC0101", a.split, a, { 7, -1 })
  raises("split: the number of parts, or a list of sizes, must be an integer, not nil", "DC0101", a.split, a)
end

TestPad = {}

function TestPad:test_margins()
  local a = dc.tensor { { 1, 2 } }
  lu.assertEquals(a:pad({ { 1, 0 }, { 0, 2 } }):totable(), { { 0, 0, 0, 0 }, { 1, 2, 0, 0 } })
  lu.assertEquals(a:pad({ [2] = 1 }, 9):totable(), { { 9, 1, 2, 9 } })
  lu.assertEquals(a:pad({ [-1] = { 1, 0 } }, -1 / 0):totable(), { { -1 / 0, 1, 2 } })
  lu.assertEquals(type_of(dc.zeros "f32[n=2, t=3]":pad { t = { 0, 1 } }), "f32[n=2, 4]")
  lu.assertEquals(type_of(dc.zeros "f32[n=2, t=3]":pad { t = 0 }), "f32[n=2, t=3]")
  lu.assertEquals(dc.tensor({ true }, "bool"):pad({ 1 }, true):totable(), { true, true, true })
end

function TestPad:test_mistakes()
  local a = dc.zeros "i32[2]"
  raises("pad: a margin is 0 or more, not -1", "DC0101", a.pad, a, { { -1, 0 } })
  raises("pad: margins are {before, after}", "DC0101", a.pad, a, { { 1 } })
  raises("pad: a table of margins such as { [2] = {1, 1} } is needed, not the number 1", "DC0101", a.pad, a, 1)
  raises("pad: 0.5 does not fit i32", "DC0203", a.pad, a, { 1 }, 0.5)
  raises("pad: no axis of i32[2] is called 't'", "DC0101", a.pad, a, { t = 1 })
end

TestTurn = {}

-- Kernels of convolutions turned round: runs of short axes, which rules read together (schedule_map.c).
function TestTurn:test_permute_of_short_axes()
  for _, case in ipairs { { { 40, 30, 3, 3 }, { 3, 4, 2, 1 } }, { { 33, 70, 2, 3 }, { 4, 3, 2, 1 } },
    { { 16, 70, 5 }, { 3, 2, 1 } }, { { 70, 3, 3, 20 }, { 3, 2, 4, 1 } }, { { 48, 200, 1, 4 }, { 3, 4, 2, 1 } } } do
    local dims, perm = case[1], case[2]
    local type = ("i32[%s]"):format(table.concat(dims, ", "))
    local count, to, strides = 1, {}, {}
    for i = #dims, 1, -1 do
      strides[i], count = count, count * dims[i]
    end
    for i, from in ipairs(perm) do to[i] = dims[from] end
    local x = dc.iota(("i32[%d]"):format(count)):reshape(table.unpack(dims))
    local f = dc.fn(("f(a: %s) -> i32[%s]"):format(type, table.concat(to, ", ")), function(a)
      return a:permute(table.unpack(perm))
    end)
    for at, v in ipairs(f(x):reshape(count):totable()) do
      local rest, expected = at - 1, 0
      for i = #to, 1, -1 do
        expected, rest = expected + rest % to[i] * strides[perm[i]], rest // to[i]
      end
      if v ~= expected then lu.assertEquals(v, expected, type .. " at " .. at) end
    end
  end
end

-- Rows of vectors, with and without a rest, of each width.
function TestTurn:test_flip_of_many()
  for _, dtype in ipairs { "f32", "f16", "u8", "i64", "bool" } do
    for _, n in ipairs { 64, 67, 128 } do
      local x = (dc.iota(("i32[3, %d]"):format(n)) * 7 % 5):cast(dtype)
      local f = dc.fn(("f(a: %s[3, %d]) -> %s[3, %d]"):format(dtype, n, dtype, n), function(a) return a:flip(2) end)
      local found = f(x):totable()
      for r, row in ipairs(x:totable()) do
        for i, v in ipairs(row) do lu.assertEquals(found[r][n + 1 - i], v) end
      end
    end
  end
end

function TestTurn:test_flip()
  local a = dc.tensor { { 1, 2 }, { 3, 4 } }
  lu.assertEquals(a:flip(1):totable(), { { 3, 4 }, { 1, 2 } })
  lu.assertEquals(a:flip(-1):totable(), { { 2, 1 }, { 4, 3 } })
  lu.assertEquals(a:flip():totable(), { { 4, 3 }, { 2, 1 } })
  lu.assertEquals(a:flip({ 1, 2 }):totable(), { { 4, 3 }, { 2, 1 } })
  lu.assertEquals(type_of(dc.zeros "f32[n=2]":flip "n"), "f32[n=2]")
end

function TestTurn:test_roll()
  local a = dc.iota "i32[5]"
  for by = -11, 11 do
    local want = {}
    for i = 0, 4 do want[(i + by) % 5 + 1] = i end
    lu.assertEquals(a:roll(by):totable(), want)
  end
  lu.assertEquals(dc.tensor({ { 1, 2 }, { 3, 4 } }):roll(1, 2):totable(), { { 2, 1 }, { 4, 3 } })
  lu.assertEquals(type_of(dc.zeros "f32[n=2]":roll(1)), "f32[n=2]")
  lu.assertEquals(dc.zeros "f32[0]":roll(3).shape, { 0 })
  raises("roll: an axis is needed, a number or a name, not nil", "DC0101",
    function() return dc.zeros "f32[2, 2]":roll(1) end)
end
