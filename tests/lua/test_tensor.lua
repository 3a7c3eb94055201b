-- Random numbers, indexing, shapes, memory. Making, printing, values, scopes: test_make.lua and so on.
local lu = require "luaunit"
local dc = require "deepc"
local check = require "tests.lua.check"

local fails = check.fails

TestRandom = {}

function TestRandom:test_same_seed_same_numbers()
  lu.assertEquals(dc.rand("f32[5]", { seed = 3 }):totable(), dc.rand("f32[5]", { seed = 3 }):totable())
  lu.assertNotEquals(dc.rand("f32[5]", { seed = 3 }):totable(), dc.rand("f32[5]", { seed = 4 }):totable())
end

function TestRandom:test_generator_starts_again()
  dc.seed(7)
  local a, b = dc.randn("f32[4]"):totable(), dc.randn("f32[4]"):totable()
  lu.assertNotEquals(a, b)
  dc.seed(7)
  lu.assertEquals(dc.randn("f32[4]"):totable(), a)
  lu.assertEquals(dc.randn("f32[4]"):totable(), b)
end

function TestRandom:test_moments()
  local n = 40000
  local u = dc.rand(("f32[%d]"):format(n), { seed = 1, low = -1, high = 3 })
  lu.assertAlmostEquals(u:mean():item(), 1, 0.03)
  lu.assertTrue(u:max():item() < 3)
  lu.assertTrue(u:min():item() >= -1)
  local g = dc.randn(("f32[%d]"):format(n), { seed = 1, mean = 2, std = 0.5 })
  local mean = g:mean()
  lu.assertAlmostEquals(mean:item(), 2, 0.01)
  lu.assertAlmostEquals(((g - mean) ^ 2):mean():item(), 0.25, 0.01)
end

function TestRandom:test_uniform_is_24_bits()
  for _, v in ipairs(dc.rand("f32[100]", { seed = 9 }):totable()) do
    lu.assertEquals(v * 2 ^ 24 % 1, 0)
  end
end

function TestRandom:test_unknown_option()
  fails("unknown option 'sed'; known are", dc.rand, "f32[2]", { sed = 1 })
end

TestIndex = {}

function TestIndex:setUp()
  self.a = dc.tensor { { 1, 2, 3 }, { 4, 5, 6 } }
end

function TestIndex:test_number_drops_the_axis()
  lu.assertEquals(self.a[2]:totable(), { 4, 5, 6 })
  lu.assertEquals(self.a[2][3]:item(), 6)
  lu.assertEquals(self.a[-1][-3]:item(), 4)
end

function TestIndex:test_ranges()
  lu.assertEquals(self.a[{ {}, { 2, 3 } }]:totable(), { { 2, 3 }, { 5, 6 } })
  lu.assertEquals(self.a[{ { 2 } }]:totable(), { { 4, 5, 6 } })
  lu.assertEquals(self.a[{ 2, { 1, 3, 2 } }]:totable(), { 4, 6 })
  lu.assertEquals(self.a[{ {}, { -2, -1 } }]:totable(), { { 2, 3 }, { 5, 6 } })
end

function TestIndex:test_by_name()
  local z = dc.iota("i32[batch=4]")
  lu.assertEquals(z:slice({ batch = { 2, 3 } }):totable(), { 1, 2 })
  lu.assertEquals(z:size "batch", 4)
end

function TestIndex:test_outside_raises()
  fails("index 0 outside 1..2 of axis 1 of f32[2, 3]", function() return self.a[0] end)
  fails("hint: positions start at 1", function() return self.a[0] end)
  fails("index 4 outside 1..3 of axis 2", function() return self.a[{ {}, 4 }] end)
  fails("2 indices for f32[5]", function() return dc.zeros "f32[5]"[{ 2, 3 }] end)
  fails("a range is v[{ {2, 3} }]", function() return dc.zeros "f32[5]"[{ 2, 3 }] end)
end

function TestIndex:test_immutable()
  fails("tensors are immutable", function() self.a[1] = 5 end)
  fails("[DC0206", function() self.a.x = 5 end)
end

TestShape = {}

function TestShape:test_reshape_forms()
  local a = dc.iota "i32[6]"
  lu.assertEquals(a:reshape(2, 3).shape, { 2, 3 })
  lu.assertEquals(a:reshape({ 3, -1 }).shape, { 3, 2 })
  lu.assertEquals(a:reshape("[2, t=3]"):size "t", 3)
  lu.assertEquals(a:reshape(2, 3):totable(), { { 0, 1, 2 }, { 3, 4, 5 } })
  fails("reshape: i32[6] has 6 elements, i32[4] has 4", function() return a:reshape(4) end)
end

function TestShape:test_flatten_transpose_permute()
  local a = dc.iota("i32[24]"):reshape(2, 3, 4)
  lu.assertEquals(a:flatten().shape, { 24 })
  lu.assertEquals(a:flatten(2).shape, { 2, 12 })
  lu.assertEquals(a:flatten(1, 2).shape, { 6, 4 })
  lu.assertEquals(a:transpose().shape, { 2, 4, 3 })
  lu.assertEquals(a:transpose(1, -1).shape, { 4, 3, 2 })
  lu.assertEquals(a:permute(3, 1, 2).shape, { 4, 2, 3 })
  lu.assertEquals(a:permute({ 3, 1, 2 })[2][1]:totable(), { 1, 5, 9 })
end

function TestShape:test_expand()
  lu.assertEquals(dc.tensor({ 1, 2 }):reshape(2, 1):expand(2, 3):totable(), { { 1, 1, 1 }, { 2, 2, 2 } })
end

function TestShape:test_len_and_size()
  local a = dc.zeros "f32[2, 3]"
  lu.assertEquals(#a, 2)
  lu.assertEquals(a:size(2), 3)
  lu.assertEquals(a:size(-1), 3)
  fails("size: axis 3 of f32[2, 3]: axes are 1 to 2, -1 is the last, or a name", a.size, a, 3)
end

TestLife = {}

function TestLife:test_failing_operations_leave_nothing()
  local a, b = dc.zeros "f32[64]", dc.zeros "f32[65]"
  collectgarbage()
  collectgarbage()
  local before = dc.stats().bytes_live
  local failed = 0
  for i = 1, 10000 do
    local ok
    if i % 10 == 0 then
      ok = pcall(function() return a + a end)
    elseif i % 10 == 5 then
      local co = coroutine.wrap(function() return pcall(function() return a + b end) end)
      ok = co()
    else
      ok = pcall(function() return a + b end)
    end
    failed = failed + (ok and 0 or 1)
  end
  collectgarbage()
  collectgarbage()
  lu.assertEquals(failed, 9000)
  lu.assertEquals(dc.stats().bytes_live, before)
end

function TestLife:test_collector_is_told_of_memory()
  collectgarbage()
  collectgarbage()
  local before = dc.stats().bytes_live
  for _ = 1, 300 do
    local _ = dc.zeros "f32[262144]"
  end
  lu.assertTrue(dc.stats().bytes_live - before < 200 * 2 ^ 20)
end

-- ---- shapes ----

TestShapeValue = {}

function TestShapeValue:test_equality()
  local x, y = dc.ones "f32[b=2, 3]", dc.zeros "i32[2, 3]"
  lu.assertTrue(x.shape == y.shape)
  lu.assertTrue(x.shape == { 2, 3 } and { 2, 3 } == x.shape)
  lu.assertFalse(x.shape == y:transpose().shape or x.shape == dc.ones "f32[2, 3, 1]".shape or x.shape == {})
  lu.assertTrue(dc.tensor(1).shape == {})
  lu.assertFalse(x.shape == nil or x.shape == "[2, 3]")
end

function TestShapeValue:test_text()
  lu.assertEquals(tostring(dc.ones "f32[2, 3]".shape), "[2, 3]")
  lu.assertEquals("of " .. dc.tensor(1).shape .. ".", "of [].")
  local seen = {}
  dc.fn("f(x: f32[n <= 8, 3]) -> f32[n, 3]", function(x)
    seen[1], seen[2] = tostring(x.shape), x.shape == (x * 2).shape
    return x
  end)
  lu.assertEquals(seen, { "[n (up to 8), 3]", true })
end

function TestShapeValue:test_positions()
  local s = dc.ones "f32[2, 3]".shape
  lu.assertEquals({ s[1], s[2], #s }, { 2, 3, 2 })
  fails("index 0 outside 1..2 of the shape [2, 3]", function() return s[0] end)
  fails("index -1 outside 1..2 of the shape [2, 3]", function() return s[-1] end)
  lu.assertNil(s[3])
  lu.assertNil(s.batch)
  lu.assertNil(dc.tensor(1).shape[0])
end

-- A table like any other one, for who makes another shape of it.
function TestShapeValue:test_as_a_table()
  local x = dc.iota "f32[6]":reshape(2, 3)
  local s, seen = x.shape, {}
  for i, n in ipairs(s) do seen[i] = n end
  lu.assertEquals(seen, { 2, 3 })
  lu.assertEquals({ table.unpack(s) }, { 2, 3 })
  lu.assertEquals(table.concat(s, "x"), "2x3")
  s[1] = 3
  s[2] = 2
  lu.assertEquals(x:reshape(s):totable(), { { 0, 1 }, { 2, 3 }, { 4, 5 } })
  lu.assertEquals(x.shape[1], 2)
  table.insert(s, 1, 1)
  lu.assertEquals(x:reshape(s).shape, { 1, 3, 2 })
  lu.assertEquals(dc.tensor(x.shape):totable(), { 2, 3 })
  lu.assertEquals(dc.ones "f32[3]":expand(x.shape):sum():item(), 6)
end
