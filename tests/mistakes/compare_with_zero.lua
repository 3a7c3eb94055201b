local dc = require "deepc"

local x = dc.ones "f32[]"
while x > 0 do
  x = x - 1
end
