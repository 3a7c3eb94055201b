-- Makes clothes.dcfn of what train.lua has trained: a function for programs in C (docs/tutorial.md).

local dc = require "deepc"
local net = require "net"()

dc.load("clothes.safetensors", { model = net }, { partial = true })

local classify = dc.fn("classify(x: u8[n, 28, 28]) -> f32[n, 10]", function(x)
  return net(x):softmax(2)
end)
classify:export("clothes.dcfn", { n = 1 }) -- for one image at a time

-- Images of the test set, a file each, as bytes of pixels.
local data = require "deepc.data"
local _, test = data.fashion_mnist { dir = arg[1] }
for i, name in ipairs { "boot", "pullover", "trousers" } do
  local f = assert(io.open(name .. ".raw", "wb"))
  f:write(test.x[i]:bytes())
  f:close()
end
