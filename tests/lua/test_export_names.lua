-- Names of parameters in exported functions: paths in the whole network, whatever part of it the function calls, and
-- whatever was called by itself before.
local lu = require "luaunit"
local dc, nn = require "deepc", require "deepc.nn"

local path = os.tmpname()

local Block = nn.class "Block"
function Block:init(n) self.dense = nn.Linear(n, n) end
function Block:forward(x) return self.dense(x) end

local Net = nn.class "Net"
function Net:init()
  self.encoder = nn.Sequential { Block(4), Block(4) }
  self.list = {}
  for i = 1, 2 do self.list[i] = Block(4) end
end
function Net:forward(x)
  x = self.encoder(x)
  for _, block in ipairs(self.list) do x = block(x) end
  return x
end

local function names(body)
  local f = dc.fn("f(x: f32[n, 4]) -> f32[n, 4]", body)
  f:export(path, { n = 1 })
  local list = {}
  for name in pairs(dc.load(path)) do list[#list + 1] = name end
  table.sort(list)
  os.remove(path)
  return list
end

TestExportNames = {}

function TestExportNames:test_parts_of_a_network()
  local net = Net()
  local encoder = { "net.encoder.1.dense.bias", "net.encoder.1.dense.weight", "net.encoder.2.dense.bias",
    "net.encoder.2.dense.weight" }
  local list = { "net.list.1.dense.bias", "net.list.1.dense.weight", "net.list.2.dense.bias",
    "net.list.2.dense.weight" }
  lu.assertEquals(names(function(x) return net.encoder(x) end), encoder)
  lu.assertEquals(names(function(x)
    for _, block in ipairs(net.list) do x = block(x) end
    return x
  end), list)
  table.move(list, 1, #list, #encoder + 1, encoder)
  lu.assertEquals(names(function(x) return net(x) end), encoder)
end

function TestExportNames:test_parts_that_were_called_before()
  local blocks = { Block(4), Block(4) }
  for _, block in ipairs(blocks) do
    lu.assertEquals(#names(function(x) return block(x) end), 2)
  end
  local net = nn.Sequential(blocks)
  lu.assertEquals(names(function(x) return net(x) end), { "net.1.dense.bias", "net.1.dense.weight", "net.2.dense.bias",
    "net.2.dense.weight" })
end

-- A part is in the layer that had it last; that it is in one keeps neither alive.
function TestExportNames:test_parts_that_move()
  local first = Net()
  local part = first.encoder
  local second = nn.Sequential { part }
  first.encoder = nn.ReLU()
  lu.assertEquals(names(function(x) return second(x) end)[1], "second.1.1.dense.bias")
  local gone = setmetatable({ Net() }, { __mode = "v" })
  part = gone[1].encoder
  collectgarbage()
  collectgarbage()
  lu.assertNil(gone[1])
  lu.assertEquals(#names(function(x) return part(x) end), 4)
end
