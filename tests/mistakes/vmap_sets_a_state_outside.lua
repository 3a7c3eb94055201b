local dc = require "deepc"

local seen = dc.state("f32[]", 0)
local count = dc.vmap(function(a)
  seen:set(seen + a)
  return a * 2
end)
print(count(dc.ones "f32[3]"))
