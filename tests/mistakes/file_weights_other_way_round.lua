-- The caller says [out, in], the file has [in, out].
local dc, nn = require "deepc", require "deepc.nn"

local path = os.tmpname()
dc.save(path, { weight = dc.rand "f32[8, 4]", bias = dc.zeros "f32[4]" })
local ok, err = pcall(dc.load, path, nn.Linear(8, 4), { linear = "out, in" })
os.remove(path)
error(err, 0)
