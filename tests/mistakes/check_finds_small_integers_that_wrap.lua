-- run: deepc check
local dc = require "deepc"
local f = dc.fn("f(x: u8[28, 28]) -> f32[28, 28]", function(x)
  return (x - 128):cast "f32" / 128
end)
f(dc.zeros "u8[28, 28]")
print(dc.zeros "u8[3]" + 256)
