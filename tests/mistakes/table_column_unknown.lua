local data = require "deepc.data"
local path = os.tmpname()
local f = assert(io.open(path, "w"))
f:write "age,income,city\n39,77516,Rome\n"
f:close()
data.read_csv(path, { columns = { "label" } })
