local dc = require "deepc"

dc.fn("lstm(h: f32[8], xs: f32[10, 8]) -> f32[8]", function(h, xs)
  local last = dc.scan(function(s, x)
    local h2 = (s.h + x):tanh()
    return { h = h2 }, h2
  end, { h = h, c = h * 0 }, xs)
  return last.h
end)
