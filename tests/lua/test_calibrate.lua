-- nn.calibrate: steps that each method finds, products with a fixed step beside the same sums in f64, a trained net,
-- files, mistakes.
-- luacheck: ignore 431 432
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local check = require "tests.lua.check"

local fails = check.fails

TestCalibrate = {}

local function random(type, seed)
  return dc.randn(type, { seed = seed })
end

local function near(got, want, tolerance, what)
  local d, most = (got:cast "f64" - want:cast "f64"):abs():max():item(), want:abs():max():item()
  lu.assertTrue(d <= tolerance * math.max(most, 1e-30), ("%s: off by %g of %g"):format(what, d, most))
end

local function quantized(sizes, options, type)
  local net = nn.Sequential {}
  for i = 1, #sizes - 1 do
    net[2 * i - 1] = nn.Linear(sizes[i], sizes[i + 1])
    net[2 * i] = i < #sizes - 1 and nn.ReLU() or nil
  end
  return nn.quantize(net, type or "q8_0", options)
end

-- ---- steps ----

function TestCalibrate:test_methods()
  local function batch(...)
    return dc.concat({ dc.tensor { { ... } }, dc.zeros(("f32[1, %d]"):format(32 - select("#", ...))) }, 2)
  end
  local batches = { batch(1, -2), batch(-4, 3), batch(0.5) }
  local function step(bits, options)
    local net = nn.calibrate(quantized({ 32, 4 }, { activations = bits }), batches, options)
    return net[1].input_scale:item()
  end
  lu.assertAlmostEquals(step(8), 4 / 127, 1e-8)
  lu.assertAlmostEquals(step(16), 4 / 32512, 1e-10)
  lu.assertAlmostEquals(step(8, { method = "moving_average" }), (2.02 + 0.01 * (0.5 - 2.02)) / 127, 1e-8)
  lu.assertAlmostEquals(step(8, { method = "moving_average", averaging_constant = 0.5 }), 1.75 / 127, 1e-8)
  lu.assertAlmostEquals(step(8, { method = "percentile", percentile = 100 }), 4 / 127, 1e-8)
  -- of 96 numbers 91 are 0, then come 0.5, 1, 2, 3, 4
  lu.assertAlmostEquals(step(8, { method = "percentile", percentile = 100 * 94 / 96 }), 2 / 127, 4 / 1024 / 127)
  lu.assertAlmostEquals(step(8, { method = "percentile", percentile = 100 * 92 / 96 }), 0.5 / 127, 4 / 1024 / 127)
end

function TestCalibrate:test_ways_of_batches()
  local x = random("f32[8, 64]", 1)
  local function steps(batches, options)
    local net = nn.calibrate(quantized({ 64, 64, 4 }, { activations = 8 }), batches, options)
    return net[1].input_scale:item()
  end
  local want = x:abs():max():item() / 127
  lu.assertAlmostEquals(steps { x }, want, 1e-7)
  lu.assertAlmostEquals(steps { { x, 3 } }, want, 1e-7)
  lu.assertAlmostEquals(steps({ { 2, x } }, { call = function(net, two, x) return net(x * two) end }), 2 * want, 1e-7)
  local n = 0
  lu.assertAlmostEquals(steps(function()
    n = n + 1
    if n <= 4 then return x[{ { 2 * n - 1, 2 * n } }] end
  end), want, 1e-7)
  lu.assertEquals(n, 5)
  local set = require("deepc.data").set(x, dc.iota "i32[8]")
  lu.assertAlmostEquals(steps(set:batches { size = 4 }), want, 1e-7)
end

-- ---- products ----

-- x as multiples of a step mean it, in f64.
local function stepped(x, step, bits)
  local most = bits == 8 and 127 or 127 * 256
  return (x * (1 / step)):round():clamp(-most, most):cast "f64" * step:cast "f64"
end

local function check_product(q, x, bits, what)
  local step = dc.full("f32[]", 0.01 / (bits == 8 and 1 or 256))
  nn.calibrate(q, { dc.full(("f32[1, %d]"):format(q.inputs), 0.01 * 127) })
  near(q.input_scale, step, 1e-6, what)
  local want = stepped(x, q.input_scale, bits):matmul(q:dequantize():cast "f64")
  want = q.bias and want + q.bias:cast "f64" or want
  local f = dc.fn(("f(x: f32[m, %d]) -> f32[m, %d]"):format(q.inputs, q.outputs), function(x) return q(x) end)
  near(f(x), want, 2e-6, what)
  near(q(x), want, 2e-6, what .. ", outside")
end

function TestCalibrate:test_products()
  local seed = 1
  for _, type in ipairs { "q8_0", "q4_0" } do
    for _, m in ipairs { 1, 2, 5, 33 } do
      for _, kn in ipairs { { 32, 16 }, { 64, 20 }, { 192, 80 } } do
        local bits = seed % 2 == 0 and 8 or 16
        local q = nn.QuantizedLinear(nn.Linear(kn[1], kn[2]), type, { activations = bits })
        local x = random(("f32[%d, %d]"):format(m, kn[1]), seed) -- beyond the range, too
        check_product(q, x, bits, ("%s, %d bits, %d x %d x %d"):format(type, bits, m, kn[1], kn[2]))
        seed = seed + 1
      end
    end
  end
end

-- Blocks with a least number.
function TestCalibrate:test_products_of_types_with_mins()
  local path, rows, state = os.tmpname() .. ".gguf", {}, 7
  for i = 0, 20 * 4 * 20 - 1 do
    state = (state * 1103515245 + 12345) & 0x7fffffff
    local high = state >> 16 & 255
    rows[#rows + 1] = string.char((i % 20 == 1 or i % 20 == 3) and high & 0x83 | 0x20 or high)
  end
  local head = "GGUF" .. ("<I4I8I8"):pack(3, 1, 0) .. ("<s8I4I8I8I4I8"):pack("w", 2, 128, 20, 3, 0)
  local f <close> = io.open(path, "wb")
  f:write(head, ("\0"):rep(-#head % 32), table.concat(rows))
  f:close()
  for _, bits in ipairs { 8, 16 } do
    local q = nn.QuantizedLinear(dc.load(path, nil, { packed = true }).w, "q4_1", { activations = bits })
    for _, m in ipairs { 1, 9 } do
      check_product(q, random(("f32[%d, 128]"):format(m), m), bits, "q4_1")
    end
  end
  os.remove(path)
end

function TestCalibrate:test_numbers_that_are_not_usual()
  local q = quantized({ 64, 8 }, { activations = 8 })
  local x = random("f32[3, 64]", 3)
  nn.calibrate(q, { x })
  local most = x:abs():max():item()
  near(q(x:sign() * 1e30), q(x:sign() * most), 1e-6, "saturated")
  near(q(x:sign() * (1 / 0)), q(x:sign() * most), 1e-6, "infinite")
  local y = q(dc.where(dc.iota(64):eq(40) & dc.iota(3):reshape(3, 1):eq(1), 0 / 0, x))
  lu.assertEquals(y:isnan():all(2):totable(), { false, true, false })
  lu.assertEquals(y:isnan():any(2):totable(), { false, true, false })
end

function TestCalibrate:test_gradients_are_those_of_the_weights()
  local q = nn.QuantizedLinear(nn.Linear(64, 20), "q4_0")
  local x, g = random("f32[5, 64]", 7), random("f32[5, 20]", 8)
  nn.calibrate(q, { x })
  local f = dc.fn("f(x: f32[5, 64], g: f32[5, 20]) -> f32[5, 64]", function(x, g)
    return dc.grad((q(x) * g):sum(), x)
  end)
  near(f(x, g), g:matmul(q:dequantize():transpose()), 1e-5, "dx")
end

-- A function that was compiled before is another one behind it; a step that changes is no other structure.
function TestCalibrate:test_functions_see_it()
  local net = quantized({ 64, 64, 10 }, { activations = 8 })
  local x = random("f32[4, 64]", 2)
  local f = dc.fn("f(x: f32[4, 64]) -> f32[4, 10]", function(x) return net(x) end)
  local before = f(x)
  nn.calibrate(net, { x })
  local fixed = f(x)
  lu.assertTrue(fixed:ne(before):any():item())
  near(fixed, net(x), 1e-6, "outside")
  local count = #f:info()
  nn.calibrate(net, { x * 0.25 })
  lu.assertTrue(f(x):ne(fixed):any():item())
  nn.calibrate(net, { x })
  lu.assertEquals(f(x):totable(), fixed:totable())
  lu.assertEquals(#f:info(), count)
  lu.assertEquals(tostring(net[1]), "nn.QuantizedLinear 64 -> 64, q8_0, static")
  net:cast "bf16"
  lu.assertEquals(net[1].input_scale.dtype, "f32")
end

-- ---- a net that has been trained ----

-- Points on three arms of a spiral, of which a net learns 95 in 100. With 8 bits no more than 1 in 100 are told
-- otherwise than by floats, whether steps are fixed or not.
function TestCalibrate:test_accuracy()
  dc.seed(3)
  local function points(n, seed)
    local class = dc.iota(n) % 3
    local t = dc.rand(("f32[%d]"):format(n), { seed = seed })
    local angle = class:cast "f32" * 2.0944 + t * 4 + random(("f32[%d]"):format(n), seed + 1) * 0.15
    local wide = dc.stack({ t * angle:cos(), t * angle:sin() }, 2)
    return dc.concat({ wide, wide * wide, wide:sin() * 2, dc.zeros(("f32[%d, 26]"):format(n)) }, 2), class
  end
  local net = nn.Sequential { nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3) }
  local opt = require("deepc.optim").Adam(net:parameters(), { lr = 0.01 })
  local x, class = points(600, 10)
  local step = dc.fn("step(x: f32[600, 32], y: i32[600]) -> f32[]", function(x, y)
    local loss = nn.cross_entropy(net(x), y)
    opt:step(loss)
    return loss
  end)
  for _ = 1, 200 do step(x, class) end
  net:eval()
  local test, truth = points(3000, 20)
  local function told()
    return net(test):argmax(2)
  end
  local floats = told()
  local function share(a, b)
    return a:eq(b):cast "f32":mean():item()
  end
  lu.assertTrue(share(floats, truth) > 0.93, ("%g"):format(share(floats, truth)))
  nn.quantize(net, "q8_0", { activations = 8 })
  lu.assertTrue(share(told(), floats) >= 0.99, ("dynamic: %g"):format(share(told(), floats)))
  for _, method in ipairs { "minmax", "moving_average", "percentile" } do
    nn.calibrate(net, { x[{ { 1, 200 } }], x[{ { 201, 400 } }], x[{ { 401, 600 } }] }, { method = method })
    lu.assertTrue(share(told(), floats) >= 0.99, ("%s: %g"):format(method, share(told(), floats)))
    lu.assertTrue(math.abs(share(told(), truth) - share(floats, truth)) <= 0.01)
  end
end

function TestCalibrate:test_models()
  local models = require "deepc.models"
  local net = models.llama { vocab_size = 50, hidden_size = 64, intermediate_size = 96, num_hidden_layers = 2,
    num_attention_heads = 4 }
  net:eval()
  local ids = dc.randint("i32[1, 9]", { high = 50, seed = 4 })
  nn.quantize(net, "q8_0")
  local want = net(ids)
  nn.calibrate(net, { ids })
  near(net(ids), want, 2e-3, "llama")
  lu.assertEquals(tostring(net.model.layers[1].mlp.up_proj), "nn.QuantizedLinear 64 -> 96, q8_0, static")
  near(net:step({ 3, 1, 4 }, net:cache(16)), net(dc.tensor({ { 3, 1, 4 } }, "i32"))[{ {}, 3 }], 1e-4, "a step")
end

-- ---- files ----

function TestCalibrate:test_files()
  local path = os.tmpname() .. ".safetensors"
  local net, x = quantized({ 64, 64, 10 }, { activations = 8 }), random("f32[4, 64]", 2)
  nn.calibrate(net, { x })
  dc.save(path, net)
  local other = quantized({ 64, 64, 10 }, { activations = 8, static = true })
  lu.assertFalse(other(x):isfinite():any():item())
  dc.load(path, other)
  lu.assertEquals(other[1].input_scale:item(), net[1].input_scale:item())
  lu.assertEquals(other(x):totable(), net(x):totable())
  fails("'1.input_scale', '3.input_scale' have no place", dc.load, path, quantized { 64, 64, 10 })
  os.remove(path)
end

-- ---- mistakes ----

function TestCalibrate:test_mistakes()
  local x = random("f32[4, 64]", 2)
  local function net() return quantized({ 64, 64, 10 }, { activations = 8 }) end
  local function refused(text, batches, options, of)
    of = of or net()
    fails(text, nn.calibrate, of, batches, options)
    lu.assertNil(of[1].input_scale)
    lu.assertIsFunction(of.call or print)
  end
  refused("nn.calibrate: there is no batch", {})
  refused("there is no batch", function() end)
  refused("batches are a list of tensors, or what `for` takes, not f32[4, 64]", x)
  refused("batches are a list of tensors, or what `for` takes, not nil", nil)
  refused("what goes into '1' (nn.QuantizedLinear 64 -> 64, q8_0) is not finite in batch 2",
    { x, dc.where(x:gt(1), 0 / 0, x) })
  refused("what goes into '1' (nn.QuantizedLinear 64 -> 64, q8_0) is not finite in batch 1", { x / 0 })
  local broken = net()
  broken[1].bias:set(broken[1].bias * (0 / 0))
  refused("what goes into '3' (nn.QuantizedLinear 64 -> 10, q8_0) is not finite in batch 1", { x }, nil, broken)
  refused("no batch reached '3'", { x }, { call = function(net, x) return net[1](x) end })
  refused("no batch reached '1', '3'", { x }, { call = function() end })
  refused("what goes into '1' is 0 in all batches", { x * 0 })
  refused("a batch is a tensor, or a list of what the network takes, not the number 3", { x, 3 })
  refused("'1' is called inside a typed function, where nothing has a value", { x }, { call = function(net, x)
    return dc.fn("f(x: f32[4, 64]) -> f32[4, 10]", function(x) return net(x) end)(x)
  end })
  refused('method is "minmax", "moving_average" or "percentile", not \'entropy\'', { x }, { method = "entropy" })
  refused("percentile is a number above 0, 100 at most, not 101", { x }, { method = "percentile", percentile = 101 })
  refused("averaging_constant is a number above 0, 1 at most, not 0", { x },
    { method = "moving_average", averaging_constant = 0 })
  refused('percentile is for method = "percentile"', { x }, { percentile = 99 })
  refused('averaging_constant is for method = "moving_average"', { x }, { averaging_constant = 0.1 })
  refused("call is a function of the network and what a batch has, not the number 3", { x }, { call = 3 })
  refused("unknown option 'bits'", { x }, { bits = 8 })
  fails("nn.Sequential has no quantised linear layer of integers", nn.calibrate, nn.Sequential { nn.Linear(64, 4) },
    { x })
  fails("floats of 8 bits multiply what goes in as it is", nn.calibrate, quantized({ 64, 4 }, nil, "f8_e4m3"), { x })
  fails("static is of integers; floats of 8 bits, 'f8_e5m2', multiply what goes in as it is", quantized, { 64, 4 },
    { static = true }, "f8_e5m2")
  fails("static", quantized, { 64, 4 }, { static = 1 })
  fails("the last axis of x has to have 64 elements", nn.calibrate, net(), { dc.ones "f32[2, 3]" })
  local good = net()
  pcall(nn.calibrate, good, { dc.ones "f32[2, 3]" })
  lu.assertTrue(good(x):isfinite():all():item()) -- nothing is observed any more
end
