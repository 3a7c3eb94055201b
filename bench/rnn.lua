-- deepc's side of bench/rnn.py.
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
package.path = (arg[0]:match "^(.*)/" or ".") .. "/?.lua;" .. package.path
local frame = require "frame"

return frame.serve(function(case, inputs)
  local net = nn[case.kind](case.inputs, case.width)
  for _, name in ipairs { "weight_ih", "weight_hh", "bias_ih", "bias_hh" } do
    net[name .. "_l0"]:set(inputs[name])
  end
  local types = ("x: f32[%d, %d, %d]"):format(case.length, case.batch, case.inputs)
  if case.rule == "infer" then
    local f = dc.fn(("infer(%s) -> f32[%d, %d, %d]"):format(types, case.length, case.batch, case.width), function(x)
      return (net(x))
    end)
    return function(n)
      local y
      for _ = 1, n do
        y = f(inputs.x)
      end
      return { y = y }
    end
  end
  local opt = optim.SGD(net:parameters(), { lr = case.rate })
  local step = dc.fn(("step(%s) -> f32[]"):format(types), function(x)
    local last = net(x)[-1]
    local loss = (last * last):mean()
    opt:step(loss)
    return loss
  end)
  return function(n)
    local loss
    for _ = 1, n do
      loss = step(inputs.x)
    end
    return { loss = loss }
  end
end)
