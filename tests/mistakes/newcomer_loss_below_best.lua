local dc = require "deepc"

local best = dc.full("f32[]", 1)
for _, value in ipairs { 2, 0.5 } do
  local loss = dc.full("f32[]", value)
  if loss < best then
    best = loss
  end
end
