-- Gradients of each sample of a batch, for the weights of an MLP: dc.vmap of dc.grad in one typed function beside a
-- loop that calls a typed function for each sample, on one thread (DEEPC_THREADS=1). Processor time per batch, the
-- least of some rounds, and the ratio; and whether the gradients are the same.
local dc = require "deepc"
local nn = require "deepc.nn"

local ROUNDS = 7

local function mlp(sizes)
  local layers = {}
  for i = 1, #sizes - 1 do
    layers[#layers + 1] = nn.Linear(sizes[i], sizes[i + 1])
    layers[#layers + 1] = i < #sizes - 1 and nn.ReLU() or nil
  end
  return nn.Sequential(layers)
end

-- The least time of a round, of one call.
local function seconds(calls, f)
  local best = math.huge
  f()
  for _ = 1, ROUNDS do
    local start = os.clock()
    for _ = 1, calls do
      f()
    end
    best = math.min(best, (os.clock() - start) / calls)
  end
  return best
end

-- Types of the gradients, with the rows in front where there are some.
local function types(params, rows)
  local list = {}
  for i, p in ipairs(params) do
    list[i] = ("g%d: f32[%s%s]"):format(i, rows and rows .. ", " or "", table.concat(p.shape, ", "))
  end
  return "{ " .. table.concat(list, ", ") .. " }"
end

local function record(list)
  local t = {}
  for i, g in ipairs(list) do
    t["g" .. i] = g
  end
  return t
end

local function largest_difference(batch, rows, n)
  local most = 0
  for k = 1, n do
    for name, g in pairs(rows[k]) do
      most = math.max(most, (batch[name][k] - g):abs():max():item())
    end
  end
  return most
end

local function run(sizes, n)
  local net = mlp(sizes)
  local params = net:parameters()
  local width, classes = sizes[1], sizes[#sizes]
  local function of_one(x, y)
    return dc.grad(nn.cross_entropy(net(x:reshape(1, width)), y:reshape(1)), params)
  end
  local together = dc.fn(("together(x: f32[%d, %d], y: i32[%d]) -> %s"):format(n, width, n, types(params, n)),
    function(x, y) return record(dc.vmap(of_one)(x, y)) end)
  local alone = dc.fn(("alone(x: f32[%d], y: i32[]) -> %s"):format(width, types(params)),
    function(x, y) return record(of_one(x, y)) end)
  local xs = dc.randn(("f32[%d, %d]"):format(n, width), { seed = 1 })
  local ys = dc.randint(("i32[%d]"):format(n), { high = classes, seed = 2 })
  local x, y = {}, {}
  for k = 1, n do
    x[k], y[k] = xs[k] + 0, ys[k] + 0
    x[k]:sum():item()
    y[k]:sum():item()
  end
  local last
  local by_vmap = seconds(math.max(1, 200 // n), function()
    last = together(xs, ys)
    last.g1:size(1)
  end)
  local rows = {}
  local by_loop = seconds(1, function()
    for k = 1, n do
      rows[k] = alone(x[k], y[k])
    end
  end)
  local bytes = 0
  for _, g in pairs(last) do
    local count = 4
    for _, size in ipairs(g.shape) do
      count = count * size
    end
    bytes = bytes + count
  end
  print(("%-18s %5d   %10.3f %10.3f %8.1f   %8.1f   %.1e"):format(table.concat(sizes, "-"), n, by_vmap * 1e3,
    by_loop * 1e3, by_loop / by_vmap, bytes / 2 ^ 20, largest_difference(last, rows, n)))
end

print(("deepc %s on %s, least of %d rounds"):format(dc._VERSION, dc.stats().device, ROUNDS))
print "net              samples     vmap ms    loop ms    ratio   MiB out    largest difference"
for _, n in ipairs { 16, 128 } do
  run({ 32, 64, 10 }, n)
  run({ 784, 128, 64, 10 }, n)
end
