-- L-BFGS, and averages of parameters. Values are compared with PyTorch's in tests/peers.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local check = require "tests.lua.check"

local fails = check.fails

local function valley(x)
  return 100 * (x[2] - x[1] ^ 2) ^ 2 + (1 - x[1]) ^ 2
end

TestLbfgs = {}

function TestLbfgs:test_finds_the_minimum()
  for _, t in ipairs { "f32[2]", "f64[2]" } do
    local x = dc.param(t, { -1.2, 1 })
    local opt = optim.LBFGS({ x }, { line_search = "strong_wolfe", history_size = 5 })
    local first = opt:step(function() return valley(x) end)
    lu.assertAlmostEquals(first:item(), 24.2, 1e-4)
    for _ = 1, 2 do
      opt:step(function() return valley(x) end)
    end
    check.close(x:totable(), { 1, 1 }, 1e-4)
  end
end

-- One iteration for each step: its line search may take more evaluations than max_eval, which is 1 then.
function TestLbfgs:test_single_iterations()
  local x = dc.param("f64[2]", { -1.2, 1 })
  local opt = optim.LBFGS({ x }, { line_search = "strong_wolfe", max_iter = 1 })
  for _ = 1, 40 do
    opt:step(function() return valley(x) end)
  end
  check.close(x:totable(), { 1, 1 }, 1e-4)
end

-- What changes from step to step is an argument: nothing is compiled again, and frozen parameters stay.
function TestLbfgs:test_objective()
  local net = nn.Linear(3, 1)
  local inputs = dc.randn("f32[16, 3]", { seed = 1 })
  local targets = inputs:sum { axis = 2, keep = true } * 0.5 + 2
  local opt = optim.LBFGS(net:parameters(), { line_search = "strong_wolfe", max_iter = 6 })
  local objective = opt:objective("objective(x: f32[n, 3], y: f32[n, 1]) -> f32[]", function(x, y)
    return nn.mse_loss(net(x), y)
  end)
  opt:step(objective, inputs, targets)
  local compiled = dc.stats().compiles
  opt.lr = 0.5
  for _ = 1, 3 do
    opt:step(objective, inputs, targets)
  end
  lu.assertEquals(dc.stats().compiles, compiled)
  check.close(net.weight:reshape(3):totable(), { 0.5, 0.5, 0.5 }, 1e-4)
  lu.assertAlmostEquals(net.bias:reshape(-1)[1]:item(), 2, 1e-4)
end

-- A run that goes on from what is saved takes the same steps.
function TestLbfgs:test_checkpoints()
  local path, a = os.tmpname(), dc.param("f64[2]", { -1.2, 1 })
  local first = optim.LBFGS({ a }, { max_iter = 4, line_search = "strong_wolfe", history_size = 3 })
  first:step(function() return valley(a) end)
  dc.save(path, { x = a, opt = first })
  local b = dc.param "f64[2]"
  local second = optim.LBFGS({ b }, { max_iter = 4, line_search = "strong_wolfe", history_size = 3 })
  dc.load(path, { x = b, opt = second })
  os.remove(path)
  first:step(function() return valley(a) end)
  second:step(function() return valley(b) end)
  lu.assertEquals(b:totable(), a:totable())
end

function TestLbfgs:test_mistakes()
  local w, h = dc.param "f32[]", dc.param "f16[]"
  fails("optim.LBFGS: groups are not taken", optim.LBFGS, { { params = { w } } })
  fails("optim.LBFGS: parameter 1 is f16[]", optim.LBFGS, { h })
  fails("optim.LBFGS: max_iter is a positive integer, not 0", optim.LBFGS, { w }, { max_iter = 0 })
  fails('optim.LBFGS: line_search is "strong_wolfe", not \'wolfe\'', optim.LBFGS, { w }, { line_search = "wolfe" })
  local opt = optim.LBFGS { w }
  fails("step: a function that returns the loss is needed, not f32[]", opt.step, opt, w * w)
  fails("step: the function returns nil, the loss is needed", opt.step, opt, function() end)
  fails("opt:objective(signature, body) makes a typed one", opt.step, opt,
    dc.fn("f() -> f32[]", function() return w * w end))
  fails("opt:step of optim.LBFGS", dc.fn, "f()", function() opt:step(function() return w * w end) end)
  fails("optim.LBFGS has no setting 'max_iter' to assign", function() opt.max_iter = 3 end)
end

TestAverages = {}

function TestAverages:test_ema_and_swa()
  local w = dc.param("f32[2]", { 1, 2 })
  local ema, swa = optim.EMA({ w }, 0.5), optim.SWA { w }
  local step = dc.fn("step()", function()
    w:set(w + 1)
    ema:update()
    swa:update()
  end)
  for _ = 1, 3 do
    step()
  end
  local compiled = dc.stats().compiles
  ema.decay = 0
  lu.assertEquals(ema:averaged(function() return w:totable() end), { 2 * 0.25 + 3 * 0.25 + 4 * 0.5, 4.25 })
  check.close(swa:averaged(function() return w:totable() end), { 3, 4 })
  step()
  lu.assertEquals(ema:averaged(function() return w:totable() end), { 5, 6 })
  lu.assertEquals(w:totable(), { 5, 6 })
  lu.assertEquals(dc.stats().compiles, compiled)
  local read = dc.fn("read(k: f32[]) -> f32[2]", function(k) return w * k end)
  lu.assertEquals(ema:averaged(read, 2):totable(), { 10, 12 })
end

function TestAverages:test_warm_up()
  local w = dc.param("f64[]", 0)
  local ema = optim.EMA({ w }, 0.5, { warmup = true })
  local step = dc.fn("step()", function()
    w:set(w + 1)
    ema:update()
  end)
  local want
  for n = 1, 30 do
    step()
    local d = math.min(0.5, (1 + n) / (10 + n)) -- 0.5 from the eighth on
    want = n == 1 and 1 or d * want + (1 - d) * n
    lu.assertAlmostEquals(ema:averaged(function() return w:item() end), want, 1e-12)
  end
  local compiled = dc.stats().compiles
  ema.decay = 0
  step()
  lu.assertEquals(ema:averaged(function() return w:item() end), 31)
  lu.assertEquals(dc.stats().compiles, compiled)
  fails("optim.EMA: unknown option 'warm_up'", optim.EMA, { w }, 0.5, { warm_up = true })
  fails("optim.EMA: warmup is true or false, not the number 10", optim.EMA, { w }, 0.5, { warmup = 10 })
end

function TestAverages:test_layers_and_files()
  local net = nn.Sequential { nn.Linear(2, 2), nn.Linear(2, 1) }
  local ema = optim.EMA(net, 0.9)
  ema:update()
  local names = {}
  for i, named in ipairs(ema:named_cells()) do
    names[i] = named[1]
  end
  lu.assertEquals(table.concat(names, " "),
    "average.1.bias average.1.weight average.2.bias average.2.weight count decay")
  local path = os.tmpname()
  dc.save(path, { net = net, ema = ema })
  dc.load(path, { net = net, ema = optim.EMA(net, 0.9) })
  os.remove(path)
  local before = net[1].weight:totable()
  net[1].weight:set(dc.zeros "f32[2, 2]")
  ema:swap_in()
  lu.assertEquals(net[1].weight:totable(), before)
  fails("named_cells: the averages are swapped in", ema.named_cells, ema)
  fails("update: the averages are swapped in", ema.update, ema)
  fails("swap_in: the averages are swapped in", ema.swap_in, ema)
  ema:swap_out()
  fails("swap_out: the averages are not swapped in", ema.swap_out, ema)
  lu.assertEquals(net[1].weight:sum():item(), 0)
  fails("no", ema.averaged, ema, function() error "no" end)
  lu.assertEquals(net[1].weight:sum():item(), 0) -- back after an error
end

-- Averages of f16 parameters are f32: parameters come back to the bit.
function TestAverages:test_short_floats()
  local w = dc.param("f16[2]", { 1, 0.1 })
  local ema = optim.EMA({ w }, 0.999)
  ema:update()
  w:set(dc.tensor({ 2, 0.3 }, "f16[2]"))
  ema:update()
  check.close(ema:named_cells()[1][2]:totable(), { 1.001, 0.0999756 + 0.001 * 0.2 }, 1e-6)
  ema:averaged(function() end)
  lu.assertEquals(w:totable()[1], 2)
end

function TestAverages:test_mistakes()
  fails("optim.EMA: decay is 1; it is 0 or more, and below 1", optim.EMA, { dc.param "f32[]" }, 1)
  fails("optim.EMA: a list of parameters is needed, not nil", optim.EMA)
  fails("optim.SWA has no setting 'decay'", function() optim.SWA({ dc.param "f32[]" }).decay = 1 end)
  fails("optim.SWA: the layer has no parameters that are trained", optim.SWA, nn.ReLU())
end
