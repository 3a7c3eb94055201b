local dc = require "deepc"

-- A group for each image with its own kernels.
local f = dc.fn("f(x: f32[n <= 16, 3, 8, 8], k: f32[n, 4, 3, 3, 3])", function(x, k)
  return dc.vmap(function(image, kernels) return dc.conv2d(image:reshape(1, 3, 8, 8), kernels) end)(x, k)
end)

print(f(dc.zeros "f32[2, 3, 8, 8]", dc.zeros "f32[2, 4, 3, 3, 3]"))
