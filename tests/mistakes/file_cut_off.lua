local data = require "deepc.data"

local path = os.tmpname()
local file = assert(io.open(path, "wb"))
file:write("\0\0\8\1\0\0\0\3", "\7\2")
file:close()
local ok, err = pcall(data.idx, path)
os.remove(path)
error(err, 0)
