-- deepc's side of bench/mlp.py.
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
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
  local rule = case.rule == "adam" and optim.Adam or optim.SGD
  local opt = rule(net:parameters(), { lr = case.rate })
  local step = dc.fn(("step(x: u8[%d, 28, 28], y: i32[%d]) -> f32[]"):format(case.batch, case.batch), function(x, y)
    local loss = nn.cross_entropy(net(x:cast "f32" / 255), y)
    opt:step(loss)
    return loss
  end)
  local x, y = inputs.x, inputs.y
  return function(n)
    local loss
    for _ = 1, n do
      loss = step(x, y)
    end
    return { loss = loss }
  end
end)
