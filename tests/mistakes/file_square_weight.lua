-- A file of another program has a square matrix for a linear layer: nothing tells which way round it is.
local dc, nn = require "deepc", require "deepc.nn"

local path = os.tmpname()
dc.save(path, { weight = dc.rand "f32[8, 8]", bias = dc.zeros "f32[8]" })
local ok, err = pcall(dc.load, path, nn.Linear(8, 8))
os.remove(path)
error(err, 0)
