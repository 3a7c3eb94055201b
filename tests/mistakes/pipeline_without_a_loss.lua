local dc, nn, pipeline = require "deepc", require "deepc.nn", require "deepc.pipeline"

dc.mesh { pipe = 1 }
pipeline.Schedule1F1B { stage = nn.Linear(4, 2), over = "pipe", micro = 3 }
