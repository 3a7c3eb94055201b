local dc = require "deepc"

local f = dc.fn("f(s: {h: f32[4]}) -> f32[4]", function(s)
  return s.h
end)
f { h = dc.ones "f32[4]", c = dc.ones "f32[4]" }
