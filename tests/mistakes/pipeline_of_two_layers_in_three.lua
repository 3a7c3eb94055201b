local nn, pipeline = require "deepc.nn", require "deepc.pipeline"

pipeline.split(nn.Sequential { nn.Linear(4, 8), nn.Linear(8, 2) }, 3)
