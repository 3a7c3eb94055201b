-- deepc's side of bench/mlp.py.
local nn = require "deepc.nn"
package.path = (arg[0]:match "^(.*)/" or ".") .. "/?.lua;" .. package.path
local frame = require "frame"

return frame.serve(function(case, inputs)
  local sizes = case.sizes
  local layers = { nn.Flatten() }
  for i = 1, #sizes - 1 do
    local layer = nn.Linear(sizes[i], sizes[i + 1])
    layer.weight:set(inputs["w" .. i - 1])
    layer.bias:set(inputs["b" .. i - 1])
    layers[#layers + 1] = layer
    if i < #sizes - 1 then
      layers[#layers + 1] = nn.ReLU()
    end
  end
  local net = nn.Sequential(layers)
  return frame.training(case, net, inputs, function(x)
    return x:cast "f32" / 255
  end)
end)
