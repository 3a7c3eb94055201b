local dc = require "deepc"
local linalg = require "deepc.linalg"

return linalg.det(dc.tensor({ { 1, 2 }, { 3, 4 } }, "i32"))
