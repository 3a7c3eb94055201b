local dc = require "deepc"

local w = dc.param("f32[]", 1)
local total = dc.zeros "f32[]"
for _ = 1, 20000 do
  total = total + w
end
