-- deepc's side of bench/gpt.py: a stack of GPT blocks; a training step with Adam, or the logits of letters,
-- of which the last ones are held.
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
package.path = (arg[0]:match "^(.*)/" or ".") .. "/?.lua;" .. package.path
local frame = require "frame"
local Block = require "gpt_block"

-- A whole model, from letters to logits; so many of its results are held while the next one is computed.
local function logits_side(case, inputs, net)
  local norm = nn.LayerNorm(case.width)
  local letters = ("i32[%d, %d]"):format(case.batch, case.time)
  local type = ("logits(ids: %s) -> f32[%d, %d, %d]"):format(letters, case.batch, case.time, case.letters)
  local embed, place = dc.param(inputs.embed), dc.param(inputs.place)
  local head = dc.param(inputs.head)
  local logits = dc.fn(type, function(ids)
    return norm(net(embed:take(ids) + place)):matmul(head)
  end)
  local held, calls = {}, 0
  return function(n)
    for _ = 1, n do
      calls = calls + 1
      held[calls % case.held] = logits(inputs.ids)
    end
    return { logits = held[calls % case.held] }
  end
end

return frame.serve(function(case, inputs)
  local blocks = {}
  for i = 1, case.layers do
    local block = Block(case.width, case.heads)
    for _, name in ipairs { "qkv", "proj", "fc1", "fc2" } do
      block[name].weight:set(inputs[name][i])
      block[name].bias:set(inputs[name .. "_bias"][i])
    end
    blocks[i] = block
  end
  local net = nn.Sequential(blocks)
  if case.letters > 0 then
    return logits_side(case, inputs, net)
  end
  local opt = optim.Adam(net:parameters(), { lr = 1e-3 })
  local shape = ("f32[%d, %d, %d]"):format(case.batch, case.time, case.width)
  local step = dc.fn(("step(x: %s, y: %s) -> f32[]"):format(shape, shape), function(x, y)
    local loss = (net(x) - y):square():mean()
    opt:step(loss)
    return loss
  end)
  return frame.steps(step, inputs)
end)
