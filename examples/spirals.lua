-- Two spirals that wind round each other, told apart by a small network with residual blocks.
--
-- Shows a layer of one's own, batches, a learning rate changed between epochs, and evaluation with
-- another batch size through a dim without a size.
--
--   deepc spirals.lua
--   deepc spirals.lua --plot plane.png

local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local data = require "deepc.data"
local plot = require "deepc.plot"

local options = dc.options {
  about = "Tells two spirals apart.",
  { "plot", nil, "draws what the network says of the plane, .svg or .png", value = "FILE" },
}

dc.seed(0)

-- Rows 1, 3, 5 ... lie on one arm, the others on the other one.
local function spirals(n, seed)
  local angle = dc.rand(("f32[%d]"):format(n), { seed = seed }):sqrt() * (3 * math.pi)
  local label = dc.iota(("i32[%d]"):format(n)) % 2
  local points = {}
  for i, a in ipairs(angle:totable()) do
    local turn = a + math.pi * label[i]:item()
    points[i] = { a / 10 * math.cos(turn), a / 10 * math.sin(turn) }
  end
  return data.set(dc.tensor(points) + dc.randn(("f32[%d, 2]"):format(n), { seed = seed + 1, std = 0.02 }), label)
end

local train, test = spirals(2048, 1), spirals(500, 3)

local Residual = nn.class "Residual"

function Residual:init(n)
  self.inner = nn.Linear(n, n)
end

function Residual:forward(x)
  return x + self.inner(x):tanh()
end

local net = nn.Sequential { nn.Linear(2, 32), Residual(32), Residual(32), Residual(32), nn.Linear(32, 2) }
local opt = optim.Adam(net:parameters(), { lr = 1e-2 })

local step = dc.fn("step(x: f32[64, 2], y: i32[64]) -> f32[]", function(x, y)
  local loss = nn.cross_entropy(net(x), y)
  opt:step(loss)
  return loss
end)

local correct = dc.fn("correct(x: f32[batch, 2], y: i32[batch]) -> i32[]", function(x, y)
  return net(x):argmax(2):eq(y):sum()
end)

for epoch = 1, 30 do
  if epoch == 21 then
    opt.lr = 1e-3 -- a state: nothing is compiled again
  end
  local loss
  for x, y in train:batches { size = 64, shuffle = true, seed = 1 } do
    loss = step(x, y)
  end
  if epoch % 10 == 0 then
    print(("epoch %d  loss %.4f"):format(epoch, loss:item()))
  end
end
local right = correct(test.x, test.y):item()
print(("test accuracy %.3f"):format(right / #test))

if options.plot then
  local line = dc.linspace(-1.05, 1.05, 30)
  local ys, xs = dc.meshgrid { line, line }
  local place = dc.stack({ xs:flatten(), ys:flatten() }, 2)
  local said = net(place):argmax(2)
  local function where(points, mask, name)
    local found, count = points:compact(mask)
    found = found[{ { 1, count:item() } }]
    return { x = found[{ {}, 1 }], y = found[{ {}, 2 }], name = name }
  end
  plot.points(options.plot, {
    where(place, said:eq(0)), where(place, said:eq(1)),
    where(test.x, test.y:eq(0), "one spiral"), where(test.x, test.y:eq(1), "the other one"),
  }, { title = "Two spirals, and what the network says of the plane", width = 560, height = 520 })
end
