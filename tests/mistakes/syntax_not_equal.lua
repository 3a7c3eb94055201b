-- run: deepc check
local dc = require "deepc"
local x = dc.tensor { 1, 2 }
if x[1]:item() != 1 then print(x) end
