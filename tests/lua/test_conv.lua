-- Convolutions, pools and their layers.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local check = require "tests.lua.check"

local fails = check.fails

local function near(a, b, tolerance)
  lu.assertEquals(a.shape, b.shape)
  lu.assertTrue((a - b):abs():max():item() <= (tolerance or 1e-4), tostring(a - b))
end

-- A convolution as a sum over the elements of the window, with slices alone.
local function by_slices(x, w, stride, pad)
  local n, c, o, k = x:size(1), x:size(2), w:size(1), w:size(3)
  x = x:pad { [3] = { pad, pad }, [4] = { pad, pad } }
  local size = (x:size(3) - k) // stride + 1
  local sum = 0
  for r = 1, k do
    for q = 1, k do
      local seen = x[{ {}, {}, { r, r + (size - 1) * stride, stride }, { q, q + (size - 1) * stride, stride } }]
      local taps = w[{ {}, {}, r, q }]
      sum = dc.einsum("n c y x, o c -> n o y x", seen, taps) + sum
    end
  end
  lu.assertEquals(sum.shape, { n, o, size, size })
  lu.assertEquals(c, w:size(2))
  return sum
end

TestConv = {}

function TestConv:test_against_slices()
  for _, case in ipairs { { 1, 0, 3 }, { 1, 1, 3 }, { 2, 1, 3 }, { 3, 2, 5 }, { 2, 0, 1 } } do
    local stride, pad, k = table.unpack(case)
    local x, w = dc.randn("f32[2, 3, 9, 9]", { seed = 1 }), dc.randn(("f32[4, 3, %d, %d]"):format(k, k), { seed = 2 })
    near(dc.conv2d(x, w, { stride = stride, padding = pad }), by_slices(x, w, stride, pad))
    local px, pw = dc.param("f32[2, 3, 9, 9]", x), dc.param(("f32[4, 3, %d, %d]"):format(k, k), w)
    local a = dc.grad(dc.conv2d(px, pw, { stride = stride, padding = pad }):square():sum(), { px, pw })
    local b = dc.grad(by_slices(px, pw, stride, pad):square():sum(), { px, pw })
    near(a[1], b[1], 1e-2)
    near(a[2], b[2], 1e-2)
  end
end

function TestConv:test_compiled_is_as_lazy()
  local x, w = dc.randn("f32[2, 4, 7, 5]", { seed = 3 }), dc.randn("f32[6, 2, 3, 2]", { seed = 4 })
  local options = { stride = { 2, 1 }, padding = { { 1, 0 }, { 2, 1 } }, dilation = { 1, 2 }, groups = 2 }
  local f = dc.fn("f(a: f32[2, 4, 7, 5], b: f32[6, 2, 3, 2]) -> f32[2, 6, 3, 6]", function(a, b)
    return dc.conv2d(a, b, options)
  end)
  near(f(x, w), dc.conv2d(x, w, options))
  lu.assertEquals(dc.conv2d(x, w, options).shape, { 2, 6, 3, 6 })
end

function TestConv:test_groups_are_parts()
  local x, w = dc.randn("f32[2, 4, 6, 6]", { seed = 5 }), dc.randn("f32[6, 2, 3, 3]", { seed = 6 })
  local parts = {}
  for g = 0, 1 do
    parts[g + 1] = dc.conv2d(x[{ {}, { g * 2 + 1, g * 2 + 2 } }], w[{ { g * 3 + 1, g * 3 + 3 } }])
  end
  near(dc.conv2d(x, w, { groups = 2 }), dc.concat(parts, 2))
end

function TestConv:test_other_ranks()
  local x, w = dc.tensor({ { { 1, 2, 3, 4 } } }, "f32[1, 1, 4]"), dc.tensor({ { { 1, 10 } } }, "f32[1, 1, 2]")
  lu.assertEquals(dc.conv1d(x, w):totable(), { { { 21, 32, 43 } } })
  lu.assertEquals(dc.conv1d(x, w, { padding = "same" }):totable(), { { { 21, 32, 43, 4 } } })
  lu.assertEquals(dc.max_pool1d(x, 2):totable(), { { { 2, 4 } } })
  lu.assertEquals(dc.avg_pool1d(x, 3, { stride = 1 }):totable(), { { { 2, 3 } } })
  lu.assertEquals(dc.conv3d(dc.ones "f32[1, 2, 3, 3, 3]", dc.ones "f32[1, 2, 2, 2, 2]"):sum():item(), 128)
  lu.assertEquals(dc.max_pool3d(dc.iota("f32[1, 1, 2, 2, 2]", 5), 2):item(), 1)
  lu.assertEquals(dc.avg_pool3d(dc.iota("f32[1, 1, 2, 2, 2]", 5), 2):item(), 0.5)
end

function TestConv:test_integers()
  local x = dc.tensor({ { { 100, 100, 100 } } }, "u8[1, 1, 3]")
  local y = dc.conv1d(x, dc.tensor({ { { 2, 2 } } }, "u8[1, 1, 2]"))
  lu.assertEquals(y.dtype, "i32")
  lu.assertEquals(y:totable(), { { { 400, 400 } } })
  lu.assertEquals(dc.max_pool1d(x, 2).dtype, "u8")
  lu.assertEquals(dc.avg_pool1d(x, 2).dtype, "f32")
end

function TestConv:test_names()
  local x = dc.zeros "f32[n=2, c=3, h=5, w=5]"
  local y = dc.conv2d(x, dc.zeros "f32[4, 3, 3, 3]", { padding = 1 })
  lu.assertEquals(tostring(y):match "f32%b[]", "f32[n=2, 4, 5, 5]")
  lu.assertEquals(tostring(dc.max_pool2d(x, 2)):match "f32%b[]", "f32[n=2, c=3, 2, 2]")
end

function TestConv:test_refusals()
  local x, w = dc.zeros "f32[2, 3, 5, 5]", dc.zeros "f32[4, 3, 3, 3]"
  fails("stride is 0; 1 is the least", dc.conv2d, x, w, { stride = 0 })
  fails("padding is -1; 0 is the least", dc.conv2d, x, w, { padding = -1 })
  fails("padding is a number or a list of 2, not a list of 3", dc.conv2d, x, w, { padding = { 1, 1, 1 } })
  fails("padding is a number, a list or \"same\"", dc.conv2d, x, w, { padding = "valid" })
  fails("padding \"same\" is for stride 1, not 2", dc.conv2d, x, w, { padding = "same", stride = 2 })
  fails("groups must be an integer", dc.conv2d, x, w, { groups = 1.5 })
  fails("DC0310", dc.conv2d, x, w, { groups = 2 })
  fails("DC0309", dc.conv2d, x, w, { dilation = 3 })
  fails("DC0201", dc.conv2d, x, dc.zeros "f64[4, 3, 3, 3]")
  fails("one channel", dc.max_pool2d, dc.zeros "f32[2, 5, 5]", 2)
  fails("see nothing else", dc.max_pool2d, x, 2, { padding = 2 })
  fails("256 is the most", dc.max_pool1d, dc.zeros "f32[1, 1, 300]", 300)
  fails("the window must be an integer, not nil", dc.max_pool2d, x)
end

TestPools = {}

-- The largest of each window and the first place where it is, one by one.
local function plain_pool(t, k, stride, pad, visit)
  local size = (#t + 2 * pad - k) // stride + 1
  for y = 0, size - 1 do
    for x = 0, size - 1 do
      local best, by, bx = -math.huge, nil, nil
      for r = 0, k - 1 do
        for q = 0, k - 1 do
          local iy, ix = y * stride + r - pad + 1, x * stride + q - pad + 1
          local v = t[iy] and t[iy][ix]
          if v and v > best then
            best, by, bx = v, iy, ix
          end
        end
      end
      visit(y + 1, x + 1, best, by, bx)
    end
  end
  return size
end

function TestPools:test_max_and_its_gradient()
  local cases = { { 2, 2, 0, 6 }, { 2, 2, 0, 7 }, { 3, 2, 1, 7 }, { 3, 1, 0, 5 }, { 3, 3, 1, 6 }, { 7, 1, 3, 8 } }
  for _, case in ipairs(cases) do
    local k, stride, pad, n = table.unpack(case)
    local p = dc.param(("f32[1, 1, %d, %d]"):format(n, n), -- few values: many are equal
      dc.randint(("i32[1, 1, %d, %d]"):format(n, n), { high = 4, seed = k + n }):cast "f32")
    local function pool(x)
      return dc.max_pool2d(x, k, { stride = stride, padding = pad })
    end
    local t, want, back = p:totable()[1][1], {}, {}
    for i = 1, n do
      back[i] = {}
      for j = 1, n do
        back[i][j] = 0
      end
    end
    local size = plain_pool(t, k, stride, pad, function(y, x, best, by, bx)
      want[y] = want[y] or {}
      want[y][x] = best
      back[by][bx] = back[by][bx] + y * 10 + x
    end)
    lu.assertEquals(pool(p):totable()[1][1], want)
    local row, column = dc.iota(("f32[%d, 1]"):format(size), 1), dc.iota(("f32[%d]"):format(size), 1)
    local weight = row * 10 + column + 11
    lu.assertEquals(dc.grad((pool(p) * weight):sum(), p):totable()[1][1], back)
    local f = dc.fn(("f() -> f32[1, 1, %d, %d]"):format(n, n), function()
      return dc.grad((pool(p) * weight):sum(), p)
    end)
    lu.assertEquals(f():totable()[1][1], back)
  end
end

function TestPools:test_two_pools_in_a_row()
  local p = dc.param("f32[1, 1, 8, 8]", dc.randn("f32[1, 1, 8, 8]", { seed = 9 }))
  local once = dc.grad(dc.max_pool2d(p, 4):sum(), p)
  near(dc.grad(dc.max_pool2d(dc.max_pool2d(p, 2), 2):sum(), p), once, 0)
end

function TestPools:test_nan_and_infinities()
  local inf = math.huge
  local x = dc.tensor({ { { 0 / 0, 1, -inf, -inf, inf, 1 } } }, "f32[1, 1, 6]")
  local y = dc.max_pool1d(x, 2):totable()[1][1]
  lu.assertTrue(y[1] ~= y[1])
  lu.assertEquals({ y[2], y[3] }, { -inf, inf })
end

function TestPools:test_mean()
  local x = dc.iota("f32[1, 1, 4, 4]", 4)
  near(dc.avg_pool2d(x, { 4, 3 }, { padding = { 0, 1 }, stride = { 1, 2 } }):reshape(2), dc.tensor { 1 / 3, 2 }, 1e-6)
  local ones = dc.ones "f32[1, 2, 5, 5]"
  near(dc.avg_pool2d(ones, 3, { padding = 1, count_padding = false }), dc.ones "f32[1, 2, 2, 2]", 1e-6)
  near(dc.avg_pool2d(ones, 3, { padding = 1 })[{ {}, {}, { 1 }, { 1 } }], dc.full("f32[1, 2, 1, 1]", 4 / 9), 1e-6)
  local p = dc.param("f32[1, 1, 5, 5]", dc.ones "f32[1, 1, 5, 5]")
  near(dc.grad(dc.avg_pool2d(p, 2):sum(), p):sum(), dc.tensor(4), 1e-6)
  near(dc.grad(dc.avg_pool2d(p, 3, { stride = 1 }):sum(), p):sum(), dc.tensor(9), 1e-5)
end

TestImageLayers = {}

function TestImageLayers:test_conv()
  local l = nn.Conv2d(3, 8, { 3, 5 }, { padding = "same", bias = false })
  lu.assertEquals(#l:parameters(), 1)
  lu.assertEquals(l.weight.shape, { 8, 3, 3, 5 })
  lu.assertEquals(l(dc.zeros "f32[2, 3, 6, 6]").shape, { 2, 8, 6, 6 })
  lu.assertEquals(tostring(l):match "nn.*", "nn.Conv2d 3 -> 8, 3x5")
  lu.assertTrue(l.weight:abs():max():item() <= (3 * 15) ^ -0.5)
  local b = nn.Conv2d(2, 4, 1, { groups = 2 })
  near(b(dc.zeros "f32[1, 2, 3, 3]"), b.bias:reshape(1, 4, 1, 1):expand(1, 4, 3, 3), 0)
  fails("3 and 4 channels do not divide into 2 groups", nn.Conv2d, 3, 4, 1, { groups = 2 })
  fails("the window is an integer from 1 on", nn.Conv2d, 3, 4, 0)
  fails('padding "same" is for stride 1', nn.Conv2d, 3, 4, 3, { stride = 2, padding = "same" })
end

function TestImageLayers:test_batch_norm()
  local l = nn.BatchNorm2d(3, { momentum = 0.5 })
  local x = dc.randn("f32[4, 3, 5, 5]", { seed = 1 }) * 3 + 2
  local y = l(x)
  near(y:mean { 1, 3, 4 }, dc.zeros "f32[3]", 1e-5)
  near((y * y):mean { 1, 3, 4 }, dc.ones "f32[3]", 1e-3)
  local mean = x:mean { 1, 3, 4 }
  local var = (x - mean:reshape(1, 3, 1, 1)):square():sum { 1, 3, 4 } / 99
  near(l.running_mean, mean * 0.5, 1e-5)
  near(l.running_var, var * 0.5 + 0.5, 1e-4)
  l:eval()
  local before = l.running_mean:totable()
  near(l(x), (x - l.running_mean:reshape(1, 3, 1, 1)) / (l.running_var:reshape(1, 3, 1, 1) + 1e-5):sqrt(), 1e-4)
  lu.assertEquals(l.running_mean:totable(), before)
  fails("nn.BatchNorm2d: x is f32[4, 2, 5, 5]; [batch, 3, height, width] is needed", l, dc.zeros "f32[4, 2, 5, 5]")
  lu.assertEquals(#nn.BatchNorm2d(3, { affine = false }):parameters(), 0)
end

-- The slope of the loss along a direction, by the gradient and by a difference.
function TestImageLayers:test_gradient_of_a_network()
  local net = nn.Sequential {
    nn.Conv2d(1, 4, 3, { padding = 1 }), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(4, 6, 3, { stride = 2 }), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(6, 3),
  }
  local x = dc.randn("f32[5, 1, 12, 12]", { seed = 2 })
  local params = net:parameters()
  local f = dc.fn("f(v: f32[5, 1, 12, 12]) -> f32[]", function(v)
    return net(v):square():sum()
  end)
  local first = f(x):item()
  local opt = optim.SGD(params, { lr = 1e-4 })
  local grads = dc.grad(net(x):square():sum(), params)
  local slope = 0
  for _, g in ipairs(grads) do
    slope = slope + g:square():sum():item()
  end
  local step = dc.fn("step(v: f32[5, 1, 12, 12]) -> f32[]", function(v)
    local loss = net(v):square():sum()
    opt:step(loss)
    return loss
  end)
  lu.assertAlmostEquals(step(x):item(), first, 1e-3)
  lu.assertAlmostEquals((first - f(x):item()) / (1e-4 * slope), 1, 0.1)
end
