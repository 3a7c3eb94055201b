-- What a tensor is besides operations: fields, values out of it, Lua's own operators and loops.
local lu = require "luaunit"
local dc = require "deepc"

-- The message of f(...), without the places in it.
local function message(f, ...)
  local ok, err = pcall(f, ...)
  lu.assertFalse(ok)
  return (tostring(err):gsub("[^%s]*test_values%.lua:%d+", "AT"):gsub("^AT: ", ""))
end

TestFields = {}

function TestFields:test_shape_dtype_size_len()
  local a = dc.zeros "f32[rows=2, 3]"
  lu.assertEquals(a.shape, { 2, 3 })
  lu.assertEquals(a.dtype, "f32")
  lu.assertEquals(#a, 2)
  lu.assertEquals({ a:size(2), a:size(-1), a:size "rows" }, { 3, 3, 2 })
end

function TestFields:test_shape_is_a_copy()
  local a = dc.zeros "f32[2, 3]"
  a.shape[1] = 7
  lu.assertEquals(a.shape, { 2, 3 })
end

function TestFields:test_wrong_ones()
  local a = dc.zeros "f32[2, 3]"
  lu.assertEquals(message(a.size, a),
    "size: an axis is needed, a number or a name\n    of     f32[2, 3]   made at AT\n"
      .. "  hint: x.shape has all sizes\n  [DC0101; deepc explain DC0101]")
  lu.assertStrContains(message(a.size, a, 3), "size: axis 3 of f32[2, 3]: axes are 1 to 2, -1 is the last")
  lu.assertEquals(message(function() return a.foobar end),
    "a tensor has no 'foobar'\n    of     f32[2, 3]   made at AT\n  [DC0110; deepc explain DC0110]")
  lu.assertStrContains(message(function() return #dc.tensor(1) end), "#: a scalar has no axis 1")
end

function TestFields:test_immutable()
  local a = dc.zeros "f32[2]"
  local text = "tensors are immutable\n    of     f32[2]   made at AT\n"
    .. "  hint: b = a:put({1}, 5); cells have :set\n  [DC0206; deepc explain DC0206]"
  lu.assertEquals(message(function() a[1] = 5 end), text)
  lu.assertEquals(message(function() a.x = 5 end), text)
  lu.assertEquals(message(function() a:add_(1) end), text)
end

TestValues = {}

function TestValues:test_item_keeps_the_kind()
  lu.assertEquals(dc.tensor(2.5):item(), 2.5)
  lu.assertEquals(math.type(dc.tensor(2):item()), "float")
  lu.assertEquals(math.type(dc.tensor(2, "i32"):item()), "integer")
  lu.assertEquals(dc.tensor(true, "bool"):item(), true)
  lu.assertEquals(dc.tensor({ { 7 } }):item(), 7)
  lu.assertEquals(dc.tensor(4294967295, "u32"):item(), 4294967295)
end

function TestValues:test_item_of_many()
  lu.assertEquals(message(function() return dc.zeros "f32[2]":item() end),
    "item: f32[2] is not one element\n    of     f32[2]   made at AT\n  hint: :totable() gives all of them\n"
      .. "  [DC0101; deepc explain DC0101]")
end

function TestValues:test_without_colon()
  local a = dc.zeros "f32[2]"
  lu.assertEquals(message(function() a.item() end),
    "item: a tensor is needed, not nil\n  hint: with a colon: x:item()\n  [DC0101; deepc explain DC0101]")
  lu.assertEquals(message(function() a.totable(3) end),
    "totable: a tensor is needed, not the number 3\n  hint: with a colon: x:totable()\n"
      .. "  [DC0101; deepc explain DC0101]")
end

function TestValues:test_totable_reads_back()
  local t = { { { 1, 2 }, { 3, 4 } }, { { 5, 6 }, { 7, 8 } } }
  lu.assertEquals(dc.tensor(t):totable(), t)
  lu.assertEquals(dc.zeros("f32[2, 0]"):totable(), { {}, {} })
end

function TestValues:test_clone()
  local a = dc.tensor({ 1, 2 }, "f32[n=2]")
  local b = a:clone()
  a:close()
  lu.assertEquals(b:totable(), { 1, 2 })
  lu.assertEquals(b:size "n", 2)
end

TestLua = {}

function TestLua:test_equality_raises()
  local a, b = dc.zeros "f32[2]", dc.zeros "f32[3]"
  lu.assertEquals(message(function() return a == b end),
    "== of two tensors\n    of     f32[2]   made at AT\n    of     f32[3]   made at AT\n"
      .. "  hint: pred:eq(y), rawequal for identity\n  [DC0204; deepc explain DC0204]")
  local same, file = a, io.stdout
  lu.assertTrue(a == same)
  lu.assertFalse(a == file)
  lu.assertFalse(a == nil)
  lu.assertTrue(rawequal(a, a))
end

function TestLua:test_order_raises()
  local a = dc.zeros "f32[]"
  local text = "order comparison of tensors: Lua makes it true or false\n    of     f32[]   made at AT\n"
    .. "  hint: loss:item() for the value, x:lt :le :gt :ge element by element\n  [DC0204; deepc explain DC0204]"
  lu.assertEquals(message(function() return a < 1 end), text)
  lu.assertEquals(message(function() return a <= 1 end), text)
  lu.assertEquals(message(function() return a > 1 end), text)
end

function TestLua:test_ipairs_ends()
  local seen = {}
  for i, row in ipairs(dc.tensor { { 1, 2 }, { 3, 4 } }) do
    seen[i] = row:totable()
  end
  lu.assertEquals(seen, { { 1, 2 }, { 3, 4 } })
  for _ in ipairs(dc.zeros "f32[0, 2]") do
    lu.fail "no rows"
  end
end

function TestLua:test_only_ipairs_looks_behind_the_end()
  local a = dc.zeros "f32[2]"
  lu.assertStrContains(message(function() return a[3] end), "index 3 outside 1..2 of axis 1 of f32[2]")
end

function TestLua:test_ipairs_inside_a_typed_function()
  local f = dc.fn("f(x: f32[3]) -> f32[]", function(x)
    local sum = 0
    for i, v in ipairs(x) do
      sum = sum + v * i
    end
    return sum
  end)
  lu.assertEquals(f({ 1, 2, 3 }):item(), 14)
end

function TestLua:test_pairs_raises()
  lu.assertEquals(message(pairs, dc.zeros "f32[2]"),
    "a tensor has no 'pairs'\n    of     f32[2]   made at AT\n"
      .. "  hint: for i, row in ipairs(x), or pairs(x:totable())\n  [DC0110; deepc explain DC0110]")
end

function TestLua:test_unpack()
  local a, b = table.unpack(dc.tensor { 1, 2 })
  lu.assertEquals({ a:item(), b:item() }, { 1, 2 })
end

TestClose = {}

function TestClose:test_frees_at_once()
  collectgarbage()
  collectgarbage()
  local before = dc.stats().bytes_live
  local a = dc.zeros "f32[1000]"
  lu.assertTrue(a:clone():size(1) == 1000 and dc.stats().bytes_live >= before + 4000)
  a:close()
  a:close()
  collectgarbage()
  lu.assertEquals(dc.stats().bytes_live, before)
end

function TestClose:test_at_the_end_of_a_block()
  collectgarbage()
  collectgarbage()
  local before = dc.stats().bytes_live
  do
    local a <close> = dc.zeros "f32[1000]"
    lu.assertEquals(a:size(1), 1000)
  end
  lu.assertEquals(dc.stats().bytes_live, before)
end

function TestClose:test_use_after()
  local a = dc.zeros "f32[2]"
  local line = debug.getinfo(1, "l").currentline + 1
  a:close()
  local _, err = pcall(a.sum, a)
  local text, n = tostring(err):gsub("[^%s]*test_values%.lua:" .. line .. "\n", "AT\n")
  lu.assertEquals(n, 1)
  lu.assertStrContains(text, "sum: the tensor was closed at AT\n  [DC0107; deepc explain DC0107]")
end
