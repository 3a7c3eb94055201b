-- deepc's side of bench/lora.py.
local dc = require "deepc"
local models = require "deepc.models"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
package.path = (arg[0]:match "^(.*)/" or ".") .. "/?.lua;" .. package.path
local frame = require "frame"

return frame.serve(function(case, inputs)
  local net = models.lora(models.load(case.file), { rank = case.rank, alpha = 2 * case.rank }):train()
  local opt = optim.AdamW(net:parameters(), { lr = case.rate, weight_decay = 0 })
  for i, layer in ipairs(net.model.layers) do
    layer.self_attn.q_proj.lora_A.weight:set(inputs.a[2 * i - 1])
    layer.self_attn.v_proj.lora_A.weight:set(inputs.a[2 * i])
  end
  local step = dc.fn(("step(ids: i32[%d, %d]) -> f32[]"):format(case.batch, case.tokens + 1), function(ids)
    local loss = nn.cross_entropy(net(ids[{ {}, { 1, -2 } }]), ids[{ {}, { 2, -1 } }])
    opt:step(loss)
    return loss
  end)
  return function(n)
    local loss
    for _ = 1, n do
      loss = step(inputs.ids)
    end
    return { loss = loss }
  end
end)
