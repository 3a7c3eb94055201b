-- A column that is to be numbers has a word in it.
local data = require "deepc.data"
local path = os.tmpname()
local f <close> = assert(io.open(path, "w"))
f:write("age,income\n31,1200\n28,n. a.\n")
f:close()
local ok, err = pcall(data.read_csv, path, { matrix = true })
os.remove(path)
assert(not ok)
error((tostring(err):gsub(path:gsub("%W", "%%%0"), "people.csv")), 0)
