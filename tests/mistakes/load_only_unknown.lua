local dc = require "deepc"

local path = os.tmpname()
dc.save(path, { ["layer.weight"] = dc.ones "f32[4, 2]" })
local ok, err = pcall(dc.load, path, nil, { only = { "layer.wieght" } })
os.remove(path)
error(err, 0)
