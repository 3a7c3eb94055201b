local dc = require "deepc"

dc.fn("f(x: f32[4]) -> f32[]", function(x)
  local loss = x:sum()
  if loss:item() > 3 then loss = loss * 2 end
  return loss
end)
