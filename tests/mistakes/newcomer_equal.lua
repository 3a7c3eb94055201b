local dc = require "deepc"

local pred = dc.tensor({ 1, 2, 3 }, "i32")
local y = dc.tensor({ 1, 0, 3 }, "i32")
local right = pred == y
