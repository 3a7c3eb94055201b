local dc = require "deepc"

local image = dc.zeros "u8[2, 2]"
print(image + 256)
