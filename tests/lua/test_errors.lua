-- What a user reads when something is wrong: whole messages, places, fields of error values.
local lu = require "luaunit"
local dc = require "deepc"

-- Runs a script called train.lua and returns its error value.
local function raised(text)
  local chunk = assert(load('local dc = require "deepc"; local nn = require "deepc.nn"\n' .. text, "@train.lua"))
  local ok, err = pcall(chunk)
  lu.assertFalse(ok)
  return err
end

local function reads(text, want)
  lu.assertEquals(tostring(raised(text)), want)
end

TestMessages = {}

-- Whole messages are those of tests/mistakes; one for every part of a message at once.
function TestMessages:test_all_parts()
  reads([[
local net = nn.Sequential { nn.ReLU(), nn.Linear(784, 10) }
dc.fn("step(img: f32[batch=32, 28, 28]) -> f32[32, 10]", function(img)
  local y = net(img)
  return y
end)]], [=[
train.lua:4: matmul: inner dims differ: axis 3 = 28 against axis 1 = 784
    left   f32[batch=32, 28, 28]   made at train.lua:4
    right  f32[784, 10]            parameter net.2.weight
    in     net.2 (nn.Linear 784 -> 10)
  hint: 28 * 28 = 784; :flatten(2) first?
  [DC0301; deepc explain DC0301]]=])
end

-- The variable of the line that is nil, as Lua's own messages have it. The text of the line is the chunk's name.
function TestMessages:test_nil_is_named()
  local env = { dc = dc, x = dc.ones "f32[2]", cfg = { inner = {} } }
  local function hint(line)
    return select(2, pcall(assert(load(line, line, "t", env)))).hint
  end
  lu.assertEquals(hint "return dc.ones 'f32[2]' + 1 * dc.zeros 'f32[2]' * missing", "the global 'missing' is nil")
  lu.assertEquals(hint "return x * cfg.inner.scale", "the field 'scale' is nil")
  lu.assertEquals(hint "local y, z; y = 1; return x * y - z", "the local 'z' is nil")
  lu.assertEquals(hint "local z; return (function() return x - z end)()", "the captured local 'z' is nil")
  lu.assertEquals(hint "local ok, err = x * 2, x * missing", "the global 'missing' is nil")
  lu.assertEquals(hint "return 'missing' and x * nil -- missing", nil)
  lu.assertEquals(hint "local missing = nil; return x:matmul(missing)", "the local 'missing' is nil")
end

function TestMessages:test_memory_is_told_with_its_size()
  local err = raised 'return tostring(dc.rand "f32[1000000, 10000000]" + 1)'
  lu.assertEquals(err.code, "DC1001")
  lu.assertStrContains(err.message, "40.0 TiB at once could not be had")
end

TestFields = {}

function TestFields:test_names_from_elsewhere()
  local cases = {
    view = ":reshape",
    unsqueeze = ":reshape",
    backward = "opt:step(loss) takes the gradients, or dc.grad(loss, params)",
  }
  for name, hint in pairs(cases) do
    local err = raised(('local x = dc.zeros "f32[2]"; x:%s(1)'):format(name))
    lu.assertEquals(err.code, "DC0110")
    lu.assertEquals(err.hint, hint)
    lu.assertStrContains(err.message, ("train.lua:2: a tensor has no '%s'\n"):format(name))
  end
end

function TestFields:test_module_has_no_other_names()
  reads("local _ = dc.backward", "train.lua:2: deepc has no 'backward'\n  [DC0110; deepc explain DC0110]")
end

function TestFields:test_the_nearest_name()
  for name, meant in pairs { matmull = "matmul", zeroes = "zeros", wehre = "where" } do
    lu.assertEquals(raised("local _ = dc." .. name).hint, ("is '%s' meant?"):format(meant))
  end
  lu.assertEquals(raised 'local _ = dc.ones "f32[]".shpae'.hint, "is 'shape' meant?")
  lu.assertEquals(raised "local _ = nn.linear".hint, "is 'Linear' meant?")
  lu.assertNil(raised(("local _ = dc.%s"):format(("x"):rep(400))).hint)
end

function TestFields:test_comparisons()
  local order = "order comparison of tensors: Lua makes it true or false"
  for _, text in ipairs { "a < b", "a <= b", "a > 0", "1 >= a" } do
    local err = raised('local a, b = dc.ones "f32[]", dc.ones "f32[]"; local _ = ' .. text)
    lu.assertEquals(err.code, "DC0204")
    lu.assertStrContains(tostring(err), order)
  end
  local err = raised 'local a, b = dc.ones "f32[]", dc.ones "f32[]"; local _ = a == b'
  lu.assertStrContains(tostring(err), "== of two tensors")
  lu.assertStrContains(tostring(err), "rawequal for identity")
end

TestValues = {}

function TestValues:test_an_error_is_a_table_that_reads_as_text()
  local err = raised 'dc.zeros("f32[64, 10]"):sum(3)'
  lu.assertIsTable(err)
  lu.assertEquals(err.code, "DC0103")
  lu.assertEquals(err.op, "sum")
  lu.assertEquals(err.at, "train.lua:2")
  lu.assertStrContains("failed: " .. err, "failed: train.lua:2: sum")
  lu.assertStrContains(err .. "", "axis 3")
  lu.assertEquals(err:match "^[^:]+", "train.lua")
  lu.assertTrue(err:find("axes are 1 to 2", 1, true) ~= nil)
  lu.assertStrContains(err.traceback, "train.lua:2")
end

-- What luaL_traceback writes, whose lines in the middle of a deep stack are left out.
function TestValues:test_a_traceback_names_functions()
  local err = raised [[
local nn = require "deepc.nn"
local function deep(n)
  local x = n == 0 and nn.Linear(2, 2)(dc.ones "f32[3, 3]") or deep(n - 1)
  return x
end
local x = deep(2)]]
  lu.assertStrContains(err.traceback, "stack traceback:\n\tdeepc/nn/")
  lu.assertStrContains(err.traceback, "train.lua:4: in local 'deep'\n\ttrain.lua:7: in main chunk\n")
  lu.assertStrContains(err.traceback, "\n\t[C]: in function 'pcall'\n")
  err = raised 'local x = ("x"):gsub("x", function() dc.zeros "f32[-1]" end)'
  lu.assertStrContains(err.traceback, "\n\t[C]: in function 'string.gsub'\n\ttrain.lua:2: in ")
  local function deep(n)
    local e = n == 0 and raised 'dc.zeros "f32[-1]"' or deep(n - 1)
    return e
  end
  local text = deep(60).traceback
  local lines, skipped = select(2, text:gsub("\n", "")), text:match "skipping (%d+) levels"
  lu.assertEquals(lines, 10 + 1 + 11)
  lu.assertEquals(skipped + 1, tonumber((deep(61).traceback:match "skipping (%d+) levels")))
  text = deep(30000).traceback
  lu.assertEquals(select(2, text:gsub("\n", "")), 10 + 1)
  lu.assertStrContains(text, "skipping more than 16362 levels")
end

function TestValues:test_methods_of_strings()
  local err = raised 'dc.zeros("f32[64, 10]"):sum(3)'
  lu.assertEquals(err:upper():match "SUM", "SUM")
  lu.assertEquals(#err:gsub("%[DC%d+", ""), #tostring(err) - #"[DC0103")
  lu.assertEquals("failed: " .. err, "failed: " .. tostring(err))
  lu.assertEquals(err .. 1, tostring(err) .. "1")
  lu.assertEquals(#err, #tostring(err))
  lu.assertNil(err.path)
end

function TestValues:test_identity()
  local err = raised 'dc.zeros("f32[64, 10]"):sum(3)'
  local again = raised 'dc.zeros("f32[64, 10]"):sum(3)'
  lu.assertTrue(err == err)
  lu.assertFalse(err == again)
  for _, level in ipairs { 0, 1, 2 } do
    local _, other = pcall(error, err, level)
    lu.assertTrue(rawequal(other, err))
  end
  local _, handled = xpcall(error, function(e) return e end, err)
  lu.assertTrue(rawequal(handled, err))
  local _, resumed = coroutine.resume(coroutine.create(function() error(err) end))
  lu.assertTrue(rawequal(resumed, err))
  local closed
  local co = coroutine.create(function()
    local _ <close> = setmetatable({}, { __close = function(_, e) closed = e end })
    error(err)
  end)
  coroutine.resume(co)
  coroutine.close(co)
  lu.assertTrue(rawequal(closed, err))
end

function TestValues:test_raised_in_a_coroutine()
  local err = raised [[
local co = coroutine.wrap(function()
  local _ = dc.zeros "f32[2]" + dc.zeros "f32[3]"
end)
co()]]
  lu.assertEquals(err.code, "DC0301")
  lu.assertEquals(err.at, "train.lua:3")
  lu.assertStrContains(err.traceback, "train.lua:3")
end

function TestValues:test_operands()
  local err = raised [[
local a = dc.zeros "f32[2]"
local _ = a + dc.zeros "f32[3]"]]
  lu.assertEquals(err.operands, {
    { role = "left", type = "f32[2]", origin = "made at train.lua:2" },
    { role = "right", type = "f32[3]", origin = "made at train.lua:3" },
  })
  lu.assertEquals(raised 'dc.zeros("f32[2]"):sum(3)'.operands,
    { { role = "of", type = "f32[2]", origin = "made at train.lua:2" } })
  lu.assertEquals(raised 'dc.zeros "f32["'.operands, {})
end

function TestValues:test_expected_and_got()
  local err = raised [[
local f = dc.fn("f(x: f32[2]) -> f32[]", function(x) return x:sum() end)
f(dc.ones "f32[3]")]]
  lu.assertEquals(err.expected, "f32[2]")
  lu.assertEquals(err.got, "f32[3]")
  lu.assertEquals(err.at, "train.lua:3")
  lu.assertEquals(err.code, "DC0404")
end

function TestValues:test_layer_path_is_right_after_a_caught_error()
  local err = raised [[
local bad, good = nn.Linear(3, 3), nn.Linear(2, 2)
local x = dc.ones "f32[1, 2]"
assert(not pcall(bad, x))
good(x)
local _ = x + dc.ones "f32[3]"]]
  lu.assertEquals(err.at, "train.lua:6")
  lu.assertNil(err.path)
end

function TestValues:test_place_of_a_chain_in_stdlib_called_last()
  local err = raised [[
local f
f = dc.fn("f(x: f32[4, 3], y: i32[5]) -> f32[]",
  function(x, y)
    return nn.cross_entropy(x, y)
  end)]]
  lu.assertEquals(err.at, "train.lua:5")
end

function TestValues:test_number_of_the_system()
  local absent = raised 'dc.load "/no/such/file"'
  local refused = raised 'dc.save("/no/such/folder/x", { x = dc.ones "f32[1]" })'
  lu.assertEquals(absent.code, "DC0801")
  lu.assertEquals(absent.errno, 2) -- ENOENT
  lu.assertEquals(refused.code, "DC0801")
  lu.assertEquals(refused.errno, 2)
  lu.assertNil(raised 'return dc.ones "f32[2]" + dc.ones "f32[3]"'.errno)
end

function TestValues:test_plain_lua_errors_pass_through()
  local err = raised 'dc.fn("f(x: f32[4]) -> f32[]", function(x) error("mine", 0) end)'
  lu.assertEquals(err, "mine")
  -- and the trace is over
  lu.assertEquals((dc.ones "f32[2]" + 1):totable(), { 2, 2 })
end
