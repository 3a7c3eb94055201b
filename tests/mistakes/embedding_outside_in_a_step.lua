local dc = require "deepc"
local nn = require "deepc.nn"

local embed = nn.Embedding(10, 4)
local f = dc.fn("f(i: i32[3]) -> f32[3, 4]", function(i)
  return embed(i)
end)
f(dc.tensor({ 1, 10, 2 }, "i32"))
