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
