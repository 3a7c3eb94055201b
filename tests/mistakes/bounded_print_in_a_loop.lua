local dc = require "deepc"

local f = dc.fn("f(x: f32[t <= 512])", function(x)
  return dc.scan(function(sum, v)
    dc.print("sum", sum)
    return sum + v
  end, dc.zeros "f32[]", x)
end)

print(f(dc.zeros "f32[8]"))
