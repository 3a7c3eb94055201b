-- Why tests of deepc.linalg cannot run here, or nil where they can: for lu.skipIf.
local linalg = require "deepc.linalg"
local dc = require "deepc"

local ok, err = pcall(linalg.inv, dc.ones "f32[1, 1]")
return { missing = not ok and err.code == "DC1003" and tostring(err):match "^[^\n]*" or nil }
