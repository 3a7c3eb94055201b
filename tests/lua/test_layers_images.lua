-- Layers over [batch, channels, ...] beyond their values, which tests/peers/cases/nn.lua compares with PyTorch's: sizes
-- with a bound, names, 16-bit floats, higher gradients, files of PyTorch, mistakes.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local check = require "tests.lua.check"

local fails = check.fails

TestConvLayers = {}

function TestConvLayers:test_a_transposed_convolution_is_the_gradient_of_one()
  for _, o in ipairs { { stride = 2, padding = 1, groups = 2 }, { stride = 3, dilation = 2 }, { padding = { { 1,
    2 } } } } do
    local w = dc.randn(("f64[4, %d, 3]"):format(4 // (o.groups or 1)), { seed = 1 })
    local x = dc.randn("f64[2, 4, 9]", { seed = 2 }):watch()
    local y = dc.conv1d(x, w, o)
    local g = dc.randn(("f64[2, 4, %d]"):format(y:size(3)), { seed = 3 })
    local back = dc.grad((y * g):sum(), x)
    local t = dc.conv_transpose1d(g, w, o)
    local common = math.min(t:size(3), 9)
    check.close(t[{ {}, {}, { 1, common } }]:totable(), back[{ {}, {}, { 1, common } }]:totable(), 1e-12)
  end
end

function TestConvLayers:test_names_and_types()
  local layer = nn.ConvTranspose1d(2, 3, 4, { stride = 2 })
  local y = layer(dc.zeros "f32[n=5, c=2, t=6]")
  lu.assertEquals(y:size "n", 5)
  lu.assertEquals(y.shape, { 5, 3, 14 })
  lu.assertEquals(tostring(layer), "nn.ConvTranspose1d 2 -> 3, 4")
  lu.assertEquals(tostring(nn.Conv3d(1, 2, { 1, 2, 3 })), "nn.Conv3d 1 -> 2, 1x2x3")
  lu.assertEquals(nn.Conv1d(1, 2, 3):cast "bf16"(dc.zeros "bf16[1, 1, 5]").dtype, "bf16")
  lu.assertEquals(dc.conv_transpose1d(dc.full("u8[1, 1, 2]", 100), dc.full("u8[1, 1, 2]", 3)):totable(),
    { { { 300, 600, 300 } } })
  lu.assertEquals(dc.conv_transpose1d(dc.zeros "f32[0, 2, 3]", dc.zeros "f32[2, 1, 2]").shape, { 0, 1, 4 })
end

-- Along an axis whose size varies up to a bound.
function TestConvLayers:test_sizes_with_a_bound()
  local layer = nn.ConvTranspose1d(2, 3, 4, { stride = 2, padding = 1 })
  local f = dc.fn("f(x: f32[1, 2, t <= 8]) -> f32[1, 3, 2 * t]", function(x)
    local y = layer(x)
    return y
  end)
  for _, t in ipairs { 1, 5, 8 } do
    local x = dc.randn(("f32[1, 2, %d]"):format(t), { seed = t })
    check.close(f(x):totable(), layer(x):totable(), 1e-5)
  end
  lu.assertEquals(#f:info(), 1)
  local g = dc.fn("g(x: f32[b <= 4, 2, 5]) -> f32[b, 3, 10], f32[b, 2, 2], f32[b, 2, 5]", function(x)
    return layer(x), nn.adaptive_avg_pool1d(x, 2), nn.group_norm(x, 1)
  end)
  local x = dc.randn("f32[3, 2, 5]", { seed = 4 })
  local a, b, c = g(x)
  check.close(a:totable(), layer(x):totable(), 1e-5)
  check.close(b:totable(), nn.adaptive_avg_pool1d(x, 2):totable(), 1e-5)
  check.close(c:totable(), nn.group_norm(x, 1):totable(), 1e-5)
  local sized = "h(v: f32[1, 1, t <= 8]) -> ()"
  fails("ceil_mode is for sizes that are numbers", dc.fn, sized, function(v)
    dc.max_pool1d(v, 2, { ceil_mode = true })
  end)
end

local function second_gradient(f, at)
  local g = dc.fn("g(x: f64[1, 2, 5]) -> f64[1, 2, 5], f64[1, 2, 5]", function(x)
    local slope = dc.grad(f(x):sin():sum(), x)
    return slope, dc.grad(slope:sin():sum(), x)
  end)
  local _, second = g(at)
  local step, want = 1e-5, {}
  for c = 1, 2 do
    want[c] = {}
    for i = 1, 5 do
      local up, down = g(at:put({ 1, c, i }, at[{ 1, c, i }] + step)), g(at:put({ 1, c, i }, at[{ 1, c, i }] - step))
      want[c][i] = ((up:sin():sum() - down:sin():sum()) / (2 * step)):item()
    end
  end
  check.close(second:totable(), { want }, 1e-6)
end

function TestConvLayers:test_gradients_of_gradients()
  local x = dc.randn("f64[1, 2, 5]", { seed = 7 })
  local layer = nn.ConvTranspose1d(2, 2, 3, { stride = 2 }):cast "f64"
  second_gradient(function(v) return layer(v) end, x)
  second_gradient(function(v) return nn.group_norm(v, 2) end, x)
  second_gradient(function(v) return nn.adaptive_max_pool1d(v, 3) end, x)
  second_gradient(function(v) return nn.adaptive_avg_pool1d(v, 3) end, x)
end

function TestConvLayers:test_over_one_more_axis()
  local w = dc.randn("f32[2, 3, 4]", { seed = 1 })
  local x = dc.randn("f32[3, 1, 2, 5]", { seed = 2 })
  local f = dc.vmap(function(v) return (dc.conv_transpose1d(v, w, { stride = 2 })) end)
  local y = f(x)
  for i = 1, 3 do
    check.close(y[i]:totable(), dc.conv_transpose1d(x[i], w, { stride = 2 }):totable(), 1e-5)
  end
  local norm = dc.vmap(function(v) return (nn.adaptive_max_pool1d(nn.group_norm(v, 1), 3)) end)
  check.close(norm(x)[2]:totable(), nn.adaptive_max_pool1d(nn.group_norm(x[2], 1), 3):totable(), 1e-5)
end

function TestConvLayers:test_mistakes()
  fails("nn.Conv1d: the window is an integer from 1 on, or a list of one, not nil", nn.Conv1d, 1, 1)
  fails("nn.Conv3d: stride is an integer or a list of three, not a list of 2", nn.Conv3d, 1, 1, 1, { stride = { 1,
    2 } })
  fails("nn.ConvTranspose2d: output_padding of 2 is not below the stride of 2 or the dilation of 1",
    nn.ConvTranspose2d, 1, 1, 2, { stride = 2, output_padding = 2 })
  fails("nn.ConvTranspose1d: padding is a number or a list", nn.ConvTranspose1d, 1, 1, 2, { padding = "same" })
  fails("conv_transpose1d: channels differ: axis 2 = 3 against axis 1 = 2 of the kernel", dc.conv_transpose1d,
    dc.zeros "f32[1, 3, 5]", dc.zeros "f32[2, 1, 3]")
  fails("axis 1 = 3 does not divide into 2 groups", dc.conv_transpose1d, dc.zeros "f32[1, 3, 5]",
    dc.zeros "f32[3, 1, 3]", { groups = 2 })
  fails("axis 3: a result of 3 elements, of which 2 and 2 are cut", dc.conv_transpose1d, dc.zeros "f32[1, 2, 1]",
    dc.zeros "f32[2, 1, 3]", { padding = 2 })
  fails("conv_transpose2d: f32[2, 4, 4] has 3 axes, 4 are needed", dc.conv_transpose2d, dc.zeros "f32[2, 4, 4]",
    dc.zeros "f32[2, 1, 3, 3]")
  fails("pixel_shuffle: axis 2 of f32[1, 6, 2, 2] does not divide into parts of 4", nn.pixel_shuffle,
    dc.zeros "f32[1, 6, 2, 2]", 2)
  fails("channel_shuffle: axis 2 of f32[1, 6] does not divide into parts of 4", nn.channel_shuffle,
    dc.zeros "f32[1, 6]", 4)
end

TestPoolLayers = {}

function TestPoolLayers:test_adaptive_sizes()
  local layer = nn.AdaptiveAvgPool2d { 3, false }
  lu.assertEquals(layer(dc.zeros "f32[n=2, 1, 7, 5]").shape, { 2, 1, 3, 5 })
  lu.assertEquals(tostring(layer), "nn.AdaptiveAvgPool2d 3xany")
  lu.assertEquals(tostring(nn.AdaptiveMaxPool2d(1)), "nn.AdaptiveMaxPool2d 1")
  local x = dc.randn("f32[1, 2, 300]", { seed = 1 })
  lu.assertEquals(nn.adaptive_max_pool1d(x, 1):totable(), x:max { axis = 3, keep = true }:totable())
  lu.assertEquals(nn.adaptive_avg_pool1d(dc.ones "bf16[1, 2, 7]", 3).dtype, "bf16")
  lu.assertEquals(nn.GlobalAvgPool()(dc.ones "f32[2, 3, 4]"):totable(), { { 1, 1, 1 }, { 1, 1, 1 } })
end

function TestPoolLayers:test_mistakes()
  fails("nn.AdaptiveAvgPool2d: the size of the result is an integer or a list of two, not a list of 3",
    nn.AdaptiveAvgPool2d, { 1, 2, 3 })
  fails("adaptive_avg_pool1d: x is f32[2, 3]; [batch, channels, length] is needed", nn.adaptive_avg_pool1d,
    dc.zeros "f32[2, 3]", 1)
  fails("adaptive_max_pool1d: axis 3 of f32[2, 3, 0] has no elements", nn.adaptive_max_pool1d,
    dc.zeros "f32[2, 3, 0]", 1)
  fails("adaptive_avg_pool1d: x is i32[2, 3, 4]; floats are needed", nn.adaptive_avg_pool1d, dc.zeros "i32[2, 3, 4]", 1)
  fails("nn.MaxPool2d: ceil_mode is true or false, not 1", nn.MaxPool2d, 2, { ceil_mode = 1 })
  fails("nn.GlobalMaxPool: x is f32[2, 3]; [batch, channels, ...] is needed", nn.GlobalMaxPool(), dc.zeros "f32[2, 3]")
  fails("divisor_override is 0; 1 is the least", dc.avg_pool1d, dc.zeros "f32[1, 1, 4]", 2, { divisor_override = 0 })
end

TestUnpool = {}

function TestUnpool:test_of_batches_of_any_size()
  local pool, unpool = nn.MaxPool2d(2, { return_indices = true }), nn.MaxUnpool2d(2)
  local f = dc.fn("f(x: f32[n <= 8, 1, 4, 4]) -> f32[n, 1, 4, 4]", function(x) return unpool(pool(x)) end)
  local x = dc.iota("f32[1, 1, 4, 4]", 4) + dc.iota("f32[1, 1, 4, 4]", 3)
  lu.assertEquals(f(x):totable(), { { { { 0, 0, 0, 0 }, { 0, 2, 0, 4 }, { 0, 0, 0, 0 }, { 0, 4, 0, 6 } } } })
  lu.assertEquals(tostring(unpool), "nn.MaxUnpool2d 2")
  local long = dc.fn("g(v: f32[1, 1, t <= 64])", function(v)
    return dc.max_pool1d(v, 3, { padding = 1, stride = 2, return_indices = true })
  end)
  local _, at = long(dc.iota("f32[1, 1, 9]", 3))
  lu.assertEquals(at:totable(), { { { 1, 3, 5, 7, 8 } } })
  local rows = dc.vmap(function(v) return (unpool(pool(v))) end)(dc.stack({ x, x * 2 }, 1))
  lu.assertEquals(rows[2]:totable(), (unpool(pool(x)) * 2):totable())
  second_gradient(function(v)
    local y, places = dc.max_pool1d(v, 2, { return_indices = true })
    return nn.max_unpool1d(y, places, 2, { output_size = 5 })
  end, dc.randn("f64[1, 2, 5]", { seed = 1 }))
end

function TestUnpool:test_of_short_floats_and_integers()
  local x = dc.tensor { { { 1, 3, 3, 2 } } }
  for _, dtype in ipairs { "f16", "bf16", "u8", "i32", "i64" } do
    local y, at = dc.max_pool1d(x:cast(dtype), 2, { return_indices = true })
    lu.assertEquals({ y.dtype, at.dtype, at:totable() }, { dtype, "i32", { { { 1, 2 } } } })
    lu.assertEquals(nn.max_unpool1d(y, at:cast "i64", 2):totable(), { { { 0, 3, 3, 0 } } })
  end
end

function TestUnpool:test_mistakes()
  local x, at = dc.zeros "f32[1, 1, 2, 2]", dc.zeros "i32[1, 1, 2, 2]"
  fails("max_unpool2d: x is f32[1, 1, 2]; [batch, channels, height, width] is needed", nn.max_unpool2d,
    dc.zeros "f32[1, 1, 2]", dc.zeros "i32[1, 1, 2]", 2)
  fails("max_unpool2d: x is f32[1, 1, 2, 2], indices are i32[1, 1, 4]; one for each number is needed", nn.max_unpool2d,
    x, dc.zeros "i32[1, 1, 4]", 2)
  fails("max_unpool2d: indices: a tensor is needed, not the number 2", nn.max_unpool2d, x, 2)
  fails("nn.MaxPool2d", nn.MaxPool2d, 2, { return_indices = 1 })
  fails("max_unpool2d: output_size of 6 for axis 4; a pool from 3 to 5 elements gives the 2 of x", nn.MaxUnpool2d(2), x,
    at, { output_size = { 4, 6 } })
  fails("max_unpool2d: index 4 outside 0..3 of axis 3", function()
    return nn.max_unpool2d(x, at + 4, 1):item()
  end)
  fails("axis 4 of f32[1, 1, 4, t <= 8] has a size known at run time", dc.fn, "f(v: f32[1, 1, 4, t <= 8])",
    function(v)
      return dc.max_pool2d(v, 2, { return_indices = true })
    end)
end

TestChannelNorms = {}

function TestChannelNorms:test_16_bits_are_rounded_once()
  local x = dc.randn("f32[4, 6, 5]", { seed = 1 }):cast "bf16"
  for _, layer in ipairs { nn.GroupNorm(2, 6), nn.BatchNorm1d(6), nn.InstanceNorm1d(6) } do
    local want = layer(x:cast "f32"):cast "bf16"
    layer:cast "bf16"
    lu.assertTrue(layer(x):eq(want):all():item(), tostring(layer))
  end
end

function TestChannelNorms:test_states()
  local function names(layer)
    local list = {}
    for i, named in ipairs(layer:named_cells()) do list[i] = named[1] end
    return table.concat(list, " ")
  end
  lu.assertEquals(names(nn.BatchNorm1d(2)), "bias running_mean running_var weight")
  lu.assertEquals(names(nn.BatchNorm1d(2, { momentum = false, affine = false })),
    "num_batches_tracked running_mean running_var")
  lu.assertEquals(names(nn.BatchNorm3d(2, { track_running_stats = false })), "bias weight")
  lu.assertEquals(names(nn.InstanceNorm2d(2)), "")
  lu.assertEquals(names(nn.GroupNorm(1, 2, { affine = false })), "")
  local layer = nn.BatchNorm1d(2, { track_running_stats = false }):eval()
  check.close(layer(dc.tensor { { 1, 2 }, { 3, 6 } }):totable(), { { -1, -1 }, { 1, 1 } }, 1e-5)
end

function TestChannelNorms:test_mistakes()
  fails("nn.GroupNorm: 4 channels do not divide into 32 groups", nn.GroupNorm, 32, 4)
  fails("group_norm: x is f32[2, 5]; [batch, channels, ...] with channels in 2 groups is needed", nn.group_norm,
    dc.zeros "f32[2, 5]", 2)
  fails("group_norm: weight is a tensor of one number for each of 4 channels", nn.group_norm, dc.zeros "f32[2, 4]", 2,
    { weight = dc.ones "f32[2]" })
  fails("nn.BatchNorm1d: x is f32[2, 4]; [batch, 3] or [batch, 3, length] is needed", nn.BatchNorm1d(3),
    dc.zeros "f32[2, 4]")
  fails("nn.InstanceNorm1d: x is f32[2, 3]; [batch, 3, length] is needed", nn.InstanceNorm1d(3), dc.zeros "f32[2, 3]")
  fails("nn.BatchNorm2d: momentum is a number from 0 to 1, not 2", nn.BatchNorm2d, 3, { momentum = 2 })
end

TestMargins = {}

function TestMargins:test_bounded_batches_names_and_short_floats()
  local pad = nn.ReflectionPad1d(2)
  local f = dc.fn("f(x: f32[n <= 8, c=1, t=4]) -> f32[n, c=1, 8]", function(x) return pad(x) end)
  lu.assertEquals(f(dc.iota("f32[2, 1, 4]", 3)):totable()[2], { { 2, 1, 0, 1, 2, 3, 2, 1 } })
  local conv = nn.Conv2d(1, 1, 3, { padding = "same", padding_mode = "replicate", bias = false })
  conv.weight:set(1)
  lu.assertEquals(conv(dc.ones "f32[1, 1, 2, 2]"):totable(), { { { { 9, 9 }, { 9, 9 } } } })
  lu.assertEquals(nn.LPPool1d(2, 2)(dc.tensor({ { { 300, 400 } } }, "f16")):item(), 500.0)
end

function TestMargins:test_mistakes()
  local x = dc.zeros "f32[1, 1, 3, 3]"
  fails('nn.Conv2d: padding_mode is "zeros", "reflect", "replicate" or "circular", not \'edge\'', nn.Conv2d, 1, 1, 3, {
    padding_mode = "edge" })
  fails("nn.ZeroPad2d: padding is a number or a list of two", nn.ZeroPad2d, "same")
  fails("nn.ConstantPad1d: the value is a number, not 'x'", nn.ConstantPad1d, 1, "x")
  fails("nn.ZeroPad1d: x is f32[1, 1, 3, 3]; [batch, channels, length] is needed", nn.ZeroPad1d(1), x)
  fails("reflect", nn.ReflectionPad2d(3), x)
  fails("nn.LPPool2d: the power is a positive number, not 0", nn.LPPool2d, 0, 2)
  fails("nn.LPPool1d: x is i32[1, 1, 2], floats are needed", nn.LPPool1d(2, 2), dc.zeros "i32[1, 1, 2]")
  fails("nn.Bilinear: x2: a tensor is needed, not nil", nn.Bilinear(2, 3, 4), dc.zeros "f32[1, 2]")
  fails("einsum: 'j' is 3 in operand 2 and 2 in operand 3", nn.Bilinear(2, 3, 4), dc.zeros "f32[1, 2]",
    dc.zeros "f32[1, 2]")
end

-- Files of PyTorch: kernels lie there as here, batch norms have a count that ours lack, lists are counted from 0.
TestTheirFiles = {}

function TestTheirFiles:test_a_network()
  local net = nn.Sequential { nn.Conv1d(2, 3, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.ConvTranspose1d(3, 2, 4) }
  local theirs, path = {}, os.tmpname()
  for _, named in ipairs(net:named_cells()) do
    local place, rest = named[1]:match "^(%d+)(.*)$"
    theirs[(place - 1) .. rest] = dc.rand(named[2], { seed = #theirs + 1 })
  end
  theirs["1.num_batches_tracked"] = dc.tensor(7, "i64[]")
  dc.save(path, theirs)
  dc.load(path, net, { first = 0 })
  lu.assertTrue(net[4].weight:eq(theirs["3.weight"]):all():item())
  lu.assertTrue(net[2].running_var:eq(theirs["1.running_var"]):all():item())
  fails("first is 0 or 1, not 2", dc.load, path, net, { first = 2 })
  net[2] = nn.BatchNorm1d(3, { momentum = false })
  dc.load(path, net, { first = 0 })
  lu.assertEquals(net[2].num_batches_tracked:item(), 7)
  net[2] = nn.Identity()
  fails("'1.bias', '1.num_batches_tracked', '1.running_mean' and 2 more have no place", dc.load, path, net, {
    first = 0 })
  os.remove(path)
end
