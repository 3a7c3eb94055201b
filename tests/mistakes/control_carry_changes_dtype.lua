local dc = require "deepc"

dc.fn("count(xs: f32[10]) -> i32[]", function(xs)
  local n = dc.scan(function(n, x)
    return { k = n.k + x }
  end, { k = dc.zeros "i32[]" }, xs:cast "i32")
  local m = dc.fori(3, function(i, c)
    return { k = c.k * i, f = c.f + 1, list = { c.list[1]:cast "f32" } }
  end, { k = n.k, f = 0, list = { n.k } })
  return m.k
end)
