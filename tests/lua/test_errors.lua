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

function TestMessages:test_matmul_in_a_layer_of_a_typed_function()
  reads([[
local net = nn.Sequential { nn.ReLU(), nn.Linear(784, 10) }
dc.fn("step(img: f32[batch=32, 28, 28]) -> f32[32, 10]",
  function(img)
    return net(img)
  end)]], [=[
train.lua:5: matmul: inner dims differ: axis 3 = 28 against axis 1 = 784
    left   f32[batch=32, 28, 28]   made at train.lua:5
    right  f32[784, 10]            parameter net.2.weight
    in     net.2 (nn.Linear 784 -> 10)
  hint: 28 * 28 = 784; :flatten(2) first?
  [DC0301; deepc explain DC0301]]=])
end

function TestMessages:test_argument_of_a_typed_function()
  reads([[
dc.fn("step(img: f32[32, 28, 28]) -> f32[]", function(img)
  local y = img:matmul(dc.zeros "f32[784, 10]")
  return y:sum()
end)]], [=[
train.lua:3: matmul: inner dims differ: axis 3 = 28 against axis 1 = 784
    left   f32[32, 28, 28]   argument 'img' of step, train.lua:2
    right  f32[784, 10]      made at train.lua:3
  hint: 28 * 28 = 784; :flatten(2) first?
  [DC0301; deepc explain DC0301]]=])
end

function TestMessages:test_mul_for_product()
  reads([[
local x = dc.zeros "f32[64, 784]"
local y = x * dc.zeros "f32[784, 10]"]], [=[
train.lua:3: mul: axis 1: 64 against 784
    left   f32[64, 784]   made at train.lua:2
    right  f32[784, 10]   made at train.lua:3
  hint: * is element-wise, the product is x:matmul(w)
  [DC0301; deepc explain DC0301]]=])
end

function TestMessages:test_index_0()
  reads('local a = dc.zeros "f32[10, 3]"; local _ = a[0]', [=[
train.lua:2: index: index 0 outside 1..10 of axis 1 of f32[10, 3]
    of     f32[10, 3]   made at train.lua:2
  hint: positions start at 1, values of argmax and labels at 0
  [DC0106; deepc explain DC0106]]=])
end

function TestMessages:test_axis_0()
  reads('dc.zeros("f32[64, 10]"):sum(0)', [=[
train.lua:2: sum: axis 0 of f32[64, 10]: axes are 1 to 2, -1 is the last, or a name
  [DC0103; deepc explain DC0103]]=])
end

function TestMessages:test_dtypes_never_mix()
  reads('local _ = dc.zeros "f32[2]" + dc.zeros "i32[2]"', [=[
train.lua:2: add: dtypes differ: f32[2] and i32[2]
    left   f32[2]   made at train.lua:2
    right  i32[2]   made at train.lua:2
  hint: dtypes never mix; :cast "f32" converts
  [DC0201; deepc explain DC0201]]=])
end

function TestMessages:test_fraction_beside_integers()
  reads('local _ = dc.zeros "i32[2]" + 0.5', [=[
train.lua:2: add: 0.5 does not fit i32
  [DC0203; deepc explain DC0203]]=])
end

function TestMessages:test_value_of_a_traced_tensor()
  reads([[
dc.fn("step(x: f32[4]) -> f32[]", function(x)
  local loss = x:sum()
  print(loss:item())
  return loss
end)]], [=[
train.lua:4: item: f32[] has no value while 'step' is traced
    of     f32[]   made at train.lua:3
  hint: return it
  [DC0602; deepc explain DC0602]]=])
end

function TestMessages:test_gradient_of_a_compiled_result()
  reads([[
local w = dc.param("f32[4]", 1)
local forward = dc.fn("forward(x: f32[4]) -> f32[]", function(x)
  return (x * w):sum()
end)
dc.grad(forward(dc.ones "f32[4]"), w)]], [=[
train.lua:6: grad: loss is a result of compiled 'forward' and carries no graph
    loss   f32[]   result of forward, train.lua:3
  hint: take the gradient inside it
  [DC0502; deepc explain DC0502]]=])
end

function TestMessages:test_loss_that_does_not_depend_on_a_parameter()
  reads([[
local net = nn.Linear(2, 2)
net:parameters()
dc.fn("step(x: f32[3]) -> f32[2, 2]", function(x)
  local g = dc.grad(x:sum(), net.weight)
  return g
end)]], [=[
train.lua:5: grad: loss does not depend on net.weight
    loss   f32[]   made at train.lua:5
  hint: { unused = "zero" } gives zeros
  [DC0503; deepc explain DC0503]]=])
end

function TestMessages:test_names_of_dims()
  reads('local _ = dc.zeros "f32[batch=4]" + dc.zeros "f32[time=4]"', [=[
train.lua:2: add: axis 1: 'batch' against 'time'
    left   f32[batch=4]   made at train.lua:2
    right  f32[time=4]    made at train.lua:2
  hint: x:reshape "[n=3]" gives other names
  [DC0305; deepc explain DC0305]]=])
end

function TestMessages:test_labels_of_floats()
  reads([[
local y = dc.zeros "f32[64]"
nn.cross_entropy(dc.zeros "f32[64, 10]", y)]], [=[
train.lua:3: cross_entropy: labels are f32[64]; class numbers are integers from 0
    labels f32[64]   made at train.lua:2
  hint: dc.tensor(t, "i32[64]")
  [DC0202; deepc explain DC0202]]=])
end

function TestMessages:test_result_that_is_not_as_declared()
  reads([[
dc.fn("f(x: f32[4]) -> f32[]", function(x)
  return x * 2
end)]], [=[
train.lua:2: f: result 1 is f32[4], declared f32[]
    result f32[4]   made at train.lua:3
  hint: loss:mean() or :sum()
  [DC0405; deepc explain DC0405]]=])
end

TestFields = {}

function TestFields:test_names_from_elsewhere()
  local cases = {
    view = ":reshape",
    unsqueeze = ":reshape",
    backward = "opt:step(loss) takes the gradients, or dc.grad(loss, params)",
  }
  for name, hint in pairs(cases) do
    reads(('local x = dc.zeros "f32[2]"; x:%s(1)'):format(name),
      ("train.lua:2: a tensor has no '%s'\n  hint: %s\n  [DC0110; deepc explain DC0110]"):format(name, hint))
  end
end

function TestFields:test_module_has_no_other_names()
  reads("local _ = dc.matmull", "train.lua:2: deepc has no 'matmull'\n  [DC0110; deepc explain DC0110]")
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
  lu.assertEquals(raised 'dc.zeros("f32[2]"):sum(3)'.operands, {})
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

function TestValues:test_plain_lua_errors_pass_through()
  local err = raised 'dc.fn("f(x: f32[4]) -> f32[]", function(x) error("mine", 0) end)'
  lu.assertEquals(err, "mine")
  -- and the trace is over
  lu.assertEquals((dc.ones "f32[2]" + 1):totable(), { 2, 2 })
end
