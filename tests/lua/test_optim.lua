-- Optimisers beside the formulas of their papers in Lua's doubles, parameter by parameter.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local check = require "tests.lua.check"
local program = require "tests.lua.program"

local fails = check.fails

local function close(got, want, tolerance)
  check.close(got, want, tolerance or 1e-5)
end

-- Gradients differ from step to step and from element to element: those of (a (x - c))^2 / 2.
local START, SCALE, CENTRE = { 3, -2, 0.5, 1 }, { 1, 2, 0.5, 3 }, { 1, 1, -1, 1.001 }

local function slope(x, i)
  return SCALE[i] ^ 2 * (x - CENTRE[i])
end

-- Two parameters: a vector and a scalar. After so many steps all four numbers.
local function train(make, options, steps, rate)
  local v, s = dc.param("f32[3]", { table.unpack(START, 1, 3) }), dc.param("f32[]", START[4])
  local opt = make({ v, s }, options)
  local step = dc.fn("step(lr?: f32[]) -> f32[]", function(lr)
    local a = (v - dc.tensor { table.unpack(CENTRE, 1, 3) }) * dc.tensor { table.unpack(SCALE, 1, 3) }
    local b = (s - CENTRE[4]) * SCALE[4]
    local loss = (a * a):sum() / 2 + b * b / 2
    opt:step(loss, { lr = lr })
    return loss
  end)
  for t = 1, steps do
    step(rate and rate(t))
  end
  local list = v:totable()
  list[4] = s:item()
  return list, opt, step
end

-- The same with update(g, x, memory, t), in doubles; prepare(gradients, parameters) changes the gradients.
local function by_hand(update, steps, prepare)
  local x, memory = { table.unpack(START) }, { {}, {}, {}, {} }
  for t = 1, steps do
    local g = {}
    for i = 1, 4 do
      g[i] = slope(x[i], i)
    end
    if prepare then
      prepare(g, x)
    end
    for i = 1, 4 do
      x[i] = update(g[i], x[i], memory[i], t)
    end
  end
  return x
end

local function decay(w)
  return function(g, x)
    for i = 1, 4 do
      g[i] = g[i] + w * x[i]
    end
  end
end

-- ---- formulas ----

local function sgd(lr, momentum, nesterov)
  return function(g, x, m)
    m.v = (momentum or 0) * (m.v or 0) + g
    return x - lr * (nesterov and g + momentum * m.v or m.v)
  end
end

local function adam(lr, b1, b2, eps, shrink)
  return function(g, x, m, t)
    m.m = b1 * (m.m or 0) + (1 - b1) * g
    m.v = b2 * (m.v or 0) + (1 - b2) * g * g
    x = x * (1 - (shrink or 0) * lr)
    return x - lr * (m.m / (1 - b1 ^ t)) / (math.sqrt(m.v / (1 - b2 ^ t)) + eps)
  end
end

local function rmsprop(lr, alpha, eps, momentum, centered)
  return function(g, x, m)
    m.v = alpha * (m.v or 0) + (1 - alpha) * g * g
    m.mean = alpha * (m.mean or 0) + (1 - alpha) * g
    local q = g / (math.sqrt(m.v - (centered and m.mean ^ 2 or 0)) + eps)
    m.b = (momentum or 0) * (m.b or 0) + q
    return x - lr * m.b
  end
end

TestFormulas = {}

function TestFormulas:test_sgd()
  close((train(optim.SGD, { lr = 0.05 }, 6)), by_hand(sgd(0.05), 6))
  close((train(optim.SGD, { lr = 0.05, momentum = 0.8 }, 6)), by_hand(sgd(0.05, 0.8), 6))
  close((train(optim.SGD, { lr = 0.05, momentum = 0.8, nesterov = true }, 6)), by_hand(sgd(0.05, 0.8, true), 6))
  close((train(optim.SGD, { lr = 0.05, momentum = 0.8, weight_decay = 0.3 }, 6)),
    by_hand(sgd(0.05, 0.8), 6, decay(0.3)))
end

function TestFormulas:test_adam()
  close((train(optim.Adam, { lr = 0.1, beta1 = 0.8, beta2 = 0.95, eps = 1e-3 }, 8)),
    by_hand(adam(0.1, 0.8, 0.95, 1e-3), 8))
  close((train(optim.Adam, { lr = 0.1, weight_decay = 0.5 }, 8)),
    by_hand(adam(0.1, 0.9, 0.999, 1e-8), 8, decay(0.5)), 3e-5)
end

function TestFormulas:test_adamw_decays_beside_the_moments()
  close((train(optim.AdamW, { lr = 0.1, weight_decay = 0.5 }, 8)), by_hand(adam(0.1, 0.9, 0.999, 1e-8, 0.5), 8), 3e-5)
  close((train(optim.AdamW, { lr = 0.1 }, 8)), by_hand(adam(0.1, 0.9, 0.999, 1e-8, 0.01), 8), 3e-5)
end

function TestFormulas:test_rmsprop()
  close((train(optim.RMSprop, { lr = 0.05 }, 6)), by_hand(rmsprop(0.05, 0.99, 1e-8), 6), 3e-5)
  close((train(optim.RMSprop, { lr = 0.05, alpha = 0.9, eps = 1e-2, momentum = 0.5 }, 6)),
    by_hand(rmsprop(0.05, 0.9, 1e-2, 0.5), 6), 3e-5)
  close((train(optim.RMSprop, { lr = 0.05, alpha = 0.9, eps = 1e-2, centered = true }, 6)),
    by_hand(rmsprop(0.05, 0.9, 1e-2, 0, true), 6), 3e-5)
  close((train(optim.RMSprop, { lr = 0.05, alpha = 0.9, eps = 1e-2, weight_decay = 0.2 }, 6)),
    by_hand(rmsprop(0.05, 0.9, 1e-2), 6, decay(0.2)), 3e-5)
end

-- A hundred steps far from the start: nothing drifts with the number of steps.
function TestFormulas:test_many_steps()
  close((train(optim.Adam, { lr = 0.01 }, 100)), by_hand(adam(0.01, 0.9, 0.999, 1e-8), 100), 1e-4)
  close((train(optim.SGD, { lr = 0.01, momentum = 0.9 }, 100)), by_hand(sgd(0.01, 0.9), 100), 1e-4)
end

local function clip_norm(limit)
  return function(g)
    local squares = 0
    for i = 1, 4 do
      squares = squares + g[i] * g[i]
    end
    local factor = math.min(1, limit / (math.sqrt(squares) + 1e-6))
    for i = 1, 4 do
      g[i] = g[i] * factor
    end
  end
end

TestClipping = {}

function TestClipping:test_by_the_norm_of_all()
  for _, limit in ipairs { 0.5, 1e3 } do
    close((train(optim.SGD, { lr = 0.05, clip_norm = limit }, 5)), by_hand(sgd(0.05), 5, clip_norm(limit)))
    close((train(optim.Adam, { lr = 0.1, clip_norm = limit }, 5)),
      by_hand(adam(0.1, 0.9, 0.999, 1e-8), 5, clip_norm(limit)), 3e-5)
  end
end

function TestClipping:test_by_value()
  local function clip(g)
    for i = 1, 4 do
      g[i] = math.max(-0.3, math.min(0.3, g[i]))
    end
  end
  close((train(optim.SGD, { lr = 0.5, momentum = 0.5, clip_value = 0.3 }, 5)), by_hand(sgd(0.5, 0.5), 5, clip))
  close((train(optim.RMSprop, { lr = 0.05, clip_value = 0.3 }, 5)), by_hand(rmsprop(0.05, 0.99, 1e-8), 5, clip), 3e-5)
end

function TestClipping:test_decay_comes_after_it()
  local clip, add = clip_norm(0.5), decay(0.3)
  close((train(optim.SGD, { lr = 0.05, clip_norm = 0.5, weight_decay = 0.3 }, 5)), by_hand(sgd(0.05), 5,
    function(g, x)
      clip(g)
      add(g, x)
    end))
end

function TestClipping:test_the_norm_is_a_result()
  local w = dc.param("f32[2]", { 3, 4 })
  local opt = optim.SGD({ w }, { lr = 0.1, clip_norm = 1 })
  local step = dc.fn("step() -> f32[]", function() return (opt:step((w * w):sum() / 2)) end)
  lu.assertAlmostEquals(step():item(), 5, 1e-6)
  close(w:totable(), { 3 - 0.06, 4 - 0.08 })
  opt.clip_norm = 100
  lu.assertAlmostEquals(step():item(), 4.9, 1e-5)
  lu.assertNil(optim.SGD({ w }):step(w:sum()))
end

-- ---- gradients that stop ----

TestFading = {}

-- Once a gradient, then none: what averages keep of it fades until it is nothing, where rounding would leave the least
-- denormal number for ever, with which processors are slow.
local function fades(make, options, dtype)
  local p = dc.param(dtype .. "[3]", { 1, 2, 3 })
  local opt = make({ p }, options)
  local step = dc.fn(("step(g: %s[3])"):format(dtype), function(g)
    opt:apply { g }
  end)
  local one, zero = dc.ones(dtype .. "[3]"), dc.zeros(dtype .. "[3]")
  step(one)
  for _ = 1, dtype == "f64" and 2600 or 400 do
    step(zero)
  end
  local seen = 0
  for _, named in ipairs(opt:named_cells()) do
    if named[1]:find "%.1$" then
      lu.assertEquals(named[2]:totable(), { 0, 0, 0 }, named[1])
      seen = seen + 1
    end
  end
  return seen
end

function TestFading:test_averages_end_at_zero()
  local slow = { beta1 = 0.75, beta2 = 0.75 }
  lu.assertEquals(fades(optim.Adam, slow, "f32"), 2)
  lu.assertEquals(fades(optim.Lion, slow, "f32"), 1)
  lu.assertEquals(fades(optim.LAMB, slow, "f32"), 2)
  lu.assertEquals(fades(optim.SGD, { momentum = 0.75 }, "f32"), 1)
  lu.assertEquals(fades(optim.SGD, { momentum = 0.75 }, "f64"), 1)
  lu.assertEquals(fades(optim.RMSprop, { alpha = 0.75, momentum = 0.75, centered = true }, "f32"), 3)
  lu.assertEquals(fades(optim.Adadelta, { rho = 0.75 }, "f32"), 2)
end

function TestFading:test_small_ones_are_kept()
  local p = dc.param("f32[2]", 1)
  local opt = optim.SGD({ p }, { momentum = 0.5 })
  local step = dc.fn("step(g: f32[2])", function(g)
    opt:apply { g }
  end)
  step(dc.tensor { 2.0 ^ -126, -2.0 ^ -126 })
  for _, named in ipairs(opt:named_cells()) do
    if named[1]:find "^velocity" then
      lu.assertEquals(named[2]:totable(), { 2.0 ^ -126, -2.0 ^ -126 })
      named[2]:set(dc.tensor { 0 / 0, math.huge })
      step(dc.zeros "f32[2]")
      local kept = named[2]:totable()
      lu.assertTrue(kept[1] ~= kept[1] and kept[2] == math.huge) -- what is no number is not hidden
    end
  end
end

TestKernels = {}

-- An update is element-wise over its parameter: each parameter more is one kernel more, at most two where
-- gradients are clipped by their norm. Where kernels are launched together it is no launch more.
function TestKernels:test_one_for_each_parameter()
  if os.getenv "DEEPC_DEVICE" == "eval" then
    lu.skip "the interpreter launches nothing"
  end
  local cases = {
    { optim.SGD, {} }, { optim.SGD, { momentum = 0.9, nesterov = true, weight_decay = 0.1 } }, { optim.Adam, {} },
    { optim.AdamW, { clip_value = 1 } }, { optim.RMSprop, { momentum = 0.5, centered = true } },
    { optim.Adam, { clip_norm = 1 }, 2 },
  }
  for _, case in ipairs(cases) do
    local launches = {}
    for n = 1, 3 do
      local params = {}
      for i = 1, n do
        params[i] = dc.param(("f32[%d, %d]"):format(10 + i, 20 + i), 1)
      end
      local opt = case[1](params, case[2])
      local step = dc.fn("step() -> ()", function()
        local loss = 0
        for _, p in ipairs(params) do
          loss = loss + (p * p):sum()
        end
        opt:step(loss)
      end)
      step()
      launches[n] = step:info()[1].launches
    end
    for n = 2, 3 do
      lu.assertTrue(launches[n] - launches[n - 1] <= (case[3] or 1), table.concat(launches, " "))
    end
    if (os.getenv "DEEPC_DEVICE" or "cpu"):find "^cpu" and not os.getenv "DEEPC_SKIP" then
      lu.assertEquals(launches[3], launches[2])
    end
  end
end

TestSettings = {}

function TestSettings:test_rates_never_compile_again()
  local _, opt, step = train(optim.AdamW, { lr = 0.1, clip_norm = 1 }, 2, function() return 0.1 end)
  step()
  step()
  local before = dc.stats()
  for i = 1, 20 do
    step(0.1 / i)
    opt.lr, opt.beta1, opt.weight_decay, opt.clip_norm, opt.eps = 0.2 / i, 1 - 1 / i, i, 1 / i, 1 / i
    step()
  end
  local after = dc.stats()
  lu.assertEquals(after.compiles, before.compiles)
  lu.assertEquals(after.kernels, before.kernels)
  lu.assertEquals(after.traces, before.traces)
end

function TestSettings:test_what_was_not_given()
  local w = dc.param "f32[]"
  local opt = optim.Adam { w }
  fails("optim.Adam was made without clip_norm", function() opt.clip_norm = 1 end)
  local err = fails("optim.Adam was made without weight_decay", function() return opt.weight_decay end)
  lu.assertEquals(err.hint, "optim.Adam(params, { weight_decay = 1e-2 })")
  fails("optim.SGD was made without momentum", function() optim.SGD({ w }, { momentum = 0 }).momentum = 0.5 end)
  fails("optim.Adam has no setting 'rate'", function() opt.rate = 1 end)
  fails("optim.Adam has no setting 'params'", function() opt.params = {} end)
  fails("optim.Adam has no 'rate'", function() return opt.rate end)
  lu.assertIs(opt.params[1], w)
end

function TestSettings:test_what_they_may_be()
  local w = dc.param "f32[]"
  fails("optim.Adam: beta1 is 1; it is 0 or more, and below 1", optim.Adam, { w }, { beta1 = 1 })
  fails("optim.SGD: lr is -1; it is 0 or more", optim.SGD, { w }, { lr = -1 })
  fails("optim.SGD: lr is", optim.SGD, { w }, { lr = 0 / 0 })
  fails("optim.SGD: lr is a number or a scalar, not the string '0.1'", function() optim.SGD({ w }).lr = "0.1" end)
  fails("optim.SGD: nesterov needs momentum", optim.SGD, { w }, { nesterov = true })
  fails("optim.RMSprop: centered is true or false, not 1", optim.RMSprop, { w }, { centered = 1 })
  fails("optim.AdamW: unknown option 'momentum'", optim.AdamW, { w }, { momentum = 0.9 })
end

function TestSettings:test_zero_is_a_setting_where_there_is_a_default()
  local w = dc.param("f32[]", 1)
  local opt = optim.SGD({ w }, { lr = 0 })
  opt:step(w * 2)
  lu.assertEquals(w:item(), 1)
  opt.lr = 0.25
  opt:step(w * 2)
  lu.assertEquals(w:item(), 0.5)
end

TestStates = {}

local function names(opt)
  local list = {}
  for i, named in ipairs(opt:named_cells()) do
    list[i] = named[1]
  end
  return table.concat(list, " ")
end

function TestStates:test_names_do_not_depend_on_variables()
  local net = nn.Sequential { nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1, { bias = false }) }
  local first = net:parameters()
  lu.assertEquals(names(optim.SGD(first, { momentum = 0.9, lr = 1 })),
    "lr momentum velocity.1.bias velocity.1.weight velocity.3.weight")
  local same = net
  lu.assertEquals(names(optim.Adam(same:parameters())), "beta1 beta2 eps lr m.1.bias m.1.weight m.3.weight " ..
    "v.1.bias v.1.weight v.3.weight step")
  lu.assertEquals(names(optim.RMSprop({ dc.param "f32[]" }, { centered = true })), "alpha eps lr v.1 mean.1")
  local opt = optim.SGD(first)
  lu.assertTrue(rawequal(opt:named_cells()[1][2], opt.lr))
end

function TestStates:test_names_are_there_once()
  local a, b = nn.Linear(2, 2, { bias = false }), nn.Linear(2, 2, { bias = false })
  local function list_of(net) return net:parameters() end -- both are called net there
  local both = table.move(list_of(b), 1, 1, 2, list_of(a))
  local seen = {}
  for _, named in ipairs(optim.Adam({ both[1], both[2] }):named_cells()) do
    lu.assertNil(seen[named[1]], named[1])
    seen[named[1]] = true
  end
end

-- Training that goes on from copies of all cells is the same training.
function TestStates:test_cells_are_all_that_there_is()
  for _, make in ipairs { optim.SGD, optim.Adam, optim.AdamW, optim.RMSprop } do
    local w = dc.param("f32[2]", { 1, 2 })
    local options = { weight_decay = 0.1, momentum = (make == optim.SGD or make == optim.RMSprop) and 0.5 or nil }
    local opt = make({ w }, options)
    local function step(on, with)
      with:step((on * on * on):sum())
    end
    step(w, opt)
    step(w, opt)
    local other = dc.param("f32[2]", w:clone())
    local again = make({ other }, options)
    for i, named in ipairs(opt:named_cells()) do
      lu.assertEquals(again:named_cells()[i][1], named[1])
      again:named_cells()[i][2]:set(named[2]:clone())
    end
    step(w, opt)
    step(other, again)
    lu.assertEquals(other:totable(), w:totable())
  end
end

TestParameters = {}

-- A weight in two places is one parameter: its gradient is the sum, it is updated once.
function TestParameters:test_tied_weights()
  local a, b = nn.Linear(2, 2, { bias = false }), nn.Linear(2, 2, { bias = false })
  b.weight = a.weight
  local net = nn.Sequential { a, b }
  net[1].weight:set { { 1, 0 }, { 0, 2 } }
  local opt = optim.SGD(net:parameters(), { lr = 0.1, momentum = 0.9 })
  lu.assertEquals(#opt.params, 1)
  local step = dc.fn("step(x: f32[1, 2]) -> ()", function(x) opt:step(net(x):sum()) end)
  step { { 1, 1 } }
  -- x W W 1: the gradient is x^T (W 1)^T + (x W)^T 1^T = { { 1 + 1, 2 + 1 }, { 1 + 2, 2 + 2 } }
  local w = a.weight:totable()
  close(w[1], { 1 - 0.2, -0.3 })
  close(w[2], { -0.3, 2 - 0.4 })
end

function TestParameters:test_frozen_ones_stay()
  local net = nn.Sequential { nn.Linear(2, 2), nn.Linear(2, 1) }
  local opt = optim.AdamW(net:parameters(), { lr = 0.1, clip_norm = 1 })
  net[1]:freeze()
  local first, second = net[1].weight:totable(), net[2].weight:totable()
  local step = dc.fn("step(x: f32[3, 2]) -> f32[]", function(x)
    local loss = (net(x) ^ 2):mean()
    opt:step(loss)
    return loss
  end)
  step(dc.ones "f32[3, 2]")
  lu.assertEquals(net[1].weight:totable(), first)
  lu.assertNotEquals(net[2].weight:totable(), second)
  net:unfreeze()
  step(dc.ones "f32[3, 2]")
  lu.assertNotEquals(net[1].weight:totable(), first)
end

function TestParameters:test_other_dtypes()
  local w = dc.param("f64[3]", { table.unpack(START, 1, 3) })
  local h = dc.param("f16[2]", { 1, -2 })
  local opt = optim.Adam({ w, h }, { lr = 0.1, clip_norm = 100, clip_value = 50, weight_decay = 0.5 })
  local cells = {}
  for _, named in ipairs(opt:named_cells()) do
    cells[named[1]] = named[2].dtype
  end
  lu.assertEquals({ cells["m.1"], cells["m.2"] }, { "f64", "f32" })
  for _ = 1, 3 do
    opt:step(((w * w):sum():cast "f32" + (h:cast "f32" ^ 2):sum()) / 2)
  end
  local function hand(x)
    local update, m = adam(0.1, 0.9, 0.999, 1e-8), {}
    for t = 1, 3 do
      x = update(x + 0.5 * x, x, m, t)
    end
    return x
  end
  close(w:totable(), { hand(3), hand(-2), hand(0.5) }) -- settings are f32
  close(h:totable(), { hand(1), hand(-2) }, 3e-3)
end

-- Gradients of two halves of a batch, added up, are those of the whole.
function TestParameters:test_gradients_by_hand()
  local w = dc.param("f32[2]", { 1, 2 })
  local opt = optim.SGD({ w }, { lr = 0.5 })
  local sums = dc.state "f32[2]"
  local add = dc.fn("add(x: f32[2]) -> ()", function(x) sums:set(sums + dc.grad((w * x):sum(), w)) end)
  local step = dc.fn("step() -> ()", function()
    opt:apply({ sums / 2 }, { lr = 0.25 })
    sums:set(dc.zeros "f32[2]")
  end)
  add { 1, 2 }
  add { 3, 4 }
  step()
  lu.assertEquals(w:totable(), { 1 - 0.5, 2 - 0.75 })
  lu.assertEquals(sums:totable(), { 0, 0 })
  opt:apply { false }
  lu.assertEquals(w:totable(), { 0.5, 1.25 })
  fails("apply: a list of gradients is needed, not nil", opt.apply, opt)
  fails("apply: gradient 1 is the number 3, not a tensor", opt.apply, opt, { 3 })
end

-- As many as parameters, each of its parameter's type: whatever else comes changes nothing.
function TestParameters:test_gradients_by_hand_are_checked()
  local a, b = dc.param("f32[2]", { 1, 2 }), dc.param("f16[]", 3)
  local opt = optim.SGD({ a, b }, { lr = 1 })
  local x, h = dc.ones "f32[2]", dc.ones "f16[]"
  fails("apply: 3 gradients for 2 parameters", opt.apply, opt, { x, h, x })
  fails("apply: 3 gradients for 2 parameters", opt.apply, opt, { x, h, false })
  fails("apply: 1 gradient for 2 parameters", opt.apply, opt, { x })
  fails("apply: 0 gradients for 2 parameters", opt.apply, opt, {})
  fails("apply: gradient 1 is nil, not a tensor", opt.apply, opt, { nil, h })
  fails("false leaves a parameter as it is", opt.apply, opt, { nil, h })
  fails("not a table with the key weight", opt.apply, opt, { x, h, weight = x })
  fails("a list of gradients is needed, not f32[2]", opt.apply, opt, x)
  fails("apply: gradient 1 is f32[1, 2], its parameter f32[2]", opt.apply, opt, { dc.ones "f32[1, 2]", h })
  fails("apply: gradient 2 is f32[2], its parameter f16[]", opt.apply, opt, { x, x })
  fails("apply: gradient 1 is f64[2], its parameter f32[2]", opt.apply, opt, { x:cast "f64", h })
  fails('gradient:cast "f32" converts', opt.apply, opt, { x:cast "i32", h })
  fails("apply: gradient 2 is bf16[], its parameter f16[]", opt.apply, opt, { x, h:cast "bf16" })
  lu.assertEquals(a:totable(), { 1, 2 })
  opt:apply { x, h:cast "f32" } -- what is updated in f32 may have gradients in f32
  lu.assertEquals({ a:totable(), b:item() }, { { 0, 1 }, 2 })
end

function TestParameters:test_no_gradient_has_no_norm()
  local w = dc.param("f32[2]", { 1, 2 })
  local opt = optim.SGD({ w }, { clip_norm = 1 })
  lu.assertEquals(opt:apply({ false }):item(), 0)
  lu.assertEquals(w:totable(), { 1, 2 })
end

-- Two optimisers in one step, with settings of their own.
function TestParameters:test_two_optimisers()
  local a, b = dc.param("f32[]", 2), dc.param("f32[]", 3)
  local one, two = optim.SGD({ a }, { lr = 0.1 }), optim.SGD({ b }, { lr = 0.5, weight_decay = 1 })
  local step = dc.fn("step() -> ()", function()
    local loss = a * b
    one:step(loss)
    two:step(loss)
  end)
  step()
  lu.assertAlmostEquals(a:item(), 2 - 0.3, 1e-6)
  lu.assertAlmostEquals(b:item(), 3 - 0.5 * (2 + 3), 1e-6)
end

TestOutside = {}

-- A loop of steps outside typed functions is told once what it costs; a typed function, and a few steps, are not.
function TestOutside:test_a_note()
  local script = program.script [[
    local dc = require "deepc"
    local optim = require "deepc.optim"
    local function steps(n, wrap)
      local p = dc.param("f32[2]", 1)
      local opt = optim.SGD({ p }, { lr = 0.1 })
      local function body() opt:step((p * p):sum()) end
      local step = wrap and dc.fn("step()", body) or body
      for _ = 1, n do step() end
    end
    steps(30, true)
    steps(9)
    io.stderr:write "few\n"
    steps(30)
    steps(30)
  ]]
  local text, status = program.run(script, "DEEPC_CACHE=off")
  os.remove(script)
  lu.assertEquals(status, 0, text)
  lu.assertEquals(text:match "^(.-)\n", "few", text)
  lu.assertEquals(select(2, text:gsub("%[note%] sgd: 10 steps outside typed functions", "")), 1, text)
  lu.assertEquals(select(2, text:gsub("\n", "")), 2, text)
end
