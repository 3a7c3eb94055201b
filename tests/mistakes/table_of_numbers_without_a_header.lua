-- run: script
local data = require "deepc.data"
local path = os.tmpname()
local f = assert(io.open(path, "w"))
f:write "5.1,3.5,1.4,0.2\n4.9,3.0,1.4,0.2\n4.7,3.2,1.3,0.2\n"
f:close()
print(#data.read_csv(path)["5.1"])
print(#data.read_csv(path, { header = false })["1"])
os.remove(path)
