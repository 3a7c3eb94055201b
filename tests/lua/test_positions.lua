-- Positions and integers beyond 32 bits are named as they are, or refused.
local lu = require "luaunit"
local dc = require "deepc"

TestPositions = {}

function TestPositions:test_an_index_is_named_as_large_as_it_is()
  local x = dc.ones "f32[3, 2]"
  for _, case in ipairs { { "i64", 4294967297 }, { "i64", -4294967297 }, { "u32", 4294967295 }, { "i8", -3 } } do
    local t, value = case[1], case[2]
    local text = ("index %d outside 0..2 of axis 1 at position 2"):format(value)
    local i = dc.tensor({ 0, value }, t)
    lu.assertErrorMsgContains(text, function() return x:take(i) end)
    local f = dc.fn(("f(i: %s[2]) -> f32[2, 2]"):format(t), function(i) return x:take(i) end) -- luacheck: ignore 431
    lu.assertErrorMsgContains(text, f, i)
    lu.assertErrorMsgContains(text, f, i)
  end
end

-- Of a lazy tensor, which takes no memory.
function TestPositions:test_positions_beyond_i32_are_refused()
  local x = dc.zeros "u8[2200000000]"
  for _, name in ipairs { "argmax", "argmin" } do
    lu.assertErrorMsgContains("axis 1 of u8[2200000000] has 2200000000 elements; positions are i32", function()
      return x[name](x, 1)
    end)
  end
  lu.assertErrorMsgContains("2200000000 integers; 2147483647 are the most", function()
    return dc.ones "f32[3]":take(x)
  end)
end
