-- Layers of deepc.nn, and their functions, beside torch.nn and torch.nn.functional. Layers are cast to the dtype.
local dc = require "deepc"
local nn = require "deepc.nn"

local cases = {}

local function add(case)
  cases[#cases + 1] = case
end

-- The result of a layer for a.x, with its cells set to the arguments of their names, and these cells. It is made by the
-- lazy run, of a's dtype, and is there for the compiled one.
local layers = {}

local function with_cells(make, a, names, call)
  local key = tostring(make) .. a.x.dtype
  local layer, cells = layers[key] or make():cast(a.x.dtype), {}
  layers[key] = layer
  for argument, path in pairs(names) do
    local cell = layer
    for part in path:gmatch "[^.]+" do
      cell = cell[tonumber(part) or part]
    end
    cell:set(a[argument])
    cells[argument] = cell
  end
  if call then
    return call(layer, a), cells
  end
  return layer(a.x), cells
end

local BOTH = { w = "weight", b = "bias" }

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

-- ---- convolutions ----

local function conv(name, make, peer, ...)
  add { name, run = function(a) return with_cells(make, a, a.b and BOTH or { w = "weight" }) end, peer = peer,
    args = { ... } }
end

conv("nn.Conv1d", function() return nn.Conv1d(4, 6, 3, { stride = 2, padding = 1, groups = 2 }) end,
  "F.conv1d(x, w, b, 2, 1, 1, 2)", { x = "T[2, 4, 9]", w = "T[6, 2, 3]", b = "T[6]" })
conv("nn.Conv1d, same", function() return nn.Conv1d(2, 3, 4, { padding = "same", dilation = 2, bias = false }) end,
  "F.conv1d(x, w, None, 1, 'same', 2)", { x = "T[2, 2, 9]", w = "T[3, 2, 4]" })
conv("nn.Conv2d", function() return nn.Conv2d(2, 3, { 3, 2 }, { padding = { 1, 0 }, dilation = { 1, 2 } }) end,
  "F.conv2d(x, w, b, 1, (1, 0), (1, 2))", { x = "T[2, 2, 5, 6]", w = "T[3, 2, 3, 2]", b = "T[3]" })
conv("nn.Conv3d", function() return nn.Conv3d(2, 4, 2, { stride = { 1, 2, 1 }, padding = 1 }) end,
  "F.conv3d(x, w, b, (1, 2, 1), 1)", { x = "T[1, 2, 3, 4, 3]", w = "T[4, 2, 2, 2, 2]", b = "T[4]" })
conv("nn.ConvTranspose1d", function() return nn.ConvTranspose1d(4, 6, 3, { stride = 3, padding = 1, groups = 2 }) end,
  "F.conv_transpose1d(x, w, b, 3, 1, 0, 2)", { x = "T[2, 4, 5]", w = "T[4, 3, 3]", b = "T[6]" },
  { x = "T[1, 4, 1]", w = "T[4, 3, 3]", b = "T[6]" })
conv("nn.ConvTranspose2d", function() return nn.ConvTranspose2d(3, 2, 4, { stride = 2, padding = 1 }) end,
  "F.conv_transpose2d(x, w, b, 2, 1)", { x = "T[2, 3, 4, 5]", w = "T[3, 2, 4, 4]", b = "T[2]" })
conv("nn.ConvTranspose2d, all", function()
  return nn.ConvTranspose2d(4, 4, { 3, 2 }, { stride = { 2, 3 }, padding = { 2, 0 }, output_padding = { 1, 2 },
    dilation = { 2, 1 }, groups = 2, bias = false })
end, "F.conv_transpose2d(x, w, None, (2, 3), (2, 0), (1, 2), 2, (2, 1))", { x = "T[2, 4, 3, 2]", w = "T[4, 2, 3, 2]" })
conv("nn.ConvTranspose3d", function() return nn.ConvTranspose3d(2, 3, 2, { stride = 2, output_padding = 1 }) end,
  "F.conv_transpose3d(x, w, b, 2, 0, 1)", { x = "T[1, 2, 2, 3, 2]", w = "T[2, 3, 2, 2, 2]", b = "T[3]" })
conv("nn.ConvTranspose1d, stride 1", function() return nn.ConvTranspose1d(2, 2, 3, { padding = 2, bias = false }) end,
  "F.conv_transpose1d(x, w, None, 1, 2)", { x = "T[1, 2, 5]", w = "T[2, 2, 3]" })

for mode in ("reflect replicate circular"):gmatch "%a+" do
  conv("nn.Conv2d, " .. mode, function()
    return nn.Conv2d(2, 3, { 3, 2 }, { padding = { 2, 1 }, padding_mode = mode, stride = { 1, 2 } })
  end, ("F.conv2d(F.pad(x, (1, 1, 2, 2), mode='%s'), w, b, (1, 2))"):format(mode),
    { x = "T[2, 2, 5, 4]", w = "T[3, 2, 3, 2]", b = "T[3]" })
end
conv("nn.Conv1d, same, circular", function()
  return nn.Conv1d(2, 3, 4, { padding = "same", padding_mode = "circular", bias = false })
end, "F.conv1d(F.pad(x, (1, 2), mode='circular'), w)", { x = "T[2, 2, 9]", w = "T[3, 2, 4]" })
conv("nn.Conv3d, replicate", function()
  return nn.Conv3d(1, 2, 2, { padding = 1, padding_mode = "replicate" })
end, "F.conv3d(F.pad(x, (1,) * 6, mode='replicate'), w, b)",
  { x = "T[1, 1, 2, 3, 2]", w = "T[2, 1, 2, 2, 2]", b = "T[2]" })
add { "padding layers", run = function(a)
  return { nn.ZeroPad2d { { 1, 2 }, 0 }(a.x), nn.ConstantPad2d(1, -2)(a.x),
    nn.ReflectionPad2d { 1, { 2, 0 } }(a.x), nn.ReplicationPad2d(3)(a.x), nn.CircularPad2d { { 0, 3 }, 2 }(a.x) }
end, peer = [[(torch.nn.ZeroPad2d((0, 0, 1, 2))(x), torch.nn.ConstantPad2d(1, -2.)(x),
    torch.nn.ReflectionPad2d((2, 0, 1, 1))(x),
    torch.nn.ReplicationPad2d(3)(x), torch.nn.CircularPad2d((2, 2, 0, 3))(x))]], args = { { x = "T[2, 2, 3, 4]" } } }
add { "padding layers of one dim", run = function(a)
  return { nn.ZeroPad1d { { 0, 2 } }(a.x), nn.ConstantPad1d(1, 0.5)(a.x), nn.ReflectionPad1d(2)(a.x),
    nn.ReplicationPad1d(2)(a.x), nn.CircularPad1d(1)(a.x) }
end, peer = [[(torch.nn.ZeroPad1d((0, 2))(x), torch.nn.ConstantPad1d(1, .5)(x), torch.nn.ReflectionPad1d(2)(x),
    torch.nn.ReplicationPad1d(2)(x), torch.nn.CircularPad1d(1)(x))]], args = { { x = "T[2, 1, 4]" } } }
add { "padding layers of three dims", run = function(a)
  return { nn.ZeroPad3d(1)(a.x), nn.ConstantPad3d({ 0, 1, { 0, 1 } }, 3)(a.x), nn.ReflectionPad3d(1)(a.x),
    nn.ReplicationPad3d { 1, 0, 2 }(a.x), nn.CircularPad3d(1)(a.x) }
end, peer = [[(torch.nn.ZeroPad3d(1)(x), torch.nn.ConstantPad3d((0, 1, 1, 1, 0, 0), 3.)(x),
    torch.nn.ReflectionPad3d(1)(x),
    torch.nn.ReplicationPad3d((2, 2, 0, 0, 1, 1))(x), torch.nn.CircularPad3d(1)(x))]],
  args = { { x = "T[1, 2, 2, 3, 2]" } } }

add { "nn.pixel_shuffle", run = function(a) return nn.pixel_shuffle(a.x, 2) end, peer = "F.pixel_shuffle(x, 2)",
  args = { { x = "T[2, 8, 2, 3]" } } }
add { "nn.pixel_unshuffle", run = function(a) return nn.PixelUnshuffle(2)(a.x) end, peer = "F.pixel_unshuffle(x, 2)",
  args = { { x = "T[2, 2, 4, 6]" } } }
add { "nn.channel_shuffle", run = function(a) return nn.channel_shuffle(a.x, 3) end,
  peer = "F.channel_shuffle(x, 3)", args = { { x = "T[2, 6, 2, 2]" } } }

-- ---- pools ----

local EQUAL = { { { 1, 1, 0, 2, 2, 2, 0 } } }

local function bilinear() return nn.Bilinear(3, 4, 2) end
add { "nn.Bilinear", run = function(a)
  return with_cells(bilinear, a, BOTH, function(layer) return layer(a.x, a.y) end)
end, peer = "F.bilinear(x, y, w, b)", args = { { x = "T[5, 3]", y = "T[5, 4]", w = "T[2, 3, 4]", b = "T[2]" },
  { x = "T[2, 3, 3]", y = "T[2, 3, 4]", w = "T[2, 3, 4]", b = "T[2]" },
  { x = "T[3]", y = "T[4]", w = "T[2, 3, 4]", b = "T[2]" } } }

add { "nn.LPPool1d", run = function(a)
  return { nn.LPPool1d(2, 3)(a.x), nn.LPPool1d(3, 2, { stride = 1 })(a.x:abs()),
    nn.LPPool1d(1.5, 2, { ceil_mode = true })(a.x:abs()), dc.stop_gradient(nn.LPPool1d(3, 3)(-a.x:abs())) }
end, peer = [[(F.lp_pool1d(x, 2., 3), F.lp_pool1d(x.abs(), 3., 2, 1),
    F.lp_pool1d(x.abs(), 1.5, 2, ceil_mode=True), F.lp_pool1d(-x.abs(), 3., 3).detach())]],
  args = { { x = "T[2, 3, 7]" } } }
add { "nn.LPPool2d", run = function(a)
  return { nn.LPPool2d(2, { 2, 3 })(a.x), nn.LPPool2d(4, 2, { stride = 1 })(a.x) }
end, peer = "(F.lp_pool2d(x, 2., (2, 3)), F.lp_pool2d(x, 4., 2, 1))", args = { { x = "T[2, 2, 4, 6]" } } }
add { "nn.LPPool3d", run = function(a) return nn.LPPool3d(2, 2)(a.x) end, peer = "F.lp_pool3d(x, 2., 2)",
  args = { { x = "T[1, 2, 4, 2, 3]" } } }

add { "nn.MaxPool1d", run = function(a)
  return { nn.MaxPool1d(2)(a.x), nn.MaxPool1d(3, { stride = 2, padding = 1, ceil_mode = true })(a.x) }
end, peer = "(F.max_pool1d(x, 2), F.max_pool1d(x, 3, 2, 1, ceil_mode=True))",
  args = { { x = "T[2, 3, 7]" }, { x = "T[1, 1, 8]" }, { x = { "T[1, 1, 7]", values = EQUAL } } } }
add { "nn.MaxPool2d", run = function(a)
  return { nn.MaxPool2d(2, { ceil_mode = true })(a.x), nn.MaxPool2d(2, { dilation = 2, stride = 1 })(a.x) }
end, peer = "(F.max_pool2d(x, 2, ceil_mode=True), F.max_pool2d(x, 2, 1, 0, 2))", args = { { x = "T[2, 2, 5, 4]" } } }
add { "nn.MaxPool3d", run = function(a) return nn.MaxPool3d({ 2, 3, 2 }, { stride = 2, padding = 1 })(a.x) end,
  peer = "F.max_pool3d(x, (2, 3, 2), 2, 1)", args = { { x = "T[1, 2, 4, 5, 3]" } } }

-- With indices, and back from them.
local WITH = { x = { "T[1, 1, 7]", values = { { { -math.huge, -math.huge, 0 / 0, 1, 0 / 0, 2, 2 } } } }, grad = false }
local LOW, N = -math.huge, 0 / 0
local LOWEST = { x = { "T[1, 1, 5, 7]", values = { { { { LOW, LOW, LOW, N, 1, 1, 1 }, { LOW, LOW, LOW, 2, 1, N, 1 },
  { LOW, LOW, LOW, 0, 1, 5, 5 }, { LOW, LOW, LOW, 1, 5, 5, 1 }, { 0, 0, 0, 0, 0, 0, 0 } } } } }, grad = false }
add { "nn.MaxUnpool1d", run = function(a)
  local y, at = nn.MaxPool1d(2, { return_indices = true })(a.x)
  local z, where = dc.max_pool1d(a.x, 3, { stride = 2, padding = 1, return_indices = true })
  return { y, at, nn.MaxUnpool1d(2)(y * y, at, { output_size = { a.x.shape[3] } }), z, where,
    dc.stop_gradient(nn.max_unpool1d(z, where, 3, { stride = 2, padding = 1 })) }
end, peer = [[
y, at = F.max_pool1d(x, 2, return_indices=True)
z, where = F.max_pool1d(x, 3, 2, 1, return_indices=True)
result = (y, at, F.max_unpool1d(y * y, at, 2, output_size=(x.shape[2],)), z, where,
    F.max_unpool1d(z, where, 3, 2, 1).detach())]],
  args = { { x = "T[2, 3, 7]" }, { x = "T[1, 1, 8]" }, { x = { "T[1, 1, 7]", values = EQUAL } }, WITH } }
add { "nn.MaxUnpool2d", run = function(a)
  local y, at = dc.max_pool2d(a.x, { 2, 3 }, { ceil_mode = true, return_indices = true })
  local z, where = dc.max_pool2d(a.x, 3, { dilation = 2, stride = 1, padding = 1, return_indices = true })
  local _, far = dc.max_pool2d(a.x, { 5, 7 }, { padding = { 2, 3 }, stride = 2, return_indices = true })
  return { y, at, nn.MaxUnpool2d({ 2, 3 })(y, at, { output_size = a.x.shape }), z, where, far }
end, peer = [[
y, at = F.max_pool2d(x, (2, 3), ceil_mode=True, return_indices=True)
z, where = F.max_pool2d(x, 3, 1, 1, 2, return_indices=True)
far = F.max_pool2d(x, (5, 7), 2, (2, 3), return_indices=True)[1]
result = (y, at, F.max_unpool2d(y, at, (2, 3), output_size=x.shape), z, where, far)]],
  args = { { x = "T[2, 2, 5, 7]" }, LOWEST } }
add { "nn.MaxUnpool3d", run = function(a)
  local y, at = nn.MaxPool3d(2, { return_indices = true })(a.x)
  local _, far = dc.max_pool3d(a.x, 4, { stride = 1, padding = 1, return_indices = true })
  return { y, at, far, nn.MaxUnpool3d(2)(y, at, { output_size = { 4, 6, 3 } }) }
end, peer = [[
y, at = F.max_pool3d(x, 2, return_indices=True)
result = (y, at, F.max_pool3d(x, 4, 1, 1, return_indices=True)[1], F.max_unpool3d(y, at, 2, output_size=(4, 6, 3)))]],
  args = { { x = "T[1, 2, 4, 6, 3]" } } }

add { "nn.AvgPool1d", run = function(a)
  return { nn.AvgPool1d(3, { padding = 1, ceil_mode = true })(a.x),
    nn.AvgPool1d(3, { padding = 1, ceil_mode = true, count_padding = false })(a.x) }
end, peer = "(F.avg_pool1d(x, 3, 3, 1, True), F.avg_pool1d(x, 3, 3, 1, True, False))",
  args = { { x = "T[2, 3, 8]" }, { x = "T[1, 1, 6]" }, { x = "T[1, 1, 3]" } } }
add { "nn.AvgPool2d", run = function(a)
  return { nn.AvgPool2d(2, { ceil_mode = true })(a.x), nn.AvgPool2d(3, { stride = 2, padding = 1 })(a.x),
    nn.AvgPool2d(2, { divisor_override = 3, count_padding = false, padding = 1 })(a.x) }
end, peer = "(F.avg_pool2d(x, 2, ceil_mode=True), F.avg_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 2, 2, 1, False, False, 3))",
  args = { { x = "T[2, 2, 5, 4]" } } }
add { "nn.AvgPool3d", run = function(a) return nn.AvgPool3d(2, { stride = { 1, 2, 2 }, ceil_mode = true })(a.x) end,
  peer = "F.avg_pool3d(x, 2, (1, 2, 2), 0, True)", args = { { x = "T[1, 2, 3, 5, 4]" } } }

for n, x in ipairs { "T[2, 3, 7]", "T[2, 2, 7, 6]", "T[1, 2, 5, 4, 6]" } do
  local sizes, text = ({ { 3 }, { 3, false }, { 2, 6, 3 } })[n], ({ "3", "(3, None)", "(2, 6, 3)" })[n]
  for _, kind in ipairs { "avg", "max" } do
    local f, theirs = nn[("adaptive_%s_pool%dd"):format(kind, n)], ("F.adaptive_%s_pool%dd(x, "):format(kind, n)
    add { ("nn.adaptive_%s_pool%dd"):format(kind, n), run = function(a) return { f(a.x, sizes), f(a.x, 1), f(a.x,
      4) } end,
      peer = ("(%s%s), %s1), %s4))"):format(theirs, text, theirs, theirs), args = { { x = x } } }
  end
end
add { "nn.GlobalAvgPool", run = function(a) return { nn.GlobalAvgPool()(a.x), nn.GlobalMaxPool()(a.x) } end,
  peer = "(x.mean((2, 3)), x.amax((2, 3)))", args = { { x = "T[2, 3, 4, 2]" } } }

-- ---- norms ----

for n, shape in ipairs { "T[3, 4, 5]", "T[3, 4, 2, 3]", "T[2, 4, 2, 1, 3]" } do
  local batch, instance = nn[("BatchNorm%dd"):format(n)], nn[("InstanceNorm%dd"):format(n)]
  local args = { { x = shape, w = "T[4]", b = "T[4]" }, n == 1 and { x = "T[5, 4]", w = "T[4]", b = "T[4]" } or nil }
  local function batch_layer() return batch(4) end
  local function instance_layer() return instance(4, { affine = true, eps = 1e-3 }) end
  add { ("nn.BatchNorm%dd"):format(n), run = function(a) return with_cells(batch_layer, a, BOTH) end,
    peer = "F.batch_norm(x, None, None, w, b, True)", args = args }
  add { ("nn.InstanceNorm%dd"):format(n),
    run = function(a) return with_cells(instance_layer, a, BOTH) end,
    peer = "F.instance_norm(x, None, None, w, b, eps=1e-3)", args = { args[1] } }
end

-- Two batches, then evaluation mode.
local function running(make)
  return function(a)
    local layer = make():cast(a.x.dtype)
    layer(a.x)
    layer(a.x * 2 + 1)
    local trained = { layer.running_mean * 1, layer.running_var * 1 }
    layer:eval()
    return { layer(a.x), table.unpack(trained) }
  end
end

local RUNNING = [[
layer(x); layer(x * 2 + 1)
seen = (layer.running_mean.clone(), layer.running_var.clone())
layer.eval()
result = (layer(x),) + seen]]

local LIKE = { { x = "T[3, 2, 4, 3]" }, grad = false }
add { "nn.BatchNorm2d, running", lazy_only = true, run = running(function() return nn.BatchNorm2d(2, {
  momentum = 0.3 }) end),
  peer = "layer = torch.nn.BatchNorm2d(2, momentum=0.3, dtype=x.dtype)\n" .. RUNNING, grad = false, args = LIKE }
add { "nn.BatchNorm2d, mean of all", lazy_only = true, grad = false, args = LIKE,
  run = running(function() return nn.BatchNorm2d(2, { momentum = false, affine = false }) end),
  peer = "layer = torch.nn.BatchNorm2d(2, momentum=None, affine=False, dtype=x.dtype)\n" .. RUNNING }
add { "nn.InstanceNorm2d, running", lazy_only = true, grad = false, args = LIKE,
  run = running(function() return nn.InstanceNorm2d(2, { track_running_stats = true }) end),
  peer = "layer = torch.nn.InstanceNorm2d(2, track_running_stats=True, dtype=x.dtype)\n" .. RUNNING }

local function group() return nn.GroupNorm(2, 4) end
add { "nn.GroupNorm", run = function(a) return with_cells(group, a, BOTH) end,
  peer = "F.group_norm(x, 2, w, b)",
  args = { { x = "T[3, 4, 5]", w = "T[4]", b = "T[4]" }, { x = "T[2, 4, 3, 2]", w = "T[4]", b = "T[4]" },
    { x = "T[3, 4]", w = "T[4]", b = "T[4]" } } }
add { "nn.local_response_norm", run = function(a)
  return { nn.local_response_norm(a.x, 3), nn.local_response_norm(a.x, 2, { alpha = 0.5, beta = 0.5, k = 2 }) }
end, peer = "(F.local_response_norm(x, 3), F.local_response_norm(x, 2, 0.5, 0.5, 2))",
  args = { { x = "T[2, 5, 3]" }, { x = "T[2, 4, 2, 3]" } } }

-- ---- attention ----

local QKV = { q = "T[2, 3, 4, 5]", k = "T[2, 3, 6, 5]", v = "T[2, 3, 6, 2]" }

local function with(t, more)
  local all = {}
  for key, value in pairs(t) do all[key] = value end
  for key, value in pairs(more) do all[key] = value end
  return all
end

local attend = nn.scaled_dot_product_attention
local THEIRS = "F.scaled_dot_product_attention(q, k, v%s)"

add { "attention", run = function(a) return attend(a.q, a.k, a.v) end, peer = THEIRS:format "", args = { QKV,
  { q = "T[1, 2]", k = "T[1, 2]", v = "T[1, 3]" } } }
add { "attention, causal", run = function(a) return attend(a.q, a.k, a.v, { causal = true, scale = 0.3 }) end,
  peer = THEIRS:format ", is_causal=True, scale=0.3", args = { QKV } }
-- the second row of the mask is all false: zeros
add { "attention, bools", run = function(a) return attend(a.q, a.k, a.v, { mask = a.m }) end,
  peer = THEIRS:format ", attn_mask=m", args = { with(QKV, { m = { "bool[4, 6]", p = 0.6 } }),
    with(QKV, { m = "bool[2, 1, 1, 6]" }), { q = "T[2, 2]", k = "T[2, 2]", v = "T[2, 2]",
      m = { "bool[2, 2]", values = { { true, false }, { false, false } } } } } }
add { "attention, added", run = function(a) return attend(a.q, a.k, a.v, { mask = a.m }) end,
  peer = THEIRS:format ", attn_mask=m", args = { with(QKV, { m = "T[3, 4, 6]" }),
    { q = "T[2, 2]", k = "T[2, 2]", v = "T[2, 2]",
      m = { "T[2, 2]", values = { { 0.5, -math.huge }, { -math.huge, -math.huge } }, grad = false } } } }
add { "attention, groups", run = function(a)
  return { attend(a.q, a.k, a.v, { enable_gqa = true, causal = true }),
    attend(a.q, a.k, a.v, { enable_gqa = true, mask = a.m }) }
end, peer = ("(%s, %s)"):format(THEIRS:format ", is_causal=True, enable_gqa=True",
  THEIRS:format ", attn_mask=m, enable_gqa=True"),
  args = { { q = "T[2, 4, 3, 5]", k = "T[2, 2, 6, 5]", v = "T[2, 2, 6, 2]", m = { "bool[4, 3, 6]", p = 0.8 } } } }

-- Parameters of a layer by short names; matrices are turned for the peer.
local HEADS = { wi = "in_proj_weight", bi = "in_proj_bias", wo = "out_proj.weight", bo = "out_proj.bias" }
local HEAD_ARGS = { wi = "T[4, 12]", bi = "T[12]", wo = "T[4, 4]", bo = "T[4]" }
local function attention_of(options)
  return function() return nn.MultiheadAttention(4, 2, options) end
end

local PLAIN, FRONT, OTHER, FEWER = attention_of(), attention_of { batch_first = true },
  attention_of { k_size = 3, v_size = 5, bias = false }, attention_of { kv_heads = 1, bias = false }
local MULTI = "F.multi_head_attention_forward(%s, 4, 2, wi.t(), bi, None, None, False, 0.0, wo.t(), bo, %s)"

add { "nn.MultiheadAttention", run = function(a)
  local y, cells = with_cells(PLAIN, a, HEADS, function(layer)
    local results = { layer(a.x, nil, nil, { causal = true, need_weights = true }) }
    results[3], results[4] = layer(a.x, a.m, a.m, { need_weights = true, average_weights = false,
      key_padding_mask = a.pad })
    return results
  end)
  return y, cells
end, peer = "result = " .. MULTI:format("x, x, x", "attn_mask=torch.ones(3, 3, dtype=torch.bool).triu(1)") .. " + " ..
  MULTI:format("x, m, m", "key_padding_mask=pad, average_attn_weights=False"),
  args = { with(HEAD_ARGS, { x = "T[3, 2, 4]", m = "T[5, 2, 4]",
    pad = { "bool[2, 5]", values = { { false, true, false, false, true }, { false, false, false, false,
      false } } } }) } }
add { "nn.MultiheadAttention, batch first", run = function(a)
  return with_cells(FRONT, a, HEADS, function(layer) return layer(a.x, a.k, a.v) end)
end, peer = MULTI:format("x.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1)", "need_weights=False") ..
  "[0].transpose(0, 1)", args = { with(HEAD_ARGS, { x = "T[2, 3, 4]", k = "T[2, 5, 4]", v = "T[2, 5, 4]" }) } }
add { "nn.MultiheadAttention, no batch", run = function(a)
  return with_cells(PLAIN, a, HEADS, function(layer)
    return { layer(a.x, nil, nil, { mask = a.m, need_weights = true }) }
  end)
end, peer = MULTI:format("x, x, x", "attn_mask=m"), args = { with(HEAD_ARGS, { x = "T[3, 4]", m = "T[3, 3]" }) } }
add { "nn.MultiheadAttention, other sizes", run = function(a)
  return with_cells(OTHER, a, { wq = "q_proj_weight",
    wk = "k_proj_weight",
    wv = "v_proj_weight", wo = "out_proj.weight" }, function(layer) return layer(a.x, a.k, a.v) end)
end, peer = "F.multi_head_attention_forward(x, k, v, 4, 2, None, None, None, None, False, 0.0, wo.t(), None, " ..
  "need_weights=False, use_separate_proj_weight=True, " ..
  "q_proj_weight=wq.t(), k_proj_weight=wk.t(), v_proj_weight=wv.t())[0]",
  args = { { x = "T[3, 2, 4]", k = "T[5, 2, 3]", v = "T[5, 2, 5]", wq = "T[4, 4]", wk = "T[3, 4]", wv = "T[5, 4]",
    wo = "T[4, 4]" } } }

-- Fewer heads of k and v: as if they stood there several times.
add { "nn.MultiheadAttention, kv_heads", run = function(a)
  return with_cells(FEWER, a, { wi = "in_proj_weight", wo = "out_proj.weight" })
end, peer = [[
k, v = wi[:, 4:6], wi[:, 6:]
result = F.multi_head_attention_forward(x, x, x, 4, 2, torch.cat([wi[:, :4], k, k, v, v], 1).t(), None, None, None,
  False,
  0.0, wo.t(), None, need_weights=False)[0] ]], args = { { x = "T[3, 2, 4]", wi = "T[4, 8]", wo = "T[4, 4]" } } }

-- ---- transformers: parameters by their names in PyTorch, those of linear layers turned ----

-- Cases of a layer whose parameters are waves, the same on both sides.
local function same_parameters(layer)
  local first = 0
  for _, named in ipairs(layer:named_parameters()) do
    local cell, n = named[2], 1
    for _, size in ipairs(cell.shape) do n = n * size end
    cell:set(((dc.iota(("f64[%d]"):format(n)) * 0.7 + first):cos() * 0.5):cast(cell.dtype):reshape(cell.shape))
    first = first + 1
  end
  return layer
end

local PEER_PARAMETERS = [[
layer = layer.to(x.dtype).eval()
named = sorted((tuple(int(p) if p.isdigit() else p for p in name.split(".")), p) for name,
  p in layer.named_parameters())
for first, (name, p) in enumerate(named):
  turned = p.dim() == 2
  wave = torch.cos(torch.arange(p.numel(), dtype=torch.float64) * 0.7 + first) * 0.5
  shape = p.shape[::-1] if turned else p.shape
  p.data = (wave.reshape(shape).t() if turned else wave.reshape(shape)).to(x.dtype)
]]

local function transformer(name, make, call, theirs, args)
  add { name, run = function(a)
    local key = name .. a.x.dtype
    layers[key] = layers[key] or same_parameters(make():cast(a.x.dtype):eval())
    return (call(layers[key], a))
  end, peer = ("layer = %s\n%sresult = %s"):format(theirs[1], PEER_PARAMETERS, theirs[2]), args = { args } }
end

transformer("nn.TransformerEncoderLayer", function() return nn.TransformerEncoderLayer(4, 2, { feedforward = 6 }) end,
  function(layer, a) return layer(a.x, { key_padding_mask = a.pad }) end,
  { "torch.nn.TransformerEncoderLayer(4, 2, 6)", "layer(x, src_key_padding_mask=pad)" },
  { x = "T[3, 2, 4]", pad = { "bool[2, 3]", values = { { false, true, false }, { false, false, false } } } })
transformer("nn.TransformerEncoder", function()
  return nn.TransformerEncoder(4, 2, { layers = 2, feedforward = 6, activation = "gelu", norm_first = true,
    batch_first = true })
end, function(layer, a) return layer(a.x, { causal = true }) end,
  { "torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(4, 2, 6, activation='gelu', norm_first=True, " ..
    "batch_first=True), 2, torch.nn.LayerNorm(4))",
    "layer(x, mask=torch.ones(3, 3, dtype=torch.bool).triu(1), is_causal=True)" }, { x = "T[2, 3, 4]" })
transformer("nn.TransformerDecoder", function() return nn.TransformerDecoder(4, 2, { layers = 2, feedforward = 6 }) end,
  function(layer, a) return layer(a.x, a.m, { causal = true, memory_key_padding_mask = a.pad }) end,
  { "torch.nn.TransformerDecoder(torch.nn.TransformerDecoderLayer(4, 2, 6), 2)", "layer(x, m, " ..
    "tgt_mask=torch.ones(3, 3, dtype=torch.bool).triu(1), memory_key_padding_mask=pad)" },
  { x = "T[3, 2, 4]", m = "T[2, 2, 4]", pad = { "bool[2, 2]", values = { { false, true }, { false, false } } } })
transformer("nn.Transformer", function()
  return nn.Transformer(4, 2, { encoder_layers = 1, decoder_layers = 1, feedforward = 6, bias = false })
end, function(layer, a) return layer(a.x, a.y) end,
  { "torch.nn.Transformer(4, 2, 1, 1, 6, bias=False)", "layer(x, y)" }, { x = "T[3, 2, 4]", y = "T[2, 2, 4]" })

-- ---- positions ----

local ROTARY = [[
n = x.shape[-1] // 2
angle = %s * torch.tensor(%d.0, dtype=torch.float64) ** (-torch.arange(n, dtype=torch.float64) / n)
c, s = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
]]
local HALVES = "a, b = x.chunk(2, -1)\nresult = torch.cat([a * c - b * s, b * c + a * s], -1)"
local PAIRS = "a, b = x[..., 0::2], x[..., 1::2]\nresult = torch.stack([a * c - b * s, b * c + a * s], -1).flatten(-2)"
local FLOAT = { f32 = 1e-5 } -- angles are f32 here
add { "nn.rotary", run = function(a) return nn.rotary(a.x) end, tol = FLOAT,
  peer = ROTARY:format("torch.arange(x.shape[-2]).double()[:, None]", 10000) .. HALVES,
    args = { { x = "T[2, 3, 7, 6]" } } }
add { "nn.rotary, pairs", run = function(a)
  return nn.rotary(a.x, { interleaved = true, base = 500, positions = a.p })
end, tol = FLOAT, peer = ROTARY:format("p.double()[:, None, :, None]", 500) .. PAIRS,
  args = { { x = "T[2, 3, 4, 6]", p = "i32[2, 4]" } } }
add { "nn.RotaryEmbedding, part", run = function(a) return nn.RotaryEmbedding(4)(a.x) end, tol = FLOAT,
  peer = "y, x = x[..., 4:], x[..., :4]\n" .. ROTARY:format("torch.arange(x.shape[-2]).double()[:, None]", 10000) ..
    HALVES .. "\nresult = torch.cat([result, y], -1)", args = { { x = "T[3, 6]" } } }
add { "nn.SinusoidalPositions", run = function(a) return nn.SinusoidalPositions(6)(a.x) end, tol = FLOAT,
  dtypes = { "f32" }, peer = "angle = torch.arange(9).double()[:, None] * 10000 ** (-torch.arange(3).double() / 3)\n" ..
    "result = x + torch.stack([angle.sin(), angle.cos()], -1).flatten(-2).float()", args = { { x = "T[9, 6]" } } }

-- ---- tables, computed weights ----

local function table_of(options)
  return function() return nn.EmbeddingBag(5, 3, options) end
end
local SUM, MEAN, MAX = table_of { mode = "sum" }, table_of { padding_idx = 1 }, table_of { mode = "max" }
local TABLE = { x = "T[1]", w = "T[5, 3]", i = { "i64[2, 4]", high = 5 } }
local FLAT = { x = "T[1]", w = "T[5, 3]", i = { "i64[6]", high = 5 }, o = { "i64[3]", values = { 0, 2, 2 } } }
local function bag(name, make, peer, options, args)
  add { name, run = function(a)
    return with_cells(make, a, { w = "weight" }, function(layer) return layer(a.i, options(a)) end)
  end, peer = peer .. " + 0 * x", args = { args } }
end
bag("nn.EmbeddingBag, sum", SUM, "F.embedding_bag(i, w, mode='sum', per_sample_weights=f)",
  function(a) return { per_sample_weights = a.f } end, with(TABLE, { f = "T[2, 4]" }))
bag("nn.EmbeddingBag, mean", MEAN, "F.embedding_bag(i, w, mode='mean', padding_idx=1)", function() end, TABLE)
bag("nn.EmbeddingBag, max", MAX, "F.embedding_bag(i, w, mode='max')", function() end, TABLE)
bag("nn.EmbeddingBag, offsets", MEAN, "F.embedding_bag(i, w, o, mode='mean', padding_idx=1)",
  function(a) return { offsets = a.o } end, FLAT)

local function normed_conv() return nn.weight_norm(nn.Conv1d(2, 3, 2, { bias = false })) end
add { "nn.weight_norm", run = function(a) return with_cells(normed_conv, a, { g = "weight_g", v = "weight_v" }) end,
  peer = "F.conv1d(x, v * (g / v.norm(dim=(1, 2), keepdim=True)))",
  args = { { x = "T[2, 2, 4]", v = "T[3, 2, 2]", g = "T[3, 1, 1]" } } }
local function spectral_conv() return nn.spectral_norm(nn.Conv1d(2, 3, 2, { bias = false })):eval() end
add { "nn.spectral_norm", run = function(a)
  return with_cells(spectral_conv, a, { w = "weight_orig", u = "weight_u", v = "weight_v" })
end, peer = "F.conv1d(x, w / (u.detach() @ (w.reshape(3, -1) @ v.detach())))",
  args = { { x = "T[2, 2, 4]", w = "T[3, 2, 2]", u = { "T[3]", grad = false }, v = { "T[4]", grad = false } } } }

return cases
