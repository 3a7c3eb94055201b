local dc = require "deepc"

dc.fn("rnn(h: f32[4, 8], xs: f32[10, 4, 16]) -> f32[4, 8]", function(h, xs)
  local last = dc.scan(function(state, x)
    local next = dc.concat({ state, x }, 2)
    return next, next
  end, h, xs)
  return last
end)
