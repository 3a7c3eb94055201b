local dc = require "deepc"

dc.fn("f(x: f32[3]) -> f32[3]", function(x)
  return dc.vmap(function(a)
    return dc.cond(a:gt(0), function()
      dc.print("a", a)
      return a
    end, function() return 0 end)
  end)(x)
end)
