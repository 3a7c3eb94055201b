-- nn.RNN, LSTM and GRU over sequences and batches of bounded sizes give what functions of fixed sizes give.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"

-- Types of x, and of lengths where they are given; T and B are the sizes.
local signatures = {
  { "f32[T <= 9, 3, 4]" }, { "f32[9, B <= 3, 4]" }, { "f32[T <= 9, B <= 3, 4]" }, { "f32[2 <= T <= 9, time=3, 4]" },
  { "f32[T <= 9, 4]" }, { "f32[T <= 9, 3, 4]", "i32[3]" }, { "f32[T <= 9, B <= 3, 4]", "i32[B]" },
}
local function type_of(text, t, b) return (text:gsub("[%d<= ]*([TB]) <= %d", "%1"):gsub("T", t):gsub("B", b)) end

local function with(net, lengths)
  return function(x, l)
    local y, last = net(x, nil, lengths and { lengths = l } or nil)
    return y, type(last) == "table" and last.h or last, dc.grad((y * y):sum(), x)
  end
end

-- The signature has as many parameters as the function.
local function define(types, body)
  if types[2] then
    return dc.fn(("f(x: %s, l: %s)"):format(types[1], types[2]), body)
  end
  return dc.fn(("f(x: %s)"):format(types[1]), function(x) return body(x) end)
end

local function compare(net, types)
  local f = define(types, with(net, types[2]))
  for _, size in ipairs { { 9, 3 }, { 2, 3 }, { 5, 2 }, { 7, 1 }, { 9, 2 } } do
    local t, b = size[1], size[2]
    local fixed = { type_of(types[1], t, b), types[2] and type_of(types[2], t, b) }
    local args = { dc.rand(fixed[1], { low = -1, high = 1 }) }
    if types[2] then
      args[2] = (dc.iota(#dc.zeros(fixed[2])) + 1) % t + 1
    end
    local found, want = { f(table.unpack(args)) }, { define(fixed, with(net, types[2]))(table.unpack(args)) }
    for k = 1, 3 do
      lu.assertEquals(found[k].shape, want[k].shape)
      lu.assertTrue((found[k] - want[k]):abs():max():item() < 1e-5, types[1])
    end
  end
  lu.assertEquals(#f:info(), 1)
end

TestRnnSizes = {}

for _, kind in ipairs { "RNN", "LSTM", "GRU" } do
  TestRnnSizes["test_" .. kind] = function()
    for _, options in ipairs { { layers = 2 }, { bidirectional = true } } do
      local net = nn[kind](4, 5, options)
      for _, types in ipairs(signatures) do
        compare(net, types)
      end
    end
  end
end
