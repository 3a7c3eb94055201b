-- deepc's side of bench/layers.py.
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
package.path = (arg[0]:match "^(.*)/" or ".") .. "/?.lua;" .. package.path
local frame = require "frame"

local RATE = 1e-2

-- A step for x that returns the loss and the gradient of x.
local function make_step(case, inputs)
  local x = ("x: f32[%s]"):format(table.concat(case.x, ", "))
  local returns = ("f32[], f32[%s]"):format(table.concat(case.x, ", "))
  if case.kind == "ctc" then
    local y = inputs.y:clone()
    return dc.fn(("step(%s) -> %s"):format(x, returns), function(x) -- luacheck: ignore 431
      local loss = nn.ctc_loss(x:log_softmax(-1), y)
      return loss, dc.grad(loss, x)
    end)
  end
  local args = { table.unpack(case.args) }
  local options = { stride = case.stride, padding = case.padding }
  if case.kind == "MultiheadAttention" then
    options.batch_first = true
  end
  if next(options) then
    args[#args + 1] = options
  end
  local net = nn[case.kind](table.unpack(args))
  for name in pairs(case.params) do
    local cell = net
    for part in name:gmatch "[^.]+" do
      cell = cell[part]
    end
    cell:set(inputs[name])
  end
  local params = net:parameters()
  local opt = #params > 0 and optim.SGD(params, { lr = RATE })
  return dc.fn(("step(%s) -> %s"):format(x, returns), function(x) -- luacheck: ignore 431
    local y = net(x)
    local loss = (y * y * y):mean()
    local dx = dc.grad(loss, x)
    if opt then
      opt:step(loss)
    end
    return loss, dx
  end)
end

return frame.serve(function(case, inputs)
  local step = make_step(case, inputs)
  return function(n)
    local loss, dx
    for _ = 1, n do
      loss, dx = step(inputs.x)
    end
    return { loss = loss, dx = dx }
  end
end)
