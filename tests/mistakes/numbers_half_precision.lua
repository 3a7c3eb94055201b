-- luacheck: ignore
local dc = require "deepc"
dc.check_numbers(true)

local square = dc.fn("square(x: f16[3]) -> f16[3]", function(x) return x * x end)
print(square(dc.tensor({ 1, 200, 300 }, "f16")))
