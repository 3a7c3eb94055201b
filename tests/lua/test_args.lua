-- Wrong arguments: each message names the operation, the parameter, what was given and what is needed.
local lu = require "luaunit"
local dc = require "deepc"

-- The first line, without the place, and the code.
local function check(expected, code, f, ...)
  local ok, err = pcall(f, ...)
  lu.assertFalse(ok, expected)
  lu.assertEquals(tostring(err):match "^[^\n]*":gsub("^[^\n]-test_args%.lua:%d+: ", ""), expected)
  lu.assertEquals(err.code, code)
end

local x = dc.zeros "f32[batch=2, 3]"

TestArguments = {}

function TestArguments:test_tensors()
  check("matmul: a tensor is needed, not the number 3", "DC0101", x.matmul, x, 3)
  check("matmul: a tensor is needed, not nil", "DC0101", x.matmul, x)
  check("add: a tensor or a number is needed, not the string 'x'", "DC0101", function() return x + "x" end)
  check("exp: a tensor or a number is needed, not a function", "DC0101", dc.exp, print)
end

function TestArguments:test_types()
  check("zeros: a type such as \"f32[64, 784]\" is needed, not nil", "DC0101", dc.zeros)
  check("randn: a type such as \"f32[64, 784]\" is needed, not the number 3", "DC0101", dc.randn, 3)
  check("zeros: a zero byte in the string 'f32[2]'", "DC0101", dc.zeros, "f32[2]\0")
  for _, text in ipairs { "f31[2]", "f32[2", "f32", "", "f32[-1]", "f32[2,]", "f32[x]" } do
    local ok, err = pcall(dc.zeros, text)
    lu.assertFalse(ok)
    lu.assertStrContains(tostring(err), ": zeros: type '")
    lu.assertEquals(err.op, "zeros")
    lu.assertEquals(err.code, "DC0401")
  end
end

function TestArguments:test_axes()
  check("sum: axis 3 of f32[batch=2, 3]: axes are 1 to 2, -1 is the last, or a name", "DC0103", x.sum, x, 3)
  check("sum: axis 0 of f32[batch=2, 3]: axes are 1 to 2, -1 is the last, or a name", "DC0103", x.sum, x, 0)
  check("sum: no axis of f32[batch=2, 3] is called 'bach'", "DC0101", x.sum, x, "bach")
  check("sum: axis 1 is given twice for f32[batch=2, 3]", "DC0104", x.sum, x, { 1, "batch" })
  check("softmax: one axis is needed, as in x:softmax(-1)", "DC0101", x.softmax, x)
  check("transpose: an axis is needed, a number or a name, not a table", "DC0101", x.transpose, x, {}, 1)
  check("softmax: an axis must be an integer, not the number 1.5", "DC0101", x.softmax, x, 1.5)
  check("sum: an axis is needed, a number or a name, not true", "DC0101", x.sum, x, true)
  check("size: axis 1 of a scalar, which has no axes", "DC0101", dc.tensor(1).size, dc.tensor(1), 1)
end

function TestArguments:test_options()
  check("sum: unknown option 'axes'; known are axis, keep, dtype", "DC0101", x.sum, x, { axes = 1 })
  check("sum: keep must be true or false, not the number 1", "DC0101", x.sum, x, { axis = 1, keep = 1 })
  check("sum: dtype is one of numbers, such as \"i32\", not the string 'bool'", "DC0101", x.sum, x, { dtype = "bool" })
  check("matmul: unknown option 'type'; known are dtype", "DC0101", x.matmul, x, x, { type = "i32" })
  check("rand: options are a table, not the number 7", "DC0101", dc.rand, "f32[2]", 7)
  check("rand: unknown option 'sed'; known are low, high, seed", "DC0101", dc.rand, "f32[2]", { sed = 7 })
  check("rand: low must be a number, not the string 'a'", "DC0101", dc.rand, "f32[2]", { low = "a" })
  check("rand: seed must be an integer, not the number 1.5", "DC0101", dc.rand, "f32[2]", { seed = 1.5 })
  check("seed: a seed must be an integer, not nil", "DC0101", dc.seed)
end

function TestArguments:test_texts()
  local f = dc.fn("f(y: f32[4]) -> f32[4]", function(y) return y + 1 end)
  check("export: a string is needed, not nil", "DC0101", f.export, f)
  check("export: a string is needed, not the number 3", "DC0101", f.export, f, 3)
  check("source: a string is needed, not true", "DC0101", f.source, f, 1, true)
  check("source: a string is needed, not true", "DC0101", f.source, f, nil, true)
end

function TestArguments:test_numbers_beside_tensors()
  local i = dc.zeros "i32[2]"
  check("add: 1.5 does not fit i32", "DC0203", function() return i + 1.5 end)
  check("add: nan does not fit i32", "DC0203", function() return i + 0 / 0 end)
  check("add: 2147483648 does not fit i32", "DC0203", function() return i + 2147483648 end)
  check("add: true does not fit f32", "DC0203", function() return x:add(true) end)
  check("full: 300 does not fit u8", "DC0203", dc.full, "u8[2]", 300)
  check("full: nil does not fit u8", "DC0203", dc.full, "u8[2]")
end
