-- Layers, losses and optimisers.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local check = require "tests.lua.check"

local fails, close = check.fails, check.close

TestLayers = {}

function TestLayers:test_linear()
  local l = nn.Linear(3, 2)
  lu.assertEquals(l.weight.shape, { 3, 2 })
  lu.assertEquals(l.bias.shape, { 2 })
  l.weight:set { { 1, 2 }, { 3, 4 }, { 5, 6 } }
  l.bias:set { 10, 20 }
  lu.assertEquals(l(dc.tensor { { 1, 1, 1 } }):totable(), { { 19, 32 } })
  lu.assertEquals(tostring(l), "nn.Linear 3 -> 2")
  lu.assertNil(nn.Linear(2, 2, { bias = false }).bias)
  fails("nn.Linear: the number of inputs is a positive integer, not nil", nn.Linear)
end

function TestLayers:test_linear_starts_uniform()
  dc.seed(1)
  local w = nn.Linear(100, 50).weight
  lu.assertTrue(w:max():item() < 0.1)
  lu.assertTrue(w:min():item() >= -0.1)
  lu.assertAlmostEquals(w:mean():item(), 0, 0.005)
  lu.assertAlmostEquals((w * w):mean():item(), 0.01 / 3, 0.0003)
  dc.seed(1)
  lu.assertEquals(nn.Linear(100, 50).weight:totable(), w:totable())
end

function TestLayers:test_sequential_flatten_relu()
  local net = nn.Sequential { nn.Flatten(), nn.ReLU(), function(x) return x * 2 end }
  lu.assertEquals(net(dc.tensor { { { 1, -1 }, { 2, -2 } } }):totable(), { { 2, 0, 4, 0 } })
  fails("part 2 is a number, not a layer", nn.Sequential, { nn.ReLU(), 3 })
end

function TestLayers:test_parameters_are_listed_by_path()
  local net = nn.Sequential {}
  for i = 1, 11 do
    net[i] = nn.Linear(1, 1)
  end
  local paths = {}
  for _, p in ipairs(net:named_parameters()) do
    paths[#paths + 1] = p[1]
  end
  lu.assertEquals(#paths, 22)
  lu.assertEquals(paths[1], "1.bias")
  lu.assertEquals(paths[4], "2.weight")
  lu.assertEquals(paths[22], "11.weight")
  lu.assertEquals(#net:parameters(), 22)
end

function TestLayers:test_shared_cells_are_listed_once()
  local a, b = nn.Linear(2, 2), nn.Linear(2, 2)
  b.weight = a.weight
  local net = nn.Sequential { a, b }
  lu.assertEquals(#net:parameters(), 3)
end

function TestLayers:test_all_cells_with_all_their_paths()
  local Counted = nn.class "Counted"
  function Counted:init(inner)
    self.inner, self.again, self.seen = inner, { inner }, dc.state "i32[]"
  end
  local a, b = nn.Linear(2, 2), nn.Linear(2, 2, { bias = false })
  b.weight = a.weight
  local net = nn.Sequential { a, Counted(b) }
  net[1].bias = a.bias
  net:freeze()
  local paths = {}
  for i, entry in ipairs(net:named_cells()) do
    paths[i] = entry[1] .. (entry.also and " = " .. table.concat(entry.also, " = ") or "")
  end
  lu.assertEquals(paths, { "1.bias", "1.weight = 2.again.1.weight = 2.inner.weight", "2.seen" })
  lu.assertIs(net:named_cells()[2][2], a.weight)
end

function TestLayers:test_a_layer_that_holds_itself()
  local Loop = nn.class "Loop"
  function Loop:init() self.weight, self.me = dc.param "f32[]", self end
  lu.assertEquals(#Loop():named_cells(), 1)
  lu.assertEquals(#Loop():parameters(), 1)
end

function TestLayers:test_classes_of_a_user()
  local Block = nn.class "Block"
  function Block:init(n)
    self.inner = nn.Linear(n, n)
    self.parts = { nn.Linear(n, 1), scale = dc.param("f32[]", 2) }
    self.step = dc.state "f32[]"
  end
  function Block:forward(x)
    return self.parts[1](self.inner(x)) * self.parts.scale
  end
  local block = Block(3)
  lu.assertEquals(block(dc.ones "f32[2, 3]").shape, { 2, 1 })
  local paths = {}
  for i, p in ipairs(block:named_parameters()) do
    paths[i] = p[1]
  end
  lu.assertEquals(paths, { "inner.bias", "inner.weight", "parts.1.bias", "parts.1.weight", "parts.scale" })
  local err = fails("in     block.inner (nn.Linear 3 -> 3)", block, dc.ones "f32[2, 4]")
  lu.assertEquals(err.path, "block.inner (nn.Linear 3 -> 3)")
  lu.assertStrContains(tostring(err), "parameter block.inner.weight")
end

TestCrossEntropy = {}

function TestCrossEntropy:test_value()
  local logits = { { 1, 2, 3 }, { 0, 0, 0 } }
  local want = -(math.log(math.exp(3) / (math.exp(1) + math.exp(2) + math.exp(3))) + math.log(1 / 3)) / 2
  lu.assertAlmostEquals(nn.cross_entropy(dc.tensor(logits), dc.tensor({ 2, 0 }, "i32[2]")):item(), want, 1e-6)
  lu.assertAlmostEquals(nn.cross_entropy(dc.tensor(logits), dc.tensor({ 2, 0 }, "u8[2]")):item(), want, 1e-6)
end

function TestCrossEntropy:test_large_logits()
  local l = nn.cross_entropy(dc.tensor { { 1e4, 0 } }, dc.tensor({ 1 }, "i32[1]"))
  lu.assertEquals(l:item(), 1e4)
end

function TestCrossEntropy:test_gradient_is_softmax_minus_one_hot()
  local f = dc.fn("f(x: f32[2, 2], y: i32[2]) -> f32[2, 2]", function(x, y)
    return dc.grad(nn.cross_entropy(x, y), x)
  end)
  local g = f({ { 0, math.log(3) }, { 1, 1 } }, { 0, 1 }):totable()
  close(g[1], { (0.25 - 1) / 2, 0.75 / 2 })
  close(g[2], { 0.25, -0.25 })
end

function TestCrossEntropy:test_types()
  local x = dc.zeros "f32[4, 3]"
  fails("labels are f32[4]; class numbers are integers from 0", nn.cross_entropy, x, dc.zeros "f32[4]")
  fails("logits are f32[4, 3], labels i32[5]", nn.cross_entropy, x, dc.zeros "i32[5]")
  fails("cross_entropy: labels: a tensor is needed, not nil", nn.cross_entropy, x, nil)
end

function TestCrossEntropy:test_class_outside_outside_a_function()
  local err = fails("cross_entropy: class 3 outside 0..2 at row 2", nn.cross_entropy, dc.zeros "f32[3, 3]",
    dc.tensor({ 0, 3, 7 }, "i32[3]"))
  lu.assertEquals(err.code, "DC0701")
  fails("class -1 outside 0..2 at row 3", nn.cross_entropy, dc.zeros "f32[3, 3]", dc.tensor({ 0, 1, -1 }, "i32[3]"))
end

function TestCrossEntropy:test_class_outside_in_a_call()
  local w, count = dc.param("f32[3]", 0), dc.state("i32[]", 0)
  local opt = optim.SGD({ w }, { lr = 1 })
  local step = dc.fn("step(x: f32[4, 3], y: i32[4]) -> f32[]", function(x, y)
    local loss = nn.cross_entropy(x + w, y)
    opt:step(loss)
    count:set(count + 1)
    return loss
  end)
  local x = dc.zeros "f32[4, 3]"
  step(x, { 0, 1, 2, 0 })
  local before = w:totable()
  local err = fails("cross_entropy: class 10 outside 0..2 at row 3", step, x, dc.tensor({ 0, 1, 10, -1 }, "i32[4]"))
  lu.assertStrContains(tostring(err), "argument 'y' of step")
  lu.assertStrMatches(err.at, ".*test_nn.lua:%d+")
  lu.assertEquals(w:totable(), before) -- a call that fails changes no cell
  lu.assertEquals(count:item(), 1)
  step(x, { 0, 1, 2, 0 })
  lu.assertEquals(count:item(), 2)
end

TestOptim = {}

-- Minimises (w - 1)^2 / 2 + (w2)^2: gradients w - 1 and 2 w2.
local function problem(make, options, calls)
  local w, v = dc.param("f32[]", 3), dc.param("f32[2]", { 1, -2 })
  local opt = make({ w, v }, options)
  local step = dc.fn("step() -> f32[]", function()
    local loss = (w - 1) ^ 2 / 2 + (v * v):sum()
    opt:step(loss)
    return loss
  end)
  local losses = {}
  for i = 1, calls do
    losses[i] = step():item()
  end
  return w, v, opt, losses
end

function TestOptim:test_sgd()
  local w, v, _, losses = problem(optim.SGD, { lr = 0.1 }, 2)
  lu.assertEquals(losses[1], 7)
  lu.assertAlmostEquals(w:item(), 1 + 2 * 0.9 ^ 2, 1e-6)
  close(v:totable(), { 0.8 ^ 2, -2 * 0.8 ^ 2 })
end

function TestOptim:test_sgd_with_momentum()
  local w = problem(optim.SGD, { lr = 0.1, momentum = 0.5 }, 3)
  local x, velocity = 3, 0
  for _ = 1, 3 do
    velocity = 0.5 * velocity + (x - 1)
    x = x - 0.1 * velocity
  end
  lu.assertAlmostEquals(w:item(), x, 1e-6)
end

function TestOptim:test_adam()
  local options = { lr = 0.1, beta1 = 0.8, beta2 = 0.95, eps = 1e-3 }
  local w, v = problem(optim.Adam, options, 5)
  local function by_hand(x, slope)
    local m, s = 0, 0
    for t = 1, 5 do
      local g = slope(x)
      m = 0.8 * m + 0.2 * g
      s = 0.95 * s + 0.05 * g * g
      x = x - 0.1 * (m / (1 - 0.8 ^ t)) / ((s / (1 - 0.95 ^ t)) ^ 0.5 + 1e-3)
    end
    return x
  end
  lu.assertAlmostEquals(w:item(), by_hand(3, function(x) return x - 1 end), 1e-5)
  close(v:totable(), {
    by_hand(1, function(x) return 2 * x end),
    by_hand(-2, function(x) return 2 * x end),
  }, 1e-5)
end

function TestOptim:test_first_step_of_adam_is_the_rate()
  local w = problem(optim.Adam, {}, 1)
  lu.assertAlmostEquals(w:item(), 3 - 1e-3, 1e-6)
end

function TestOptim:test_a_setting_acts_without_compiling()
  local w = dc.param("f32[]", 1)
  local opt = optim.SGD({ w }, { lr = 0.5 })
  local step = dc.fn("step() -> ()", function() opt:step(w * 2) end)
  step()
  lu.assertEquals(w:item(), 0)
  local before = dc.stats().compiles
  opt.lr = 2
  step()
  lu.assertEquals(w:item(), -4)
  lu.assertEquals(opt.lr:item(), 2)
  lu.assertEquals(dc.stats().compiles, before)
  fails("optim.SGD has no setting 'rate'", function() opt.rate = 1 end)
  fails("optim.SGD has no 'rate'", function() return opt.rate end)
end

function TestOptim:test_rate_of_a_step()
  local w = dc.param("f32[]", 1)
  local opt = optim.SGD({ w }, { lr = 0.5 })
  local step = dc.fn("step(lr: f32[]) -> ()", function(lr) opt:step(w * 2, { lr = lr }) end)
  step(3)
  lu.assertEquals(w:item(), -5)
  fails("unknown option 'rate'", dc.fn, "f() -> ()", function() opt:step(w * 2, { rate = 1 }) end)
end

function TestOptim:test_a_step_outside_typed_functions()
  local w = dc.param("f32[]", 1)
  optim.SGD({ w }, { lr = 0.25 }):step(w * 2)
  lu.assertEquals(w:item(), 0.5)
end

function TestOptim:test_wrong_parameters()
  fails("optim.Adam: the list of parameters is empty", optim.Adam, {})
  fails("number 1 of the list is f32[], no parameter", optim.SGD, { dc.ones "f32[]" })
  fails("optim.Adam: unknown option 'beta'", optim.Adam, { dc.param "f32[]" }, { beta = 1 })
  fails("loss carries no graph", function()
    local w = dc.param("f32[]", 1)
    optim.SGD({ w }):step(dc.tensor(2))
  end)
end

TestTraining = {}

function TestTraining:test_a_small_net_learns_xor()
  dc.seed(3)
  local net = nn.Sequential { nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2) }
  local opt = optim.Adam(net:parameters(), { lr = 0.02 })
  local x, y = dc.tensor { { 0, 0 }, { 0, 1 }, { 1, 0 }, { 1, 1 } }, dc.tensor({ 0, 1, 1, 0 }, "i32[4]")
  local step = dc.fn("step(x: f32[4, 2], y: i32[4]) -> f32[]", function(x, y) -- luacheck: ignore 431
    local loss = nn.cross_entropy(net(x), y)
    opt:step(loss)
    return loss
  end)
  local first, last = step(x, y):item(), nil
  for _ = 1, 300 do
    last = step(x, y):item()
  end
  lu.assertTrue(first > 0.5)
  lu.assertTrue(last < 0.02, "loss " .. last)
  lu.assertEquals(net(x):argmax(2):totable(), { 0, 1, 1, 0 })
  lu.assertEquals(dc.stats().fallbacks, 0)
end

TestDropout = {}

function TestDropout:test_scale_and_share()
  dc.seed(3)
  local drop = nn.Dropout(0.25)
  local f = dc.fn("f(x: f32[100, 100]) -> f32[100, 100]", function(x) return drop(x) end)
  local x = dc.ones "f32[100, 100]"
  local y = f(x)
  local kept = y:ne(0):cast "f32":mean():item()
  lu.assertAlmostEquals(kept, 0.75, 0.02)
  lu.assertAlmostEquals(y:max():item(), 1 / 0.75, 1e-6)
  lu.assertAlmostEquals(y:mean():item(), 1, 0.03)
  lu.assertTrue(f(x):ne(y):cast "i32":sum():item() > 1000) -- drawn anew
  drop:eval()
  lu.assertEquals(f(x):ne(x):cast "i32":sum():item(), 0)
end

function TestDropout:test_two_are_two_and_the_seed_tells()
  local a, b = nn.Dropout(0.5), nn.Dropout(0.5)
  local f = dc.fn("f(x: f32[1000]) -> f32[1000], f32[1000]", function(x) return a(x), b(x) end)
  local x = dc.ones "f32[1000]"
  dc.seed(5)
  local y, z = f(x)
  lu.assertTrue(y:ne(z):cast "i32":sum():item() > 300)
  local first = y:totable()
  f(x)
  dc.seed(5)
  lu.assertEquals(f(x):totable(), first)
end

function TestDropout:test_the_gradient_goes_through_what_is_kept()
  dc.seed(1)
  local w, drop = dc.param("f32[50]", 1), nn.Dropout(0.5)
  local f = dc.fn("f() -> f32[50], f32[50]", function()
    local y = drop(w)
    return y, dc.grad(y:sum(), w)
  end)
  local y, g = f()
  lu.assertEquals(y:totable(), g:totable())
end

function TestDropout:test_wrong_probabilities()
  for shown, p in pairs { ["1"] = 1, ["-0.1"] = -0.1, ["'half'"] = "half", nan = 0 / 0 } do
    local ok, err = pcall(nn.Dropout, p)
    lu.assertFalse(ok)
    lu.assertStrContains(tostring(err), "p is a number from 0 to below 1, not " .. shown)
  end
end
