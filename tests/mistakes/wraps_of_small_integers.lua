-- run: script
local dc = require "deepc"
local image, sound = dc.full("u8[2, 2]", 100), dc.full("i16[4]", 20000)

local centre = dc.fn("centre(x: u8[2, 2]) -> f32[2, 2]", function(x)
  return (x - 128):cast "f32"
end)
centre(image)
for _ = 1, 3 do
  print(image[{ 1, 1 }] - 128)
end
print((-image)[{ 1, 1 }])
print((100 - image)[{ 1, 1 }], (128 - image)[{ 1, 1 }])
print((image + 200)[{ 1, 1 }], (sound + 20000)[1])
print((sound - -20000)[1])
print((-20000 - sound)[1])
-- These are as they should be: what is cast first, a complement, what is counted from 1, a mask times 255.
print((image:cast "i16" - 128)[{ 1, 1 }], (255 - image)[{ 1, 1 }], (image - 1)[{ 1, 1 }], (image + 10)[{ 1, 1 }])
print((1 - image:gt(99):cast "u8")[{ 1, 1 }], (image:gt(99):cast "u8" * 255)[{ 1, 1 }], (-sound)[1], (sound - 5000)[1])
print((image - image)[{ 1, 1 }], (image / 128)[{ 1, 1 }], (image & 15)[{ 1, 1 }], (image:cast "u32" - 2)[{ 1, 1 }])
print((image - 0)[{ 1, 1 }], (100 - sound)[1], image:lerp(image, 1)[{ 1, 1 }])
