-- deepc's side of bench/epoch.py: the loop of examples/fashion_mnist.lua, an epoch for each iteration.
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local data = require "deepc.data"
package.path = (arg[0]:match "^(.*)/" or ".") .. "/?.lua;" .. package.path
local frame = require "frame"

return frame.serve(function(case, inputs)
  local layers = { nn.Flatten() }
  for i = 1, #case.sizes - 1 do
    local layer = nn.Linear(case.sizes[i], case.sizes[i + 1])
    layer.weight:set(inputs["w" .. i - 1])
    layer.bias:set(inputs["b" .. i - 1])
    layers[#layers + 1] = layer
    layers[#layers + 1] = i < #case.sizes - 1 and nn.ReLU() or nil
  end
  local net = nn.Sequential(layers)
  local opt = optim.Adam(net:parameters())
  local b = case.batch
  local step = dc.fn(("step(x: u8[%d, 28, 28], y: i32[%d], lr: f32[]) -> f32[]"):format(b, b), function(x, y, lr)
    local loss = nn.cross_entropy(net(x:cast "f32" / 255), y)
    opt:step(loss, { lr = lr })
    return loss
  end)
  local train = data.set(inputs.x, inputs.y)
  return function(n)
    local mean
    for _ = 1, n do
      local total, steps = 0, 0
      for x, y in train:batches { size = b, shuffle = true, seed = 1, last = "drop" } do
        local loss <close> = step(x, y, 1e-3)
        total, steps = total + loss:item(), steps + 1
      end
      mean = total / steps
    end
    return { loss = mean }
  end
end)
