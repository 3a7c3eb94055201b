local dc = require "deepc"

local cfg = { lr = 0.1 }
local w = dc.state("f32[4]", 1)
local step = dc.fn("step(x: f32[4]) -> f32[]", function(x)
  w:set(w - cfg.lr * x)
  return (w * x):sum()
end)

local x = dc.ones "f32[4]"
for epoch = 1, 40 do
  step(x)
  if epoch == 20 then
    cfg.lr = 0.05
  end
end
