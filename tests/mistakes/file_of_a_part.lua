local dc, nn = require "deepc", require "deepc.nn"

local path, net = os.tmpname(), nn.Linear(784, 10)
dc.save(path, net)
local ok, err = pcall(dc.load, path, { model = net })
os.remove(path)
error(err, 0)
