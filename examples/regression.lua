-- Linear regression without layers or optimisers: parameters, dc.grad and :set.
--
-- The columns of the inputs differ in scale. Their running mean and variance are states, kept by one
-- typed function and read by the other two.

local dc = require "deepc"

-- 1024 rows of y = 2 a - 3 b + 0.5 + noise, with a around 100 and b around 0.01.
local rows = 1024
local inputs = dc.randn("f32[1024, 2]", { seed = 1 }) * dc.tensor { 20, 0.005 } + dc.tensor { 100, 0.01 }
local targets = inputs:matmul(dc.tensor { 2 / 20, -3 / 0.005 }) + 0.5 + dc.randn("f32[1024]", { seed = 2, std = 0.1 })

local count, mean, m2 = dc.state "f32[]", dc.state "f32[2]", dc.state "f32[2]"

-- Joins the statistics of a batch with those so far (Chan, Golub and LeVeque).
local observe = dc.fn("observe(x: f32[n, 2]) -> ()", function(x)
  local n, m = #x, x:mean(1)
  local off, total = m - mean, count + n
  local within = ((x - m) * (x - m)):sum(1)
  m2:set(m2 + within + off * off * count * (n / total))
  mean:set(mean + off * (n / total))
  count:set(total)
end)

-- Called in the body of another typed function it becomes part of that one.
local scaled = dc.fn("scaled(x: f32[n, 2]) -> f32[n, 2]", function(x)
  return (x - mean) / (m2 / count):sqrt()
end)

local w, b = dc.param "f32[2]", dc.param "f32[]"

local step = dc.fn("step(x: f32[n, 2], y: f32[n], lr: f32[]) -> f32[]", function(x, y, lr)
  local off = scaled(x):matmul(w) + b - y
  local loss = (off * off):mean()
  local g = dc.grad(loss, { w, b })
  w:set(w - lr * g[1])
  b:set(b - lr * g[2])
  return loss
end)

for first = 1, rows, 256 do
  observe(inputs[{ { first, first + 255 } }])
end
print("mean", mean)
for i = 1, 100 do
  local loss = step(inputs, targets, 0.1)
  if i % 25 == 0 then
    print(("step %3d  loss %.4f"):format(i, loss:item()))
  end
end
print("weights in units of the columns", w)
