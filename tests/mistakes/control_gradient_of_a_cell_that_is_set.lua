local dc = require "deepc"

local w = dc.param("f32[2]", 1)
dc.fn("f(xs: f32[5]) -> ()", function(xs)
  local u = w * 3
  dc.scan(function(_, x)
    w:set(w - dc.grad((u * x + w * x):sum(), w))
    return nil
  end, nil, xs)
end)
