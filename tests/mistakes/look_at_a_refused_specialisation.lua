-- env: DEEPC_MEMORY=16M
-- One specialisation is refused for its memory: the others can still be looked at.
local dc = require "deepc"

local f = dc.fn("f(x: f32[n, k]) -> f32[]", function(x)
  return x:matmul(x:transpose()):exp():sum()
end)
f(dc.ones "f32[5, 4]")
assert(not pcall(f, dc.ones "f32[50000, 4]"))
assert(f:explain():find("1. n=5, k=4   1 call", 1, true) and #f:kernels() > 0)
local info = f:info()
assert(info[1].kernels > 0 and not info[1].refused)
local text = info[2].refused:gsub(": [%d.]+ MiB between.*", ""):gsub("needs [%d.]+", "needs many")
error(text, 0)
