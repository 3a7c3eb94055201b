-- deepc's side of bench/cnn.py.
local nn = require "deepc.nn"
package.path = (arg[0]:match "^(.*)/" or ".") .. "/?.lua;" .. package.path
local frame = require "frame"

local make = {
  conv = function(l) return nn.Conv2d(l.inputs, l.outputs, l.window, { padding = l.padding }) end,
  linear = function(l) return nn.Linear(l.inputs, l.outputs) end,
  relu = function() return nn.ReLU() end,
  pool = function() return nn.MaxPool2d(2) end,
  flatten = function() return nn.Flatten() end,
}

return frame.serve(function(case, inputs)
  local layers = {}
  for i, l in ipairs(case.layers) do
    local layer = make[l.kind](l)
    if l.inputs then
      layer.weight:set(inputs["w" .. i - 1])
      layer.bias:set(inputs["b" .. i - 1])
    end
    layers[i] = layer
  end
  local net = nn.Sequential(layers)
  return frame.training(case, net, inputs, function(x)
    return x:cast "f32":reshape(case.batch, 1, 28, 28) / 255
  end)
end)
