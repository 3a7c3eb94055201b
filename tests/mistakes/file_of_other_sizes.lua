local dc, nn = require "deepc", require "deepc.nn"

local path = os.tmpname()
dc.save(path, nn.Sequential { nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10) })
local net = nn.Sequential { nn.Linear(784, 100), nn.ReLU(), nn.Linear(100, 10) }
local ok, err = pcall(dc.load, path, net)
os.remove(path)
error(err, 0)
