-- tensorboard_content.lua FOLDER: a run with all that deepc.tensorboard writes, for tensorboard_peer.py to read.
local dc, nn, optim = require "deepc", require "deepc.nn", require "deepc.optim"
local tensorboard = require "deepc.tensorboard"

local log = tensorboard.writer(arg[1] .. "/1")
local net = nn.Sequential { nn.Linear(4, 8), nn.ReLU(), nn.Residual(nn.Linear(8, 8)), nn.Linear(8, 2) }
local opt = optim.Adam(net:parameters(), { lr = 1e-3 })
local step = dc.fn("step(x: f32[16, 4], y: i32[16]) -> f32[]", function(x, y)
  local loss = nn.cross_entropy(net(x), y)
  opt:step(loss)
  return loss
end)
log:graph(step)
log:hparams({ lr = 1e-3, optimizer = "Adam", amsgrad = false }, { "loss" })
for i = 1, 200 do
  log:scalar("loss", 1 / i, i)
end
log:scalar("tensor", dc.tensor(0.25), 7)
log:scalar("nan", 0 / 0, 1)
log:scalars("both", { train = 0.5, test = dc.tensor(0.75) }, 3)
log:histogram("counts", dc.tensor { 1, 2, 2, 3, 3, 3, 0 / 0, 1 / 0, -1 / 0 }, 5, { bins = 3 })
log:histogram("empty", dc.tensor { 0 / 0 }, 5)
log:histogram("huge", dc.tensor({ -1.7e308, 1.7e308 }, "f64[2]"), 5, { bins = 2 })
log:image("grid", (dc.iota(5 * 2 * 3 * 3) % 256):cast("u8"):reshape(5, 2, 3, 3), 6, { layout = "NHWC" })
log:image("grey", dc.tensor { { 0, 0.5 }, { 1, 0 / 0 } }, 6)
log:text("notes", "the **first** run: äöü", 9)

-- A loop, whose body is a scope.
local scan = dc.fn("scan(x: f32[6, 4]) -> f32[4]", function(x)
  local sum = dc.scan(function(c, row) return c + row * 2, c end, dc.zeros "f32[4]", x)
  return sum
end)
local loop <close> = tensorboard.writer(arg[1] .. "/loop")
loop:graph(scan)
-- The end of the script writes what waits in the first one.
