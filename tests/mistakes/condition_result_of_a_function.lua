-- run: script
local dc = require "deepc"

local is_done = dc.fn("is_done(x: f32[3]) -> bool[]", function(x) return x:lt(1):all() end)
local x = dc.tensor { 8, 4, 2 }
for step = 1, 3 do
  if is_done(x) then
    print("done after " .. step)
    break
  end
  x = x / 2
end
