-- The network of the tutorial (docs/tutorial.md): from images of 28 x 28 bytes to ten logits.

local nn = require "deepc.nn"

return function()
  return nn.Sequential {
    function(x) return x:cast "f32" / 255 end,
    nn.Flatten(),
    nn.Linear(784, 128),
    nn.ReLU(),
    nn.Linear(128, 10),
  }
end
