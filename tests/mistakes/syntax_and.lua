-- run: deepc check
local dc = require "deepc"
local x = dc.tensor { 1, 2 }
if #x == 2 && x:ndim() == 1 then print(x) end
