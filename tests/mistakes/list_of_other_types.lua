local dc = require "deepc"

local f = dc.fn("f(list: {f32[n]}) -> f32[n]", function(list)
  local sum = list[1]
  for i = 2, #list do
    sum = sum + list[i]
  end
  return sum
end)
f { dc.ones "f32[3]", dc.ones "f32[4]" }
