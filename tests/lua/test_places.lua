-- Which line of the script an error names, and which line a tensor is said to be made at: the first
-- script line outside deepc's own files, through chains, tail calls, library functions, coroutines.
local lu = require "luaunit"
local dc = require "deepc"

local head = [[
local dc = require "deepc"; local nn = require "deepc.nn"; local optim = require "deepc.optim"
local data = require "deepc.data"; local m, v = dc.zeros "f32[2, 3]", dc.zeros "f32[4]"
]]

-- Runs a script called place.lua, whose first line is number 3, and returns its error value.
local function raised(text)
  local chunk = assert(load(head .. text, "@place.lua"))
  local ok, err = pcall(chunk)
  lu.assertFalse(ok, text)
  lu.assertIsTable(err, tostring(err))
  return err
end

local function at(line, text)
  lu.assertEquals(raised(text).at, "place.lua:" .. line, text)
end

TestLines = {}

function TestLines:test_a_chain_counts_as_its_first_line()
  at(3, [[
local _ = m
  :abs()
  :matmul(v)
  :sum()]])
  at(4, [[
local _ =
  m:abs()
  :matmul(v)]])
end

function TestLines:test_an_operator_counts_as_its_own()
  at(4, [[
local _ = m
  + v
  + m]])
  at(4, [[
local _ = m +
  m * v]])
  at(5, [[
local t = m
local _ = -t
  + v]])
end

function TestLines:test_arguments_over_several_lines()
  at(3, [[
local _ = dc.where(
  m,
  v,
  0)]])
end

function TestLines:test_indexing()
  at(4, "local _ = m[1]\n_ = m[3]")
  at(4, "local x = m\nlocal _ = #x + x.shapes")
end

TestTailCalls = {}

function TestTailCalls:test_of_bindings()
  at(4, [[
local function f(x)
  return x:matmul(v)
end
f(m)]])
  at(4, [[
local function f(x)
  return dc.add(x, v)
end
return f(m)]])
end

function TestTailCalls:test_of_functions_of_the_library()
  at(4, [[
local function loss(x)
  return nn.cross_entropy(x, v)
end
loss(m)]])
  at(4, [[
local function make()
  return nn.Linear(0, 3)
end
make()]])
  at(4, [[
local function make()
  return optim.SGD({})
end
make()]])
  at(5, [[
local set = data.set(v, v)
local function batches()
  return set:batches { size = 3 }
end
batches()]])
end

function TestTailCalls:test_of_layers()
  at(5, [[
local net = nn.Sequential { nn.Linear(3, 2), nn.Linear(3, 2) }
local function f(x)
  return net(x)
end
f(m)]])
end

function TestTailCalls:test_in_a_typed_function()
  at(5, [[
local net = nn.Linear(3, 2)
dc.fn("f(x: f32[2, 4]) -> f32[2, 2]", function(x)
  return net(x)
end)]])
  at(6, [[
local w = dc.param "f32[]"
local opt = optim.SGD { w }
dc.fn("f(x: f32[2, 4]) -> ()", function(x)
  return opt:step(x)
end)]])
end

function TestTailCalls:test_of_functions_of_the_script()
  -- the caller is gone, but the line is that of the function which did it
  at(4, [[
local function inner(x)
  local y = x + v
  return y
end
local function outer(x)
  return inner(x)
end
outer(m)]])
end

function TestTailCalls:test_of_a_forward()
  local err = raised [[
local Block = nn.class "Block"
function Block:init() self.lin = nn.Linear(3, 2) end
function Block:forward(x)
  return self.lin(x + 1)
end
local block = Block()
local function f(x)
  return block(x)
end
f(dc.zeros "f32[2, 4]")]]
  lu.assertEquals(err.at, "place.lua:6")
  lu.assertEquals(err.path, "block.lin (nn.Linear 3 -> 2)")
end

TestElsewhere = {}

function TestElsewhere:test_library_functions_of_lua()
  at(4, "local list = { 1, 2 }\ntable.sort(list, function(a, b) return m[a + 2] and b end)")
  at(3, "local _ = ('x'):gsub('x', function() return m[3] end)")
  at(3, "local ok, e = pcall(dc.add, m, v); assert(not ok); error(e, 0)")
  at(4, "local co = coroutine.wrap(function()\n  local _ = m + v\nend)\nco()")
end

function TestElsewhere:test_a_coroutine_without_a_function_of_the_script()
  at(4, "local co = coroutine.wrap(dc.add)\nco(m, v)")
  at(3, "local co = coroutine.wrap(dc.add); co(m, v)")
end

function TestElsewhere:test_through_pcall_in_a_trace()
  at(5, [[
dc.fn("f(x: f32[2, 3]) -> f32[2, 3]", function(x)
  local y = x * 2
  local ok, e = pcall(dc.add, y, v)
  if not ok then error(e) end
  return y
end)]])
end

function TestElsewhere:test_a_layer_as_the_body()
  -- no line of the script but the definition
  at(4, [[
local net = nn.Linear(3, 2)
dc.fn("f(x: f32[2, 4]) -> f32[2, 2]", net)]])
end

function TestElsewhere:test_a_layer_that_yields()
  local nn = require "deepc.nn"
  local Slow = nn.class "Slow"
  function Slow:forward(x)
    coroutine.yield "half"
    return x + 1
  end
  local net = nn.Sequential { Slow() }
  local co = coroutine.wrap(function(x) return net(x) end)
  lu.assertEquals(co(dc.ones "f32[]"), "half")
  lu.assertEquals(co():item(), 2)
end

-- The layer is the one that runs, whatever raised and was caught, wherever it was resumed.
TestLayersOpen = {}

function TestLayersOpen:setUp()
  local nn = require "deepc.nn"
  local Outer = nn.class "Outer"
  function Outer:init() self.inner = nn.Linear(3, 2) end
  self.Outer, self.forward = Outer, function(f) Outer.forward = f end
end

local function path_of(f, ...)
  local ok, err = pcall(f, ...)
  lu.assertFalse(ok)
  lu.assertIsTable(err, tostring(err))
  return err.path
end

function TestLayersOpen:test_after_an_error()
  local net, bad = self.Outer(), dc.zeros "f32[2, 4]"
  local fails = function() return bad + dc.zeros "f32[2, 3]" end
  self.forward(function(l, x)
    lu.assertStrContains(path_of(l.inner, x), ".inner (nn.Linear 3 -> 2)")
    lu.assertStrContains(path_of(fails), "(Outer)")
    return fails()
  end)
  lu.assertStrContains(path_of(net, bad), "(Outer)")
  lu.assertNil(path_of(fails))
  self.forward(function(l, x) return l.inner(x) end)
  lu.assertStrContains(path_of(net, bad), ".inner (nn.Linear 3 -> 2)")
  lu.assertNil(path_of(fails))
end

function TestLayersOpen:test_in_coroutines()
  local net, bad = self.Outer(), dc.zeros "f32[2, 4]"
  local fails = function() return bad + dc.zeros "f32[2, 3]" end
  self.forward(function(_, x)
    if x == "inside" then
      lu.assertNil(path_of(coroutine.wrap(fails)))
    else
      coroutine.yield()
    end
    return fails()
  end)
  local function call(x) return net(x) end
  local first, second, third = coroutine.create(call), coroutine.create(call), coroutine.create(call)
  lu.assertTrue(coroutine.resume(first, "yield"))
  lu.assertTrue(coroutine.resume(second, "yield"))
  lu.assertTrue(coroutine.resume(third, "yield"))
  lu.assertNil(path_of(fails)) -- they are suspended in their layers
  local ok, err = coroutine.resume(first)
  lu.assertFalse(ok)
  lu.assertStrContains(err.path, "(Outer)")
  coroutine.close(second) -- closes the layer's call, too
  lu.assertNil(path_of(fails))
  lu.assertStrContains(path_of(net, "inside"), "(Outer)")
  lu.assertNil(path_of(fails))
  ok, err = coroutine.resume(third)
  lu.assertFalse(ok)
  lu.assertStrContains(err.path, "(Outer)")
end

-- Deep in a recursion an operation costs what it costs elsewhere, and places are right.
TestDeep = {}

local function deep(n, f, ...)
  if n == 0 then
    return f(...)
  end
  local a, b = deep(n - 1, f, ...)
  return a, b
end

function TestDeep:test_operations()
  local x = dc.ones "f32[3]"
  lu.assertEquals(deep(30000, function()
    local y = x
    for _ = 1, 500 do
      y = y * 0.5 + 1
    end
    return y
  end):totable(), { 2, 2, 2 })
end

function TestDeep:test_places()
  local err = raised [[
local net = nn.Linear(3, 2)
local function down(n)
  local y = n > 0 and down(n - 1) or net(v)
  return y
end
down(20000)]]
  lu.assertEquals(err.at, "place.lua:5")
  lu.assertEquals(err.path, "net (nn.Linear 3 -> 2)")
end

function TestDeep:test_one_at_each_level()
  local function down(x, n)
    if n == 0 then
      return x
    end
    local y = down(x + 1, n - 1)
    return y - 1
  end
  lu.assertEquals(down(dc.zeros "f32[2]", 5000):totable(), { 0, 0 })
  local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x) return down(x, 2000) end)
  lu.assertEquals(f(dc.ones "f32[2]"):totable(), { 1, 1 })
end

local function overflows(f, ...)
  local ok, err = pcall(f, ...)
  lu.assertFalse(ok)
  lu.assertStrContains(tostring(err), "stack overflow")
  lu.assertStrMatches(tostring(err):match "^[^\n]*", ".*test_places%.lua:%d+.*")
end

function TestDeep:test_endless_recursion()
  local x = dc.ones "f32[2]"
  local function rec(a) return rec(a) + 1 end
  local function busy(a)
    local b = busy(a + 1)
    return b
  end
  local sig = "f(a: f32[n]) -> f32[n]"
  overflows(rec, x)
  overflows(busy, x)
  overflows(function() dc.fn(sig, function(a) return rec(a) end)(x) end)
  overflows(function() dc.fn(sig, function(a) return busy(a) end)(x) end)
  lu.assertEquals((x + 1):totable(), { 2, 2 }) -- and all is well
end

TestOrigins = {}

function TestOrigins:test_where_operands_were_made()
  local err = raised [[
local a = dc.ones "f32[2]"
local function make()
  return dc.zeros "f32[3]"
end
local b = make()
  :abs()
local _ = a + b]]
  lu.assertEquals(err.operands[1].origin, "made at place.lua:3")
  lu.assertEquals(err.operands[2].origin, "made at place.lua:7")
end
