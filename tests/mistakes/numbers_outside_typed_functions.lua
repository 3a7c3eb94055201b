-- luacheck: ignore
local dc = require "deepc"
dc.check_numbers(true)

local count = dc.tensor { 4, 0, 2 }
local total = dc.tensor { 8, 0, 2 }
local mean = total / count
print(mean:sum())
