-- Groups of parameters, accumulated gradients, settings that are assigned.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local check = require "tests.lua.check"

local fails = check.fails

local function names(opt)
  local list = {}
  for i, named in ipairs(opt:named_cells()) do
    list[i] = named[1]
  end
  return table.concat(list, " ")
end

TestGroups = {}

function TestGroups:test_settings_of_their_own()
  local a, b, c = dc.param("f32[]", 1), dc.param("f32[]", 1), dc.param("f32[]", 1)
  local opt = optim.SGD({ { params = { a }, lr = 0.5 }, { params = { b }, lr_scale = 0.5 },
    { params = { c }, momentum = 0.5, maximize = true } }, { lr = 0.25 })
  local step = dc.fn("step(lr?: f32[])", function(lr) opt:step(a + b + c, { lr = lr }) end)
  step()
  lu.assertEquals({ a:item(), b:item(), c:item() }, { 0.5, 0.875, 1.25 })
  local compiled = dc.stats().compiles
  opt.lr, opt.groups[1].lr, opt.groups[2].lr_scale, opt.groups[3].momentum = 0.5, 0.125, 1, 0.25
  step()
  lu.assertEquals({ a:item(), b:item(), c:item() }, { 0.375, 0.375, 1.25 + 0.5 * 1.25 })
  lu.assertEquals(dc.stats().compiles, compiled)
  lu.assertEquals(opt.groups[2].lr:item(), 0.5)
  lu.assertIs(opt.groups[1].params[1], a)
  lu.assertEquals(names(opt), "lr groups.1.lr groups.2.lr_scale groups.3.momentum velocity.3")
  step(0.25) -- of groups without a rate of their own
  lu.assertEquals({ a:item(), b:item() }, { 0.25, 0.125 })
end

function TestGroups:test_one_norm_for_all()
  local a, b = dc.param("f32[]", 0), dc.param("f32[]", 0)
  local opt = optim.SGD({ { params = { a } }, { params = { b }, lr = 10 } }, { lr = 1, clip_norm = 1 })
  lu.assertAlmostEquals(opt:step(3 * a + 4 * b):item(), 5, 1e-6)
  check.close({ a:item(), b:item() }, { -0.6, -8 }, 1e-5)
end

function TestGroups:test_frozen_ones()
  local net = nn.Sequential { nn.Linear(2, 2), nn.Linear(2, 2) }
  local opt = optim.AdamW({ { params = net[1]:parameters() }, { params = net[2]:parameters(), lr = 0.1 } })
  net[2]:freeze()
  local before = { net[1].weight:totable(), net[2].weight:totable() }
  opt:step(net(dc.ones "f32[1, 2]"):sum())
  lu.assertNotEquals(net[1].weight:totable(), before[1])
  lu.assertEquals(net[2].weight:totable(), before[2])
end

function TestGroups:test_by_names()
  local net = nn.Sequential { nn.Linear(2, 3), nn.LayerNorm(3), nn.Linear(3, 1) }
  local groups = optim.groups(net, { { "bias$", "^2%.", weight_decay = 0 }, { "^3%.", lr = 1e-2 } })
  local counts = {}
  for i, group in ipairs(groups) do
    counts[i] = #group.params
  end
  lu.assertEquals(counts, { 4, 1, 1 })
  local opt = optim.AdamW(groups)
  lu.assertEquals(opt.groups[1].weight_decay:item(), 0)
  lu.assertStrContains(names(opt), "m.1.bias m.2.bias m.2.weight m.3.bias m.3.weight m.1.weight")
  fails("groups: no parameter's path has 'head' in it", optim.groups, net, { { "head", lr = 1 } })
  fails("groups: rule 1 has no pattern", optim.groups, net, { { lr = 1 } })
end

function TestGroups:test_mistakes()
  local a, b = dc.param "f32[]", dc.param "f32[]"
  fails("optim.SGD: group 2 has no params", optim.SGD, { { params = { a } }, { lr = 1 } })
  fails("net:named_parameters() pairs of names and these", optim.SGD, nn.Linear(1, 1):named_parameters())
  fails("optim.SGD: group 2 is f32[], not a table", optim.SGD, { { params = { a } }, b })
  fails("optim.SGD: group 2: the list of parameters is empty", optim.SGD, { { params = { a } }, { params = {} } })
  fails("optim.SGD: number 1 of group 2 is a parameter of group 1", optim.SGD,
    { { params = { a } }, { params = { a } } })
  fails("optim.SGD: group 1: unknown option 'rate'", optim.SGD, { { params = { a }, rate = 1 } })
  fails("optim.SGD: group 1: clip_norm is of all groups together", optim.SGD, { { params = { a }, clip_norm = 1 } })
  fails("optim.SGD: group 1: lr is -1", optim.SGD, { { params = { a }, lr = -1 } })
  fails("optim.SGD: lr is given, and by each group besides", optim.SGD, { { params = { a }, lr = 1 } }, { lr = 1 })
  local opt = optim.SGD({ { params = { a }, lr = 1 }, { params = { b }, lr = 2 } })
  fails("each group of optim.SGD has a setting 'lr' of its own", function() opt.lr = 1 end)
  fails("step: lr is given, and each group has one of its own", opt.step, opt, a * b, { lr = 1 })
  opt = optim.SGD({ { params = { a } }, { params = { b }, lr = 2 } })
  fails("optim.SGD: group 1 has no 'lr' of its own", function() opt.groups[1].lr = 1 end)
  fails("optim.SGD: unknown option 'betas'", optim.SGD, { a }, { betas = { 0.9, 0.99 } })
  fails("beta1 = 0.9, beta2 = 0.999", optim.Adam, { a }, { betas = { 0.9, 0.99 } })
  fails("optim.SGD: dampening needs momentum", optim.SGD, { a }, { dampening = 0.5 })
  fails("optim.SGD: nesterov is without dampening", optim.SGD, { a },
    { momentum = 0.9, dampening = 0.5, nesterov = true })
  fails("optim.Muon: adjust is 'rms'", optim.Muon, { a }, { adjust = "rms" })
  fails("optim.Adagrad: initial is -1", optim.Adagrad, { a }, { initial = -1 })
end

TestAccumulation = {}

-- n small batches are one large batch.
function TestAccumulation:test_means_of_batches()
  for _, make in ipairs { optim.SGD, optim.Adam, optim.NAdam, optim.Muon } do
    local all, results = dc.randn("f32[8, 3]", { seed = 1 }), {}
    for _, n in ipairs { 1, 4 } do
      local w = dc.param("f32[3, 2]", dc.randn("f32[3, 2]", { seed = 2 }))
      local opt = make({ w }, { lr = 0.1, accumulate = n > 1 and n or nil, clip_norm = 0.5 })
      local step = dc.fn("step(x: f32[k, 3])", function(x) opt:step((x:matmul(w):sin() ^ 2):mean()) end)
      for _ = 1, 3 do
        for i = 1, 8, 8 // n do
          step(all[{ { i, i + 8 // n - 1 } }])
        end
      end
      results[#results + 1] = w:totable()
    end
    check.close(results[2], results[1], 2e-6)
  end
end

function TestAccumulation:test_between_updates_nothing_moves()
  local w = dc.param("f32[2]", 1)
  local opt = optim.AdamW({ w }, { lr = 0.1, accumulate = 3 })
  local step = dc.fn("step()", function() opt:step((w * w):sum()) end)
  step()
  step()
  lu.assertEquals(w:totable(), { 1, 1 })
  local compiled = dc.stats().compiles
  step()
  lu.assertNotEquals(w:totable(), { 1, 1 })
  opt.accumulate = 1
  local before = w:totable()
  step()
  lu.assertNotEquals(w:totable(), before)
  lu.assertEquals(dc.stats().compiles, compiled)
  lu.assertEquals(names(opt),
    "accumulate beta1 beta2 eps lr weight_decay m.1 v.1 step sum.1 summed")
  fails("accumulate is 0.5; it is a number of steps", function() opt.accumulate = 0.5 end)
  fails("optim.AdamW: accumulate is 0", optim.AdamW, { w }, { accumulate = 0 })
end

TestClipping = {}

-- Columns of a linear layer are units, rows of other matrices, a vector is one unit.
function TestClipping:test_adaptive()
  local layer = nn.Linear(2, 2, { bias = false })
  layer.weight:set { { 3, 0 }, { 4, 1 } }
  local plain, vector = dc.param("f32[2, 2]", { { 3, 4 }, { 0, 0 } }), dc.param("f32[2]", { 0, 2 })
  local opt = optim.SGD({ layer.weight, plain, vector }, { lr = 1, clip_adaptive = 0.1 })
  opt:apply { dc.tensor { { 6, 0.05 }, { 8, 0 } }, dc.tensor { { 0, 2 }, { 0.3, 0.4 } }, dc.tensor { 0.1, 0 } }
  check.close(layer.weight:totable(), { { 3 - 0.3, -0.05 }, { 4 - 0.4, 1 } })
  check.close(plain:totable(), { { 3, 3.5 }, { -6e-5, -8e-5 } })
  check.close(vector:totable(), { -0.1, 2 })
end

TestKinds = {}

-- Every optimiser: settings assigned compile nothing, f16 parameters and scalars are fine, what is saved is all.
function TestKinds:test_each()
  for _, name in ipairs { "SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Adagrad", "Adadelta", "ASGD",
    "Lion", "LAMB", "Muon" } do
    local function new()
      local list = { dc.param("f16[2, 3]", 0.5), dc.param("f32[]", 1), dc.param("f64[3]", 2) }
      return list, optim[name](list, { lr = 0.01 })
    end
    local params, opt = new()
    local function train(p, o)
      return dc.fn("step()", function()
        o:step((p[1]:cast "f32" * p[2]):sum() + (p[3] * p[3]):sum():cast "f32")
      end)
    end
    local step = train(params, opt)
    step()
    step()
    local compiled = dc.stats().compiles
    opt.lr = 0.02
    step()
    lu.assertEquals(dc.stats().compiles, compiled, name)
    local others, other = new()
    for i, p in ipairs(params) do
      others[i]:set(p:clone())
    end
    for i, named in ipairs(opt:named_cells()) do
      lu.assertEquals(other:named_cells()[i][1], named[1])
      other:named_cells()[i][2]:set(named[2]:clone())
    end
    step()
    train(others, other)()
    for i, p in ipairs(params) do
      lu.assertTrue(p:isfinite():all():item(), name)
      lu.assertTrue(p:eq(others[i]):all():item(), name)
    end
  end
end
