local dc = require "deepc"

local attend = dc.fn([[
  attend(q: f32[batch, t, d], k: f32[batch, s, d]) -> f32[batch, t, s]
]], function(q, k)
  local score = q:matmul(k)
  return score / dc.dim "d" ^ 0.5
end, { batch = 2, t = 5, s = 7, d = 4 })
