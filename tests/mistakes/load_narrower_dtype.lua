local dc = require "deepc"

local path = os.tmpname()
dc.save(path, { weight = dc.ones "f32[4, 2]" })
local ok, err = pcall(dc.load, path, { weight = dc.param "bf16[4, 2]" })
os.remove(path)
error(err, 0)
