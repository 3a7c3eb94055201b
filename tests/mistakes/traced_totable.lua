local dc = require "deepc"

local f = dc.fn("f(x: f32[3]) -> f32[]", function(x)
  local total = 0
  for _, v in ipairs(x:totable()) do
    total = total + v
  end
  return total
end)
