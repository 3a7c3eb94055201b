-- deepc's side of bench/resnet.py.
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
package.path = (arg[0]:match "^(.*)/" or ".") .. "/?.lua;" .. package.path
local frame = require "frame"

-- A convolution and its norm.
local function unit(inputs, name, i, o, k, stride)
  local conv = nn.Conv2d(i, o, k, { stride = stride, padding = k // 2, bias = false })
  local norm = nn.BatchNorm2d(o)
  conv.weight:set(inputs[name .. "_w"])
  norm.weight:set(inputs[name .. "_scale"])
  norm.bias:set(inputs[name .. "_shift"])
  norm.running_mean:set(inputs[name .. "_mean"])
  norm.running_var:set(inputs[name .. "_var"])
  return nn.Sequential { conv, norm }
end

local Block = nn.class "Block"

function Block:init(c1, c2, down)
  self.c1, self.c2, self.down = c1, c2, down
end

function Block:forward(x)
  local y = self.c2(self.c1(x):relu())
  return (y + (self.down and self.down(x) or x)):relu()
end

local function network(case, inputs)
  local layers = { unit(inputs, "stem", 3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, { stride = 2, padding = 1 }) }
  local from = 64
  for s, width in ipairs(case.stages) do
    for b = 0, 1 do
      local name = ("s%db%d"):format(s - 1, b)
      local stride = s > 1 and b == 0 and 2 or 1
      local c1 = unit(inputs, name .. "c1", from, width, 3, stride)
      local c2 = unit(inputs, name .. "c2", width, width, 3, 1)
      local down = stride == 2 and unit(inputs, name .. "down", from, width, 1, stride) or nil
      layers[#layers + 1] = Block(c1, c2, down)
      from = width
    end
  end
  local fc = nn.Linear(512, 1000)
  fc.weight:set(inputs.fc_w)
  fc.bias:set(inputs.fc_b)
  return nn.Sequential(layers), fc
end

local function training(case, inputs, net, fc)
  local b, size = case.batch, case.size
  local opt = optim.SGD(nn.Sequential({ net, fc }):parameters(), { lr = case.rate, momentum = 0.9 })
  local step = dc.fn(("step(x: f32[%d, 3, %d, %d], y: i32[%d]) -> f32[]"):format(b, size, size, b), function(x, y)
    local loss = nn.cross_entropy(fc(net(x):mean { 3, 4 }), y)
    opt:step(loss)
    return loss
  end)
  return frame.steps(step, inputs)
end

return frame.serve(function(case, inputs)
  local net, fc = network(case, inputs)
  if case.rate > 0 then
    return training(case, inputs, net, fc)
  end
  net:eval()
  local f = dc.fn(("f(x: f32[%d, 3, 224, 224]) -> f32[%d, 1000]"):format(case.batch, case.batch), function(x)
    return fc(net(x):mean { 3, 4 })
  end)
  local x = inputs.x
  return function(n)
    local y
    for _ = 1, n do
      y = f(x)
    end
    return { y = y }
  end
end)
