local dc, nn, pipeline = require "deepc", require "deepc.nn", require "deepc.pipeline"

dc.mesh { pipe = 1 }
local schedule = pipeline.Schedule1F1B { stage = nn.Linear(4, 2), over = "pipe", micro = 3, loss = nn.mse_loss }
print(schedule:step(dc.ones "f32[8, 4]", dc.ones "f32[8, 2]"))
