local dc = require "deepc"

local cache = dc.state "f32[0 <= t <= 8, 4]"
dc.fn("fill(row: f32[1, 4])", function(row)
  dc.fori(8, function(_, n)
    cache:set(dc.concat({ cache, row }, 1))
    return n
  end, dc.zeros "f32[]")
end)
