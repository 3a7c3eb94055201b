-- A classifier to serve: deepc model.lua model.dcfn [WIDTH]
--
-- Points in 16 dims, of 4 classes; trained here, exported for 1 to 32 rows.
local dc, nn, optim = require "deepc", require "deepc.nn", require "deepc.optim"
local path = arg[1] or "model.dcfn"
local width = tonumber(arg[2] or 256)

dc.seed(1)
local net = nn.Sequential { nn.Linear(16, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4) }
local opt = optim.Adam(net:parameters(), { lr = 1e-3 })
local centres = dc.randn "f32[4, 16]"

local function points(n)
  local class = (dc.rand("f32[" .. n .. "]") * 4):cast "i32"
  return centres:take(class, 1) + dc.randn("f32[" .. n .. ", 16]"), class
end

local step = dc.fn("step(x: f32[n, 16], class: i32[n]) -> f32[]", function(x, class)
  local loss = nn.cross_entropy(net(x), class)
  opt:step(loss)
  return loss
end)

local classify = dc.fn("classify(x: f32[n, 16]) -> f32[n, 4], i32[n]", function(x)
  local y = net(x):softmax(2)
  return y, y:argmax(2):cast "i32"
end)

for _ = 1, 100 do step(points(128)) end
local x, class = points(512)
local _, found = classify(x)
print(("accuracy %.3f"):format(found:eq(class):cast("f32"):mean():item()))
classify:export(path, { n = 1 }, { n = 2 }, { n = 4 }, { n = 8 }, { n = 16 }, { n = 32 })
