-- Products of 16 bits inside dc.autocast, and losses that are scaled for f16.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local check = require "tests.lua.check"

local fails = check.fails

local a, b = dc.randn("f32[3, 4]", { seed = 1 }), dc.randn("f32[4, 5]", { seed = 2 })

local function by_hand(x, y, dtype)
  return x:cast(dtype):matmul(y:cast(dtype)):cast "f32"
end

local function same(x, y)
  lu.assertEquals(x.dtype, y.dtype)
  lu.assertTrue(x:eq(y):all():item())
end

TestAutocast = {}

function TestAutocast:test_products()
  for _, dtype in ipairs { "bf16", "f16" } do
    local product = dc.autocast(dtype, function(x, y) return x:matmul(y) end)
    local want = by_hand(a, b, dtype)
    same(product(a, b), want)
    lu.assertFalse(want:eq(a:matmul(b)):all():item())
    same(dc.fn("f(x: f32[3, 4], y: f32[4, 5]) -> f32[3, 5]", function(x, y) return product(x, y) end)(a, b), want)
    same(dc.autocast(dtype, function() return dc.einsum("i k, k j -> i j", a, b) end)(), want)
  end
  local image, kernel = dc.randn("f32[1, 2, 5, 5]", { seed = 3 }), dc.randn("f32[3, 2, 3, 3]", { seed = 4 })
  same(dc.autocast("bf16", dc.conv2d)(image, kernel, { padding = 1 }),
    dc.conv2d(image:cast "bf16", kernel:cast "bf16", { padding = 1 }):cast "f32")
  local back = dc.randn("f32[2, 3, 3, 3]", { seed = 5 })
  same(dc.autocast("bf16", dc.conv_transpose2d)(image, back),
    dc.conv_transpose2d(image:cast "bf16", back:cast "bf16"):cast "f32")
end

-- What is no product, what is f64, what is 16 bits already, and what "f32" switches off.
function TestAutocast:test_what_it_leaves_alone()
  local wide, plain, sums = a:cast "f64", a:matmul(b), a:sum(2)
  local product = wide:matmul(b:cast "f64")
  dc.autocast("bf16", function()
    same(wide:matmul(b:cast "f64"), product)
    same(dc.einsum("i j -> i", a), sums)
    lu.assertEquals(a:cast("bf16"):matmul(b:cast "bf16").dtype, "bf16")
    same(a:cast("bf16"):matmul(b), by_hand(a, b, "bf16")) -- of both
    same(dc.autocast("f32", function() return a:matmul(b) end)(), plain)
  end)()
  lu.assertFalse(a:matmul(b):eq(by_hand(a, b, "bf16")):all():item())
end

function TestAutocast:test_ends_with_the_call()
  fails("no", dc.autocast("bf16", function() error "no" end))
  lu.assertFalse(a:matmul(b):eq(by_hand(a, b, "bf16")):all():item())
  -- a typed function that is traced inside knows nothing of it, and one that is compiled is not called there
  local f
  dc.autocast("bf16", function()
    f = dc.fn("f(x: f32[3, 4]) -> f32[3, 5]", function(x) return x:matmul(b) end)
  end)()
  same(f(a), f(a))
  lu.assertFalse(f(a):eq(by_hand(a, b, "bf16")):all():item())
  fails("autocast: 'f' is compiled as it stands", dc.autocast("bf16", f), a)
  local outer = dc.fn("outer(x: f32[3, 4]) -> f32[3, 5]", function(x) return dc.autocast("bf16", f)(x) end)
  same(outer(a), by_hand(a, b, "bf16")) -- inlined
end

function TestAutocast:test_gradients_are_products_of_16_bits()
  local w = dc.param("f32[4, 5]", b)
  local g = dc.grad(dc.autocast("bf16", function() return a:matmul(w) end)():square():sum(), w)
  lu.assertEquals(g.dtype, "f32")
  local y = by_hand(a, b, "bf16")
  same(g, by_hand(a:transpose(), y * 2, "bf16"))
end

function TestAutocast:test_layers_and_training()
  local net = nn.Sequential { nn.Linear(4, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 2) }
  local forward = dc.autocast("bf16", net)
  local opt = optim.AdamW(net:parameters(), { lr = 1e-2 })
  local step = dc.fn("step(x: f32[n, 4], y: i32[n]) -> f32[]", function(x, y)
    local loss = nn.cross_entropy(forward(x), y)
    opt:step(loss)
    return loss
  end)
  local x = dc.randn("f32[32, 4]", { seed = 5 })
  local y = x:sum(2):gt(0):cast "i32"
  local first = step(x, y):item()
  for _ = 1, 50 do
    step(x, y)
  end
  lu.assertTrue(step(x, y):item() < first / 2)
  lu.assertEquals(net[1].weight.dtype, "f32")
end

function TestAutocast:test_mistakes()
  fails('autocast: the dtype is "bf16", "f16" or "f32", not \'f8\'', dc.autocast, "f8", print)
  fails("autocast: a function or a layer is needed, not f32[3, 4]", dc.autocast, "bf16", a)
  fails("autocast: a function or a layer is needed, not nil", dc.autocast, "bf16")
end

TestScaler = {}

-- Scales and counts of torch.amp.GradScaler, by its rule; a gradient that overflows changes nothing else.
function TestScaler:test_scale()
  local w = dc.param("f32[2]", 1)
  local opt = optim.Adam({ w }, { lr = 0.1 })
  local scaler = optim.GradScaler { scale = 8, growth_interval = 2 }
  local step = dc.fn("step(k: f32[2])", function(k) scaler:step(opt, (w * k):sum()) end)
  local function of(k)
    local before = w:totable()
    step(k)
    return scaler.scale:item(), before[1] ~= w:totable()[1]
  end
  lu.assertEquals({ of { 1, 1 } }, { 8, true })
  local compiled = dc.stats().compiles
  lu.assertEquals({ of { 1, 1 } }, { 16, true })
  lu.assertEquals({ of { 1, math.huge } }, { 8, false })
  lu.assertEquals({ of { 0 / 0, 1 } }, { 4, false })
  lu.assertEquals({ of { 1, 1 } }, { 4, true })
  lu.assertEquals({ of { 1, 1 } }, { 8, true })
  lu.assertEquals(opt:named_cells()[7][2]:item(), 4) -- steps that were taken
  scaler.scale = 2
  lu.assertEquals({ of { 1, 1 } }, { 2, true })
  lu.assertEquals(dc.stats().compiles, compiled)
  lu.assertEquals(scaler:named_cells()[2][2]:item(), 1)
end

-- Gradients are those of the loss itself, and f16 keeps what it would lose.
function TestScaler:test_small_gradients()
  local x, moved = dc.full("f32[1, 1]", 1e-4), {}
  for i, scaler in ipairs { false, optim.GradScaler() } do
    local w = dc.param("f32[1, 1]", 1)
    local opt = optim.SGD({ w }, { lr = 1e6 })
    local loss = dc.autocast("f16", function() return x:matmul(w):sum() * 1e-4 end)()
    if scaler then
      scaler:step(opt, loss)
    else
      opt:step(loss)
    end
    moved[i] = 1 - w:item()
  end
  lu.assertTrue(math.abs(moved[1] - 0.01) > 1e-3)
  lu.assertAlmostEquals(moved[2], 0.01, 2e-5)
end

-- With accumulated gradients the sum counts, and the scale moves when there is an update.
function TestScaler:test_accumulated()
  local w = dc.param("f32[]", 1)
  local opt = optim.SGD({ w }, { lr = 1, accumulate = 2 })
  local scaler = optim.GradScaler { scale = 4, growth_interval = 1 }
  local step = dc.fn("step(k: f32[])", function(k) scaler:step(opt, w * k) end)
  step(1)
  lu.assertEquals({ w:item(), scaler.scale:item() }, { 1, 4 })
  step(3)
  lu.assertEquals({ w:item(), scaler.scale:item() }, { -1, 8 })
  step(math.huge)
  step(1)
  lu.assertEquals({ w:item(), scaler.scale:item() }, { -1, 4 })
  step(1)
  step(1)
  lu.assertEquals({ w:item(), scaler.scale:item() }, { -2, 8 })
end

function TestScaler:test_mistakes()
  fails("optim.GradScaler: growth_factor is 1", optim.GradScaler, { growth_factor = 1 })
  fails("optim.GradScaler: unknown option 'init_scale'", optim.GradScaler, { init_scale = 1 })
  local scaler = optim.GradScaler()
  fails("step: an optimiser is needed, not f32[]", scaler.step, scaler, dc.zeros "f32[]")
  fails("optim.GradScaler has no setting 'good' to assign", function() scaler.good = 3 end)
end
