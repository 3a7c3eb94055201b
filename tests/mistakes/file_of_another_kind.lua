local data = require "deepc.data"

local path = os.tmpname()
local file = assert(io.open(path, "wb"))
file:write "seven, two, one"
file:close()
local ok, err = pcall(data.idx, path)
os.remove(path)
error(err, 0)
