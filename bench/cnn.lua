-- deepc's side of bench/cnn.py.
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
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
  local rule = case.rule == "adam" and optim.Adam or optim.SGD
  local opt = rule(net:parameters(), { lr = case.rate })
  local b = case.batch
  local step = dc.fn(("step(x: u8[%d, 28, 28], y: i32[%d]) -> f32[]"):format(b, b), function(x, y)
    local loss = nn.cross_entropy(net(x:cast "f32":reshape(b, 1, 28, 28) / 255), y)
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
