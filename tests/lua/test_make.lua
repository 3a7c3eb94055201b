-- New tensors: what literals and rules give, and what a wrong literal is told.
local lu = require "luaunit"
local dc = require "deepc"

-- The message of f(...), without the place it begins with.
local function message(f, ...)
  local ok, err = pcall(f, ...)
  lu.assertFalse(ok)
  return (tostring(err):gsub("^[^\n]-test_make%.lua:%d+: ", ""))
end

local function refused(expected, ...)
  lu.assertEquals(message(dc.tensor, ...), expected)
end

local function literal(text, hint)
  return "tensor: " .. text .. (hint and "\n  hint: " .. hint or "") .. "\n  [DC0112; deepc explain DC0112]"
end

local function misfit(text, hint)
  return "tensor: " .. text .. (hint and "\n  hint: " .. hint or "") .. "\n  [DC0203; deepc explain DC0203]"
end

TestMake = {}

function TestMake:test_table_is_f32_by_default()
  local a = dc.tensor { { 1, 2, 3 }, { 4, 5, 6 } }
  lu.assertEquals(a.dtype, "f32")
  lu.assertEquals(a.shape, { 2, 3 })
  lu.assertEquals(a:totable(), { { 1, 2, 3 }, { 4, 5, 6 } })
end

function TestMake:test_type_gives_dtype_shape_names()
  local y = dc.tensor({ 7, 2, 1 }, "i32[3]")
  lu.assertEquals(y.dtype, "i32")
  lu.assertEquals(y:totable(), { 7, 2, 1 })
  lu.assertEquals(math.type(y:totable()[1]), "integer")
  lu.assertEquals(dc.tensor({ { 1, 2 } }, "f32[batch=1, 2]"):size "batch", 1)
end

function TestMake:test_dtype_alone()
  lu.assertEquals(dc.tensor({ { 1 }, { 0 } }, "u8").shape, { 2, 1 })
  lu.assertEquals(dc.tensor({ true, false }, "bool"):totable(), { true, false })
end

function TestMake:test_scalar()
  lu.assertEquals(dc.tensor(2.5):item(), 2.5)
  lu.assertEquals(dc.tensor(2.5).shape, {})
  lu.assertEquals(dc.tensor(3, "i32[]"):item(), 3)
  lu.assertEquals(dc.tensor(3, "i32").shape, {})
end

function TestMake:test_empty_axis()
  lu.assertEquals(dc.zeros("f32[0, 3]"):totable(), {})
  lu.assertEquals(dc.tensor({}, "f32[0]").shape, { 0 })
  lu.assertEquals(dc.tensor({ {}, {} }, "f32[2, 0]").shape, { 2, 0 })
end

function TestMake:test_a_table_with_metamethods()
  local t = setmetatable({}, { __len = function() return 3 end, __index = function(_, i) return i * i end })
  lu.assertEquals(dc.tensor(t):totable(), { 1, 4, 9 })
end

function TestMake:test_every_dtype_holds_its_ends()
  local ends = {
    u8 = { 0, 255 }, i32 = { -2 ^ 31, 2 ^ 31 - 1 }, u32 = { 0, 2 ^ 32 - 1 },
  }
  for dtype, pair in pairs(ends) do
    local t = dc.tensor(pair, dtype)
    lu.assertEquals(t:totable(), { math.tointeger(pair[1]), math.tointeger(pair[2]) })
    lu.assertEquals(message(dc.tensor, { pair[1] - 1 }, dtype):match "does not fit %w+", "does not fit " .. dtype)
    lu.assertEquals(message(dc.tensor, { pair[2] + 1 }, dtype):match "does not fit %w+", "does not fit " .. dtype)
  end
end

function TestMake:test_by_rule()
  lu.assertEquals(dc.zeros("f32[2]"):totable(), { 0, 0 })
  lu.assertEquals(dc.ones("i32[2]"):totable(), { 1, 1 })
  lu.assertEquals(dc.ones("bool[2]"):totable(), { true, true })
  lu.assertEquals(dc.full("f32[2]", 0.5):totable(), { 0.5, 0.5 })
  lu.assertEquals(dc.iota("i32[2, 3]"):totable(), { { 0, 1, 2 }, { 0, 1, 2 } })
  lu.assertEquals(dc.iota("i32[2, 3]", 1):totable(), { { 0, 0, 0 }, { 1, 1, 1 } })
  lu.assertEquals(dc.iota(3):totable(), { 0, 1, 2 })
  lu.assertEquals(dc.iota(3).dtype, "i32")
  lu.assertEquals(dc.eye("i32[2, 3]"):totable(), { { 1, 0, 0 }, { 0, 1, 0 } })
end

function TestMake:test_like_another()
  local x = dc.tensor({ { 1, 2 } }, "i32[batch=1, 2]")
  lu.assertEquals(tostring(dc.zeros(x)), "  0  0\ni32[batch=1, 2]")
  lu.assertEquals(tostring(dc.ones(x)), "  1  1\ni32[batch=1, 2]")
  lu.assertEquals(tostring(dc.full(x, 7)), "  7  7\ni32[batch=1, 2]")
  lu.assertEquals(tostring(dc.iota(x)), "  0  1\ni32[batch=1, 2]")
end

function TestMake:test_rules_inside_a_typed_function()
  local f = dc.fn("f(x: f32[2, 2]) -> f32[2, 2]", function(x)
    return x + dc.eye(x) + dc.ones(x)
  end)
  lu.assertEquals(f({ { 1, 2 }, { 3, 4 } }):totable(), { { 3, 3 }, { 4, 6 } })
end

TestWrongLiterals = {}

function TestWrongLiterals:test_ragged()
  refused(literal "1 element at [2], 2 are needed on axis 2", { { 1, 2 }, { 3 } })
  refused(literal "3 elements at [2], 2 are needed on axis 2", { { 1, 2 }, { 3, 4, 5 } })
  refused(literal "0 elements at [2], 2 are needed on axis 2", { { 1, 2 }, {} })
  refused(literal "a number is needed at [2], not a table", { 1, { 2 } })
  refused(literal "a table of 1 is needed at [2], not the number 3", { { 1 }, 3 })
  refused(literal "2 elements, 3 are needed on axis 1", { 1, 2 }, "f32[3]")
  refused(literal "a table of 3 is needed, not the number 5", 5, "f32[3]")
  refused(literal "a number is needed, not a table", { 5 }, "f32[]")
end

function TestWrongLiterals:test_holes_and_other_keys()
  refused(literal "a number is needed at [2], not nil", { 1, nil, 3 })
  local behind = { 1, 2 }
  behind[5] = 3
  refused(literal "the table has 2 elements and the key 5 besides", behind)
  refused(literal "the table at [2] has 1 element and the key 'x' besides", { { 1 }, { 2, x = 3 } })
  refused(literal "the table has 0 elements and the key 'x' besides", { x = 3 })
  refused(literal "the table has 1 element and the key 0 besides", { [0] = 3, 4 })
end

function TestWrongLiterals:test_empty()
  local hint = 'a tensor without elements: dc.zeros "f32[0]"'
  refused(literal("the table is empty", hint), {})
  refused(literal("the table at [1] is empty", hint), { {}, {} })
end

function TestWrongLiterals:test_deep_and_cyclic()
  local cycle, deep = {}, 1
  cycle[1] = cycle
  for _ = 1, 9 do
    deep = { deep }
  end
  refused(literal "tables are nested more than 8 deep at [1][1][1][1][1][1][1][1]", cycle)
  refused(literal "tables are nested more than 8 deep at [1][1][1][1][1][1][1][1]", deep)
  refused(literal "a number is needed at [1][1], not a table", cycle, "f32[1, 1]")
  lu.assertEquals(dc.tensor(deep[1]).shape, { 1, 1, 1, 1, 1, 1, 1, 1 })
end

function TestWrongLiterals:test_no_numbers()
  refused(literal "a number is needed at [2][2], not the string 'x'", { { 1, 2 }, { 3, "x" } })
  refused(literal "a number is needed at [1], not a function", { print })
  refused(literal("a number is needed at [1], not f32[]",
    ":item() gives a tensor's number; dc.stack { a, b } makes one tensor of several"), { dc.tensor(4) })
  refused(literal "true or false is needed at [1], not the string 'x'", { "x" }, "bool")
end

function TestWrongLiterals:test_values_that_do_not_fit()
  refused(misfit("1.5 at [1][2] does not fit i32", ':cast "f32" first; / gives f32 by itself'), { { 1, 1.5 } }, "i32")
  refused(misfit("256 at [1] does not fit u8", "u8 holds 0 to 255"), { 256 }, "u8[1]")
  refused(misfit("-1 at [1] does not fit u8", "u8 holds 0 to 255"), { -1 }, "u8[1]")
  refused(misfit("2147483648 at [1] does not fit i32", "i32 holds -2147483648 to 2147483647"), { 2147483648 }, "i32")
  refused(misfit "nan at [1] does not fit i32", { 0 / 0 }, "i32")
  refused(misfit("inf at [1] does not fit i32", "i32 holds -2147483648 to 2147483647"), { 1 / 0 }, "i32")
  refused(misfit "1e+300 at [2] does not fit f32", { 1, 1e300 })
  refused(misfit("true at [1] does not fit f32", 'dc.tensor({ true, false }, "bool")'), { true })
  refused(misfit("1 at [1] does not fit bool", "bool has true and false"), { 1 }, "bool[1]")
  refused(misfit "1e+300 does not fit f32", 1e300)
end

function TestWrongLiterals:test_no_table_at_all()
  lu.assertEquals(message(dc.tensor),
    "tensor: a table or a number is needed, not nil\n  [DC0101; deepc explain DC0101]")
  lu.assertEquals(message(dc.tensor, "f32[2]"),
    "tensor: a table or a number is needed, not the string 'f32[2]'\n"
      .. '  hint: values first, then the type: dc.tensor({ 7, 2 }, "i32"); dc.zeros takes a type\n'
      .. "  [DC0101; deepc explain DC0101]")
  local text = message(dc.tensor, dc.tensor(4))
  lu.assertStrContains(text, "tensor: a table or a number is needed, not f32[]\n")
  lu.assertStrContains(text, '\n  hint: it is a tensor already; :cast "f32" converts, :clone() copies\n')
end

function TestWrongLiterals:test_types()
  lu.assertStrContains(message(dc.zeros, "f31[2]"), "type 'f31[2]'")
  lu.assertStrContains(message(dc.zeros, "f32[2] x"), "nothing expected behind")
  lu.assertEquals(message(dc.zeros, 3),
    'zeros: a type such as "f32[64, 784]" is needed, not the number 3\n' ..
    '  hint: a type is one text: dc.zeros "f32[3]"\n  [DC0101; deepc explain DC0101]')
  lu.assertEquals(message(dc.eye, "f32[3]"),
    "eye: f32[3] has 1 axes, 2 are needed\n  [DC0302; deepc explain DC0302]")
  lu.assertEquals(message(dc.iota, "i32[]"),
    "iota: a scalar has no axis to count along\n  [DC0101; deepc explain DC0101]")
  lu.assertEquals(message(dc.iota, -1),
    "iota: the size is 0 to 2147483647, not -1\n  [DC0101; deepc explain DC0101]")
  lu.assertEquals(message(dc.full, "u8[2]", 300),
    "full: 300 does not fit u8\n  hint: u8 holds 0 to 255\n  [DC0203; deepc explain DC0203]")
end

function TestWrongLiterals:test_nothing_is_left_of_them()
  collectgarbage()
  collectgarbage() -- what was only found by finalizers in the first
  local before = dc.stats().bytes_live
  for _ = 1, 100 do
    pcall(dc.tensor, { { 1, 2 }, { 3 } })
  end
  collectgarbage()
  lu.assertEquals(dc.stats().bytes_live, before)
end
