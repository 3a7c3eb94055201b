-- Activations of stdlib/nn/: texts, mistakes, 16-bit floats, names of dims. Values and gradients are compared with
-- PyTorch's in tests/peers/cases/nn.lua.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local check = require "tests.lua.check"

local fails = check.fails

TestActivationLayers = {}

local function all()
  return { nn.ReLU6(), nn.Hardtanh(), nn.Hardsigmoid(), nn.Hardswish(), nn.Softshrink(), nn.Hardshrink(),
    nn.Threshold(0.1, 2), nn.PReLU(), nn.RReLU():eval(), nn.Mish(), nn.SELU(), nn.CELU(), nn.Softplus(), nn.Softsign(),
    nn.Tanhshrink(), nn.LogSigmoid(), nn.GLU(), nn.GEGLU(), nn.SwiGLU(), nn.Softmin() }
end

function TestActivationLayers:test_texts()
  local texts = {}
  for i, layer in ipairs(all()) do
    texts[i] = tostring(layer):gsub("^nn%.", "")
  end
  lu.assertEquals(table.concat(texts, "; "), "ReLU6; Hardtanh -1, 1; Hardsigmoid; Hardswish; Softshrink 0.5; "
    .. "Hardshrink 0.5; Threshold 0.1, 2; PReLU 1; RReLU 0.125, 0.333333; Mish; SELU; CELU 1; Softplus 1, 20; "
    .. "Softsign; Tanhshrink; LogSigmoid; GLU -1; GEGLU -1; SwiGLU -1; Softmin -1")
end

-- f16 and bf16 are f32 on the way, rounded once; names, empty axes and rank 0 stay.
function TestActivationLayers:test_types()
  local x = dc.randn("f32[a=2, 4]", { seed = 1 })
  for i, layer in ipairs(all()) do
    local halves = i >= 17 and i <= 19
    for _, dtype in ipairs { "f16", "bf16" } do
      if i == 8 then layer = nn.PReLU():cast(dtype) end
      local narrow = x:cast(dtype)
      local y = layer(narrow)
      local wide = i == 8 and nn.prelu(narrow:cast "f32", layer.weight:cast "f32") or layer(narrow:cast "f32")
      lu.assertEquals(y.dtype, dtype, tostring(layer))
      lu.assertTrue(y:eq(wide:cast(dtype)):all():item(), tostring(layer))
      lu.assertEquals(y:size "a", 2)
    end
    if i == 8 then layer = nn.PReLU() end
    lu.assertEquals(layer(dc.zeros "f32[0, 4]").shape, { 0, halves and 2 or 4 })
    if not halves and i ~= 20 then
      lu.assertEquals(layer(dc.ones "f32[]").shape, {})
    end
  end
end

-- Second derivatives beside central differences of first ones.
function TestActivationLayers:test_second_gradients()
  local x = dc.tensor({ -1.3, -0.4, 0.3, 1.7 }, "f64[4]")
  local function slope(layer, at)
    return dc.grad(layer(at):sum(), at)
  end
  for _, layer in ipairs { nn.Mish(), nn.SELU(), nn.CELU(0.7), nn.Softplus(2), nn.Softsign(), nn.Hardswish(),
    nn.LogSigmoid(), nn.Tanhshrink() } do
    local f = dc.fn("f(v: f64[4]) -> f64[4]", function(v)
      return dc.grad(slope(layer, v):sum(), v, { unused = "zero" })
    end)
    local step = 1e-5
    local want = (slope(layer, x + step) - slope(layer, x - step)) / (2 * step)
    check.close(f(x):totable(), want:totable(), 1e-6, tostring(layer))
  end
end

function TestActivationLayers:test_rrelu_draws_while_training()
  local layer = nn.RReLU(0.1, 0.3)
  local y = -layer(dc.full("f32[1000]", -1))
  lu.assertTrue(y:min():item() >= 0.1 and y:max():item() < 0.3)
  lu.assertTrue(y:max():item() - y:min():item() > 0.15)
  lu.assertEquals(layer(dc.ones "f32[3]"):totable(), { 1, 1, 1 })
end

function TestActivationLayers:test_mistakes()
  fails("hardtanh: low is 1, high 0; low is the smaller one", nn.hardtanh, dc.zeros "f32[2]", 1, 0)
  fails("softshrink: lambda is a number from 0, not -1", nn.softshrink, dc.zeros "f32[2]", -1)
  fails("nn.Threshold: value is a number, not nil", nn.Threshold, 0.1)
  fails("celu: alpha is a number other than 0", nn.celu, dc.zeros "f32[2]", 0)
  fails("glu: axis 2 of f32[2, 3] has 3 elements, which make no two halves", nn.glu, dc.zeros "f32[2, 3]", 2)
  fails("prelu: the weight has 2 numbers, x is f32[4, 3]; one is needed, or one for each channel of axis 2", nn.prelu,
    dc.zeros "f32[4, 3]", dc.zeros "f32[2]")
  fails("nn.Softmax2d: x is f32[2, 3]; [batch, channels, height, width] is needed", nn.Softmax2d(),
    dc.zeros "f32[2, 3]")
  fails("mish: a tensor is needed, not nil", nn.mish)
  fails("nn.ReLU6: 1 argument given, none is taken", nn.ReLU6, 3)
end

TestWhole = {}

function TestWhole:test_cast()
  local shared = nn.Linear(4, 4)
  local net = nn.Sequential { shared, nn.ReLU(), shared, nn.BatchNorm2d(2), nn.Embedding(3, 4) }
  shared:freeze { match = "bias" }
  local before = shared.weight:clone()
  lu.assertEquals(net:cast "f64", net)
  for _, named in ipairs(net:named_cells()) do
    lu.assertEquals(named[2].dtype, "f64", named[1])
  end
  lu.assertEquals(#net:named_cells()[1].also, 1)
  lu.assertTrue(net[3].weight:cast("f32"):eq(before):all():item())
  lu.assertEquals(net[1](dc.ones "f64[2, 4]").dtype, "f64")
  local names = {}
  for _, named in ipairs(net:named_parameters()) do names[#names + 1] = named[1] end
  lu.assertEquals(table.concat(names, " "), "1.weight 4.bias 4.weight 5.weight")
  fails("a layer is \"f16\", \"bf16\", \"f32\" or \"f64\", not 'i32'", net.cast, net, "i32")
  local err = fails("matmul: ", net, dc.ones "f32[2, 4]")
  lu.assertStrContains(err.path, "net.1")
end

-- Functions that were compiled before take another specialisation.
function TestWhole:test_cast_after_a_call()
  local net = nn.Sequential { nn.Linear(4, 4) }
  local f = dc.fn("f(x: f32[2, 4]) -> f32[2, 4]", function(x)
    local y = net(x:cast(net[1].weight.dtype)):cast "f32"
    return y
  end)
  local x = dc.randn("f32[2, 4]", { seed = 2 })
  local want = f(x)
  net:cast "f64"
  check.close(f(x):totable(), want:totable(), 1e-6)
  lu.assertEquals(#f:info(), 2)
end

function TestWhole:test_apply()
  local net = nn.Sequential { nn.Linear(2, 2), nn.Sequential { nn.ReLU(), nn.Linear(2, 2) } }
  local seen = {}
  net:apply(function(layer) seen[#seen + 1] = tostring(layer):match "^[^\n ]+" end)
  lu.assertEquals(table.concat(seen, " "), "nn.Linear nn.ReLU nn.Linear nn.Sequential nn.Sequential")
  fails("apply: a function is needed, not a table", net.apply, net, {})
end

function TestWhole:test_groups_by_name()
  local net = nn.Sequential { nn.Linear(2, 3), nn.Linear(3, 2) }
  lu.assertEquals(#net:parameters { match = "weight$" }, 2)
  lu.assertEquals(#net:parameters { match = "weight$", except = "^1%." }, 1)
  fails("parameters: no parameter of net has a path that matches 'kernel'", net.parameters, net, { match = "kernel" })
  fails("match is a pattern of Lua for paths, not 3", net.parameters, net, { match = 3 })
  net:freeze { except = "^2%." }
  lu.assertEquals(#net:parameters(), 2)
  net:freeze { match = "bias" }
  lu.assertEquals(#net:parameters(), 1)
  net:unfreeze { match = "^1%.bias" }
  lu.assertEquals(#net:parameters(), 2)
  net:unfreeze()
  lu.assertEquals(#net:parameters(), 4)
  fails("freeze: no parameter of net has a path", net.freeze, net, { match = "kernel" })
end
