local dc = require "deepc"
local nn = require "deepc.nn"

local cell = nn.Linear(8, 8)
dc.fn("f(xs: f32[10, 8]) -> f32[8]", function(xs)
  return (dc.scan(function(s, x) return { net = s.net, h = s.net(s.h + x) } end, { net = cell, h = dc.zeros "f32[8]" },
    xs)).h
end)
