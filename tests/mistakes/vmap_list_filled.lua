local dc = require "deepc"

dc.fn("f(x: f32[3]) -> f32[3]", function(x)
  local all = {}
  return dc.vmap(function(a)
    all[#all + 1] = a
    return a * 2
  end)(x)
end)
