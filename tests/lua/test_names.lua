-- Names of dims through operations: which stay, which are lost, which are refused.
local lu = require "luaunit"
local dc = require "deepc"
local raises = require("tests.lua.check").raises

local function type_of(x) return tostring(x):match "[^\n]*$" end

-- Rows of { type, function, type of the result }, the same outside and in a typed function.
local function check(rows)
  for _, row in ipairs(rows) do
    local given, f, want = table.unpack(row)
    lu.assertEquals(type_of(f(dc.zeros(given))), want)
    local inside = {}
    dc.fn("f(x: " .. given .. ") -> ()", function(x) rawset(inside, 1, tostring(f(x))) end)
    lu.assertStrContains(inside[1], want .. " (traced")
  end
end

TestNames = {}

function TestNames:test_elementwise_operations_join_them()
  local z = dc.zeros
  check {
    { "f32[n=2]", function(x) return x + 1 end, "f32[n=2]" },
    { "f32[n=2]", function(x) return x + z "f32[2]" end, "f32[n=2]" },
    { "f32[2]", function(x) return x + z "f32[n=2]" end, "f32[n=2]" },
    { "f32[batch=3, 2]", function(x) return x * z "f32[c=2]" end, "f32[batch=3, c=2]" },
    { "f32[1, 2]", function(x) return x - z "f32[n=3, 1]" end, "f32[n=3, 2]" },
    { "f32[n=2]", function(x) return -x:exp():lt(0):cast "f32" end, "f32[n=2]" },
    { "f32[n=2]", function(x) return dc.where(x:gt(0), 1, x) end, "f32[n=2]" },
    { "f32[n=2, n=2]", function(x) return x + z "f32[n=2]" end, "f32[n=2, n=2]" },
  }
  raises("add: axis 1: 'a' against 'b'", "DC0305", function() return z "f32[a=2]" + z "f32[b=2]" end)
  raises("add: axis 1: named 'a' of size 1 does not stretch to 2", "DC0304", function()
    return z "f32[a=1]" + z "f32[2]"
  end)
end

-- [n, 1] and [n] would make [n, n]: all pairs.
function TestNames:test_broadcasting_gives_no_name_twice()
  local z = dc.zeros
  local twice = "axes 1 and 2 of the result would both be 'n': "
  raises("sub: " .. twice .. "f32[n=4, n=4]", "DC0305", function() return z "f32[n=4, 1]" - z "f32[n=4]" end)
  raises("add: " .. twice .. "f32[n=4, n=4]", "DC0305", function() return z "f32[n=4]" + z "f32[n=4, 1]" end)
  raises("mul: " .. twice .. "f32[n=4, n=4]", "DC0305", function() return z "f32[n=4, 1]" * z "f32[1, n=4]" end)
  raises("mul: " .. twice .. "f32[n=1, n=1]", "DC0305", function() return z "f32[n=1, 1]" * z "f32[n=1]" end)
  raises("gt: " .. twice .. "f32[n=4, n=4]", "DC0305", function() return z "f32[n=4, 1]":gt(z "f32[n=4]") end)
  raises("eq: axes 2 and 3 of the result would both be 'n': f32[b=2, n=4, n=4]", "DC0305", function()
    return z "f32[b=2, n=4, 1]":eq(z "f32[b=2, 1, n=4]")
  end)
  raises("where: " .. twice .. "f32[n=4, n=4]", "DC0305", function()
    return dc.where(z "bool[n=4]", z "f32[n=4, 1]", 0)
  end)
  raises("matmul: " .. twice .. "f32[n=4, n=4]", "DC0305", function()
    return z "f32[n=4, 1, 2, 3]":matmul(z "f32[n=4, 3, 2]")
  end)
  raises("einsum: two axes of '...' would both be 'n'", "DC0305", function()
    return dc.einsum("..., ... -> ...", z "f32[n=4, 1]", z "f32[n=4]")
  end)
  dc.fn("f(p: f32[n, 1], y: f32[n, 1]) -> f32[n, 1]", function(p, y) return p - y end, { n = 4 })
  raises("sub: " .. twice .. "f32[n=4, n=4]", "DC0305", function()
    dc.fn("f(p: f32[n, 1], y: f32[n]) -> f32[]", function(p, y) return (p - y):sum() end, { n = 4 })
  end)
  local pairs_of = "both operands would stretch, to "
  raises("sub: " .. pairs_of .. "f32[n=4, 4]: each element with each", "DC0305", function()
    return z "f32[n=4, 1]" - z "f32[4]"
  end)
  raises("sub: " .. pairs_of .. "f32[4, n=4]: each element with each", "DC0305", function()
    return z "f32[4, 1]" - z "f32[n=4]"
  end)
  raises("mul: " .. pairs_of .. "f32[n=4, 3]: each element with each", "DC0305", function()
    return z "f32[n=4, 1]" * z "f32[3]"
  end)
  raises("where: " .. pairs_of .. "f32[4, n=4, 3]: each element with each", "DC0305", function()
    return dc.where(z "bool[4, 1, 3]", z "f32[n=4, 3]", 0)
  end)
  check { -- by hand, and where an operand has it twice, they meet
    { "f32[n=4, 1]", function(x) return x - z "f32[n=4]":reshape "[n, 1]" end, "f32[n=4, 1]" },
    { "f32[n=4, 1]", function(x) return x - z "f32[n=4]":rename { n = "m" } end, "f32[n=4, m=4]" },
    { "f32[n=4, 1]", function(x) return x - z "f32[1, 4]" end, "f32[n=4, 4]" },
    { "f32[n=4, 1]", function(x) return (x - z "f32[m=4]"):rename { [2] = "n" } end, "f32[n=4, n=4]" },
    { "f32[n=4, n=4]", function(x) return x - z "f32[n=4]" + z "f32[n=4, 1]" end, "f32[n=4, n=4]" },
    { "f32[n=4, 2]", function(x) return x:matmul(x:transpose()) end, "f32[n=4, n=4]" },
    { "f32[n=4, 1]", function(x) return x:expand "[n, n]" end, "f32[n=4, n=4]" },
    { "f32[n=4, n=4]", function(x) return dc.einsum("..., ... -> ...", x, z "f32[n=4]") end, "f32[n=4, n=4]" },
    { "f32[n=4, 1, 1]", function(x) return x * z "f32[t=4, s=4]" end, "f32[n=4, t=4, s=4]" },
    { "f32[n=4, 3]", function(x) return x * z "f32[3]" + z "f32[4, 1]" end, "f32[n=4, 3]" },
    { "f32[4, 1]", function(x) return x * z "f32[4]" end, "f32[4, 4]" },
    { "f32[n=4, 1]", function(x) return z "f32[5]":lt(x) end, "bool[n=4, 5]" },
  }
end

function TestNames:test_reductions_drop_them()
  check {
    { "f32[batch=2, t=3, c=4]", function(x) return x:sum(2) end, "f32[batch=2, c=4]" },
    { "f32[batch=2, t=3, c=4]", function(x) return x:mean "batch" end, "f32[t=3, c=4]" },
    { "f32[batch=2, t=3]", function(x) return x:max { axis = "t", keep = true } end, "f32[batch=2, 1]" },
    { "f32[batch=2, t=3]", function(x) return x:argmax "t" end, "i32[batch=2]" },
    { "f32[batch=2, t=3]", function(x) return x:softmax "t" end, "f32[batch=2, t=3]" },
    { "f32[batch=2, t=3]", function(x) return x:log_softmax(1) end, "f32[batch=2, t=3]" },
    { "f32[n=2, n=2]", function(x) return x:sum(1) end, "f32[n=2]" },
  }
  raises("sum: axes 1 and 2 of f32[n=2, n=2] are both 'n'", "DC0101", function()
    return dc.zeros "f32[n=2, n=2]":sum "n"
  end)
end

function TestNames:test_movement()
  check {
    { "f32[a=2, b=3]", function(x) return x:transpose() end, "f32[b=3, a=2]" },
    { "f32[a=2, b=3]", function(x) return x:permute("b", "a") end, "f32[b=3, a=2]" },
    { "f32[a=2, 1]", function(x) return x:expand(2, 3) end, "f32[a=2, 3]" },
    { "f32[a=2, 1]", function(x) return x:expand "[a, b=3]" end, "f32[a=2, b=3]" },
    { "f32[a=2, b=3]", function(x) return x[{ {}, { 1, 3 } }] end, "f32[a=2, b=3]" },
    { "f32[a=2, b=3]", function(x) return x[{ {}, { 1, 2 } }] end, "f32[a=2, 2]" },
  }
end

function TestNames:test_reshape_keeps_the_longest_common_run()
  check {
    { "f32[a=2, b=3, c=4]", function(x) return x:reshape(2, 12) end, "f32[a=2, 12]" },
    { "f32[a=2, b=3, c=4]", function(x) return x:reshape(6, 4) end, "f32[6, c=4]" },
    { "f32[a=2, b=3, c=4]", function(x) return x:reshape(2, 1, 3, 4) end, "f32[a=2, 1, b=3, c=4]" },
    { "f32[a=2, b=3, c=4]", function(x) return x:reshape(24) end, "f32[24]" },
    { "f32[a=2, b=3, c=4]", function(x) return x:flatten(2) end, "f32[a=2, 12]" },
    { "f32[batch=2, 4]", function(x) return x:reshape "[2, h=2, 2]" end, "f32[batch=2, h=2, 2]" },
  }
end

function TestNames:test_a_name_alone_in_a_shape()
  check {
    { "f32[4, 5, 8]", function(x) return x:reshape "[batch, head, t=8]" end, "f32[batch=4, head=5, t=8]" },
    { "f32[4, 5, 8]", function(x) return x:reshape "[batch, head, t]" end, "f32[batch=4, head=5, t=8]" },
    { "f32[batch=4, 5, 8]", function(x) return x:reshape "[batch, rest]" end, "f32[batch=4, rest=40]" },
    { "f32[batch=4, 5, 8]", function(x) return x:reshape "[batch, -1]" end, "f32[batch=4, 40]" },
    { "f32[a=2, b=3]", function(x) return x:reshape "[b, a]" end, "f32[b=3, a=2]" },
    { "f32[4, 6]", function(x) return x:reshape "[batch, head, 3]" end, "f32[batch=4, head=2, 3]" },
    { "f32[4, 6]", function(x) return x:reshape "[2, 2, c]" end, "f32[2, 2, c=6]" },
    { "f32[4, 3, 6]", function(x) return x:reshape "[n, 3, 2, c]" end, "f32[n=4, 3, 2, c=3]" },
    { "f32[0, 3]", function(x) return x:reshape "[n, c]" end, "f32[n=0, c=3]" },
    { "f32[a=2, a=2]", function(x) return x:reshape "[a, b=2]" end, "f32[a=2, b=2]" },
    { "f32[6]", function(x) return x:reshape " f32 [ n ] " end, "f32[n=6]" },
  }
end

function TestNames:test_mistakes_in_a_shape()
  local function shape(given, text) return function() return dc.zeros(given):reshape(text) end end
  raises("reshape: the size of 'a' in '[a, b]' does not follow from f32[24]; write a=SIZE", "DC0101",
    shape("f32[24]", "[a, b]"))
  raises("reshape: the size of 'b' in '[4, b, -1]' does not follow from f32[24]; write b=SIZE", "DC0101",
    shape("f32[24]", "[4, b, -1]"))
  raises("reshape: axes 1 and 2 are both 'n', of different sizes; write n=SIZE", "DC0101",
    shape("f32[n=2, n=3]", "[n, 3]"))
  raises("reshape: shape '[2, 3': ',' or ']' expected, not ''", "DC0101", shape("f32[6]", "[2, 3"))
  raises("reshape: shape '[n=x]': a size or a name expected, not 'x]'", "DC0101", shape("f32[6]", "[n=x]"))
  raises("reshape: shape '[6] 7': nothing more expected, not '7'", "DC0101", shape("f32[6]", "[6] 7"))
  raises("reshape: shape '[99999999999999999999]': a smaller size expected, not '99999999999999999999'", "DC0101",
    shape("f32[6]", "[99999999999999999999]"))
  raises("reshape: a shape such as \"[64, 784]\" is needed, not 'i32[6]'; :cast changes the dtype", "DC0101",
    shape("f32[6]", "i32[6]"))
  raises("reshape: 9 axes; 8 is the most", "DC0307", shape("f32[1]", "[1,1,1,1,1,1,1,1,1]"))
  raises("reshape: only one size may be -1", "DC0101", shape("f32[6]", "[-1, -1]"))
  raises("reshape: f32[6] has 6 elements, f32[n=4] has 4", "DC0303", shape("f32[6]", "[n=4]"))
end

function TestNames:test_rename()
  check {
    { "f32[a=2, b=3]", function(x) return x:rename { a = "n" } end, "f32[n=2, b=3]" },
    { "f32[a=2, b=3]", function(x) return x:rename { a = "b", b = "a" } end, "f32[b=2, a=3]" },
    { "f32[a=2, b=3]", function(x) return x:rename { false, "c" } end, "f32[2, c=3]" },
    { "f32[2, 3]", function(x) return x:rename { "a", "b" } end, "f32[a=2, b=3]" },
    { "f32[2, 3]", function(x) return x:rename { [-1] = "b" } end, "f32[2, b=3]" },
    { "f32[a=2, b=3]", function(x) return x:rename("b", "c") end, "f32[a=2, c=3]" },
    { "f32[a=2, b=3]", function(x) return x:rename(1, false) end, "f32[2, b=3]" },
  }
  local x = dc.tensor({ 1, 2 }, "f32[a=2]")
  lu.assertEquals(x:rename("a", "b"):totable(), { 1, 2 })
  raises("rename: no axis of f32[a=2] is called 'c'", "DC0101", x.rename, x, "c", "d")
  raises("rename: axis 1 is given twice for f32[a=2]", "DC0104", x.rename, x, { "d", a = "c" })
  raises("rename: a name is letters, digits and _, or false for none; not the string 'a b'", "DC0101",
    x.rename, x, { "a b" })
  raises("rename: a name is letters, digits and _, or false for none; not the string '2a'", "DC0101",
    x.rename, x, { "2a" })
  raises("rename: a name is letters, digits and _, or false for none; not nil", "DC0101", x.rename, x, "a", nil)
  raises("rename: a table such as { batch = \"rows\" } is needed, not the string 'a'", "DC0101", x.rename, x, "a")
end

function TestNames:test_products()
  check {
    { "f32[batch=2, i=3]", function(x) return x:matmul(dc.zeros "f32[3, o=4]") end, "f32[batch=2, o=4]" },
    { "f32[b=5, n=2, k=3]", function(x) return x:matmul(dc.zeros "f32[k=3, m=4]") end, "f32[b=5, n=2, m=4]" },
    { "f32[n=2, k=3]", function(x) return x:matmul(dc.zeros "f32[b=5, k=3, m=4]") end, "f32[b=5, n=2, m=4]" },
    { "f32[k=3]", function(x) return x:matmul(dc.zeros "f32[3, m=4]") end, "f32[m=4]" },
  }
  raises("matmul: axis 2: 'i' against 'j'", "DC0305", function()
    return dc.zeros "f32[2, i=3]":matmul(dc.zeros "f32[j=3, 4]")
  end)
end
