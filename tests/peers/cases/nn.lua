-- Layers of deepc.nn, and their functions, beside torch.nn and torch.nn.functional. Layers are cast to the dtype.
local nn = require "deepc.nn"

local cases = {}

local function add(case)
  cases[#cases + 1] = case
end

-- ---- activations ----

local SPECIAL = { x = { "T[11]", values = { -8, -3, -1, -0.5, -0.0, 0, 0.25, 1, 3, 6, 9 } } }
local FAR = { x = { "T[5]", values = { -500, 500, -math.huge, math.huge, 0 / 0 } }, grad = false }
local NAN = { x = { "T[3]", values = { -500, 500, 0 / 0 } }, grad = false }

local function activation(name, run, peer, ...)
  add { name, run = function(a) return run(a.x) end, peer = peer, args = { { x = "T[3, 5]" }, SPECIAL, ... } }
end

activation("nn.relu6", nn.relu6, "F.relu6(x)", FAR)
activation("nn.hardtanh", nn.hardtanh, "F.hardtanh(x)", FAR)
activation("nn.Hardtanh", nn.Hardtanh(-0.5, 3), "F.hardtanh(x, -0.5, 3)")
activation("nn.hardsigmoid", nn.hardsigmoid, "F.hardsigmoid(x)", FAR)
cases[#cases].tol = { f64 = 1e-8 } -- the peer's gradient has 1/6 of single precision
activation("nn.hardswish", nn.hardswish, "F.hardswish(x)", NAN)
activation("nn.softshrink", nn.softshrink, "F.softshrink(x)", FAR)
activation("nn.Softshrink", nn.Softshrink(0.25), "F.softshrink(x, 0.25)")
activation("nn.hardshrink", nn.hardshrink, "F.hardshrink(x)", FAR)
activation("nn.Threshold", nn.Threshold(0.25, 20), "F.threshold(x, 0.25, 20)", FAR)
activation("nn.mish", nn.mish, "F.mish(x)", NAN)
activation("nn.selu", nn.selu, "F.selu(x)", FAR)
activation("nn.celu", nn.celu, "F.celu(x)", FAR)
activation("nn.CELU", nn.CELU(0.5), "F.celu(x, 0.5)")
activation("nn.Softplus", nn.Softplus(2, 3), "F.softplus(x, 2, 3)", FAR)
activation("nn.softsign", nn.softsign, "F.softsign(x)", NAN)
activation("nn.tanhshrink", nn.tanhshrink, "F.tanhshrink(x)", NAN)
activation("nn.log_sigmoid", nn.log_sigmoid, "F.logsigmoid(x)", NAN)
activation("nn.leaky_relu", nn.leaky_relu, "F.leaky_relu(x)", FAR)
activation("nn.elu", nn.elu, "F.elu(x)", FAR)
activation("nn.RReLU, evaluation", nn.RReLU():eval(), "F.rrelu(x)", FAR)

add { "nn.prelu", run = function(a) return nn.prelu(a.x, a.w) end, peer = "F.prelu(x, w)",
  args = { { x = "T[2, 3, 4]", w = "T[3]" }, { x = "T[5, 3]", w = "T[1]" },
    { x = { "T[1, 2]", values = { { 0, 0 / 0 } } }, w = "T[2]" } } }

add { "nn.glu", run = function(a) return { nn.glu(a.x), nn.glu(a.x, 1) } end, peer = "(F.glu(x), F.glu(x, 0))",
  args = { { x = "T[2, 6]" }, { x = "T[4, 2, 2]" } } }
add { "nn.geglu", run = function(a) return nn.geglu(a.x) end,
  peer = "(lambda h: h[0] * F.gelu(h[1]))(x.chunk(2, -1))", args = { { x = "T[2, 6]" } } }
add { "nn.swiglu", run = function(a) return nn.swiglu(a.x, 1) end,
  peer = "(lambda h: h[0] * F.silu(h[1]))(x.chunk(2, 0))", args = { { x = "T[2, 6]" } } }
add { "nn.softmin", run = function(a) return nn.softmin(a.x, 1) end, peer = "F.softmin(x, 0)",
  args = { { x = "T[4, 3]" } } }
add { "nn.Softmax2d", run = function(a) return nn.Softmax2d()(a.x) end, peer = "F.softmax(x, 1)",
  args = { { x = "T[2, 3, 2, 2]" } } }

return cases
