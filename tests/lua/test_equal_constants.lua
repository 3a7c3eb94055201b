-- Gradients for tensors that are made by rule: two of equal values are two tensors.
local lu = require "luaunit"
local dc = require "deepc"

TestEqualConstants = {}

local function same(x)
  local a = dc.full("f32[3]", 2)
  local y = (x * dc.full("f32[3]", 2) + a * x * 3 + x * 2):sum()
  return dc.grad(y, a), dc.grad(y, x)
end

function TestEqualConstants:test_in_a_trace()
  local a, x = dc.fn("f(x: f32[3]) -> f32[3], f32[3]", same)(dc.tensor { 1, 2, 3 })
  lu.assertEquals({ a:totable(), x:totable() }, { { 3, 6, 9 }, { 10, 10, 10 } })
end

function TestEqualConstants:test_outside()
  local a, x = same(dc.tensor { 1, 2, 3 })
  lu.assertEquals({ a:totable(), x:totable() }, { { 3, 6, 9 }, { 10, 10, 10 } })
end

function TestEqualConstants:test_zeros_ones_and_positions()
  local f = dc.fn("f(x: f32[3]) -> f32[3], f32[3], f32[3]", function(x)
    local z, o, i = dc.zeros "f32[3]", dc.ones "f32[3]", dc.iota "f32[3]"
    local y = (x * (z + 1) + dc.zeros "f32[3]" + o * 2 + dc.ones "f32[3]" + i * 3 + dc.iota "f32[3]"):sum()
    return table.unpack(dc.grad(y, { z, o, i }))
  end)
  local z, o, i = f(dc.tensor { 4, 5, 6 })
  lu.assertEquals({ z:totable(), o:totable(), i:totable() }, { { 4, 5, 6 }, { 2, 2, 2 }, { 3, 3, 3 } })
end

-- What a body reads of outside, also where nothing else tells it from a constant of the body.
function TestEqualConstants:test_read_in_loops_and_branches()
  local f = dc.fn("f(x: f32[4, 2]) -> f32[2], f32[2]", function(x)
    local w = dc.full("f32[2]", 3)
    local sum = dc.scan(function(c, v) return c + v * w end, dc.zeros "f32[2]", x):sum()
    local side = dc.cond(sum:gt(0), function() return (w * 2 + dc.full("f32[2]", 3)):sum() end, function()
      return sum
    end)
    return dc.grad(sum, w, { unused = "zero" }), dc.grad(side, w, { unused = "zero" })
  end)
  local a, b = f(dc.tensor { { 1, 2 }, { 3, 4 }, { 5, 6 }, { 7, 8 } })
  lu.assertEquals({ a:totable(), b:totable() }, { { 16, 20 }, { 2, 2 } })
end
