-- Images at other places and patches of images: other dtypes, sizes known at run time, names, edges, errors. Values and
-- gradients are compared with those of PyTorch: tests/peers/cases/resample.lua.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local check = require "tests.lua.check"
local raises = check.raises

local function type_of(x)
  return tostring(x):match "[^\n]*$"
end

TestInterpolate = {}

function TestInterpolate:test_modes_keep_what_is_constant()
  for _, mode in ipairs { "nearest", "nearest-exact", "linear", "cubic", "area" } do
    for _, size in ipairs { 1, 4, 9 } do
      local y = nn.interpolate(dc.full("f64[1, 2, 3, 5]", 7), { size = size, mode = mode })
      lu.assertEquals(y.shape, { 1, 2, size, size })
      lu.assertTrue((y - 7):abs():max():item() < 1e-13)
    end
  end
end

function TestInterpolate:test_dtypes()
  local x = dc.iota "u8[1, 1, 3]"
  lu.assertEquals(nn.interpolate(x, { scale = 2 }):totable(), { { { 0, 0, 1, 1, 2, 2 } } })
  lu.assertEquals(nn.interpolate(x:cast "bool", { size = 2 }):totable(), { { { false, true } } })
  for _, dtype in ipairs { "f16", "bf16" } do
    local y = nn.interpolate(x:cast(dtype), { size = 5, mode = "linear", align_corners = true })
    lu.assertEquals(y.dtype, dtype)
    lu.assertEquals(y:totable(), { { { 0, 0.5, 1, 1.5, 2 } } })
  end
  raises("interpolate: x is u8[1, 1, 3], floats are needed", "DC0202", nn.interpolate, x, { size = 2, mode = "linear" })
end

function TestInterpolate:test_infinities_stay_where_they_are()
  local x = dc.tensor { { { 1, math.huge, 2, 3, 4, 5, 6, 7 } } }
  local y = nn.interpolate(x, { scale = 2, mode = "linear" }):totable()[1][1]
  lu.assertEquals({ y[1], y[3], y[8] }, { 1, math.huge, 3.25 })
  lu.assertEquals(nn.interpolate(x, { size = 3, mode = "area" }):totable()[1][1][3], 6)
end

function TestInterpolate:test_names_and_batches_of_any_size()
  lu.assertEquals(type_of(nn.interpolate(dc.zeros "f32[n=2, c=3, w=4]", { scale = 2 })), "f32[n=2, c=3, 8]")
  lu.assertEquals(type_of(nn.interpolate(dc.zeros "f32[n=2, c=3, w=4]", { scale = 2, mode = "linear" })),
    "f32[n=2, c=3, 8]")
  local f = dc.fn("f(x: f32[n <= 4, 1, 2]) -> f32[n, 1, 3]", function(x)
    return nn.interpolate(x, { size = 3, mode = "linear", align_corners = true })
  end)
  lu.assertEquals(f({ { { 0, 2 } }, { { 1, 2 } } }):totable(), { { { 0, 1, 2 } }, { { 1, 1.5, 2 } } })
  lu.assertEquals(nn.interpolate(dc.zeros "f32[0, 1, 2]", { size = 3, mode = "linear" }).shape, { 0, 1, 3 })
  raises("interpolate: the size of axis 3 of f32[1, 1, t <= 4] is known when the function runs only", "DC0311",
    function()
      dc.fn("f(x: f32[1, 1, t <= 4]) -> f32[...]", function(x) return nn.interpolate(x, { size = 3 }) end) {
        { { 1 } } }
    end)
end

function TestInterpolate:test_mapped()
  local x = dc.iota("f32[3, 1, 1, 4]") + dc.iota("f32[3, 1, 1, 4]", 1)
  local function twice(v) return nn.interpolate(v, { scale = 2, mode = "linear" }) end
  lu.assertEquals(dc.vmap(twice)(x):totable()[3], twice(x[3]):totable())
  local each = dc.fn("each(xs: f32[3, 1, 1, 4]) -> f32[3, 1, 1, 8]", function(xs) return dc.map(twice, xs) end)
  lu.assertEquals(each(x):totable(), dc.vmap(twice)(x):totable())
end

function TestInterpolate:test_layer()
  local up = nn.Upsample { scale = { 2, 1 }, mode = "nearest" }
  lu.assertEquals(up(dc.zeros "f32[1, 3, 2, 2]").shape, { 1, 3, 4, 2 })
end

function TestInterpolate:test_wrong()
  local x = dc.zeros "f32[1, 2, 3, 4]"
  for text, case in pairs {
    ["interpolate: x is f32[3]; [batch, channels, ...] with 1 to 3 dims behind is needed"] =
      { "DC0301", dc.zeros "f32[3]", { size = 2 } },
    ["interpolate: size or scale is needed, one of them"] = { "DC0101", x, { size = 2, scale = 2 } },
    ["interpolate: size is a positive integer, or a list of 2, not 0"] = { "DC0101", x, { size = 0 } },
    ["interpolate: size is a positive integer, or a list of 2, not a list of 3"] =
      { "DC0101", x, { size = { 1, 2, 3 } } },
    ["interpolate: scale is a positive number, or a list of 2, not -1"] = { "DC0101", x, { scale = -1 } },
    ["interpolate: axis 3 of f32[1, 2, 3, 4] times 0.1 has no element"] = { "DC0301", x, { scale = 0.1 } },
    ['interpolate: "trilinear" is for 3 dims behind the channels, x is f32[1, 2, 3, 4]'] =
      { "DC0101", x, { size = 2, mode = "trilinear" } },
    ['interpolate: mode is "nearest", "nearest-exact", "linear", "cubic" or "area", not \'lanczos\''] =
      { "DC0101", x, { size = 2, mode = "lanczos" } },
    ['interpolate: align_corners is for "linear" and "cubic", not "nearest"'] =
      { "DC0101", x, { size = 2, align_corners = true } },
    ["interpolate: axis 4 of f32[1, 2, 3, 0] has no element"] = { "DC0301", dc.zeros "f32[1, 2, 3, 0]", { size = 2 } },
  } do
    raises(text, case[1], nn.interpolate, case[2], case[3])
  end
end

TestGridSample = {}

function TestGridSample:test_identity()
  local x = dc.randn("f32[2, 3, 4, 5]", { seed = 1 })
  local theta = dc.tensor { { 1, 0, 0 }, { 0, 1, 0 } }:reshape(1, 2, 3):expand(2, 2, 3)
  for _, aligned in ipairs { true, false } do
    local grid = nn.affine_grid(theta, { 2, 3, 4, 5 }, { align_corners = aligned })
    local y = nn.grid_sample(x, grid, { align_corners = aligned, padding = "border" })
    lu.assertTrue((y - x):abs():max():item() < 1e-6)
  end
end

function TestGridSample:test_dtypes_and_typed()
  local grid = dc.tensor({ { { { -1, -1 }, { 1, 1 } } } }, "bf16")
  local x = dc.tensor({ { { { 1, 2 }, { 3, 4 } } } }, "bf16")
  local y = nn.grid_sample(x, grid, { align_corners = true })
  lu.assertEquals(type_of(y), "bf16[1, 1, 1, 2]")
  lu.assertEquals(y:totable(), { { { { 1, 4 } } } })
  local f = dc.fn("f(v: f32[n <= 3, 1, 2, 2], g: f32[n, 1, 2, 2]) -> f32[n, 1, 1, 2]", function(v, g)
    return nn.grid_sample(v, g, { align_corners = true })
  end)
  lu.assertEquals(f(x:cast "f32", grid:cast "f32"):totable(), { { { { 1, 4 } } } })
end

function TestGridSample:test_wrong()
  local x = dc.zeros "f32[1, 2, 3, 4]"
  local grid = dc.zeros "f32[1, 5, 5, 2]"
  for text, case in pairs {
    ["grid_sample: x is f32[1, 2, 3, 4], grid f32[2, 5, 5, 2]; a grid of [1, height, width, 2] is needed"] =
      { "DC0301", x, dc.zeros "f32[2, 5, 5, 2]" },
    ["grid_sample: x is f32[1, 2, 3, 4], grid f64[1, 5, 5, 2]"] = { "DC0202", x, grid:cast "f64" },
    ["grid_sample: grid is i32[1, 5, 5, 2], floats are needed"] = { "DC0202", x, grid:cast "i32" },
    ['grid_sample: mode is "bilinear" or "nearest", not \'cubic\''] = { "DC0101", x, grid, { mode = "cubic" } },
    ['grid_sample: padding is "zeros", "border" or "reflection", not \'wrap\''] =
      { "DC0101", x, grid, { padding = "wrap" } },
  } do
    raises(text, case[1], nn.grid_sample, case[2], case[3], case[4])
  end
  raises("affine_grid: theta is f32[1, 2, 2]; f32[1, 2, 3] is needed", "DC0301", nn.affine_grid,
    dc.zeros "f32[1, 2, 2]", { 1, 1, 2, 2 })
  raises("affine_grid: the sizes are a list of 4 or 5, [batch, channels, height, width], not 3", "DC0101",
    nn.affine_grid, dc.zeros "f32[1, 2, 3]", 3)
end

TestPatches = {}

function TestPatches:test_fold_is_the_adjoint()
  for _, options in ipairs { {}, { stride = 2, padding = 1 }, { dilation = 2, padding = { 2, 1 } } } do
    local x = dc.randn("f64[2, 3, 6, 5]", { seed = 2 })
    local columns = nn.unfold(x, { 3, 2 }, options)
    local v = dc.randn(columns, { seed = 3 })
    local back = nn.fold(v, { 6, 5 }, { 3, 2 }, options)
    lu.assertAlmostEquals((columns * v):sum():item(), (x * back):sum():item(), 1e-10)
  end
end

function TestPatches:test_dims_and_dtypes()
  lu.assertEquals(nn.unfold(dc.iota "i32[1, 1, 4]", 2):totable(), { { { 0, 1, 2 }, { 1, 2, 3 } } })
  lu.assertEquals(nn.unfold(dc.ones "u8[2, 3, 4, 4, 4]", 2, { stride = 2 }).shape, { 2, 24, 8 })
  lu.assertEquals(nn.fold(dc.ones "i32[1, 2, 3]", { 4 }, 2):totable(), { { { 1, 2, 2, 1 } } })
  local f = dc.fn("f(x: f32[n <= 3, 1, 4]) -> f32[n, 2, 3]", function(x) return nn.unfold(x, 2) end)
  lu.assertEquals(f({ { { 1, 2, 3, 4 } } }):totable(), { { { 1, 2, 3 }, { 2, 3, 4 } } })
end

function TestPatches:test_wrong()
  local x = dc.zeros "f32[1, 2, 3, 4]"
  raises("unfold: a window of 5 elements, 1 apart, is larger than the 3 of dim 1 with its padding", "DC0301",
    nn.unfold, x, { 5, 1 })
  raises("unfold: the window is an integer from 1 on, or a list of 2, not a list of 3", "DC0101", nn.unfold, x,
    { 1, 1, 1 })
  raises("unfold: stride is an integer from 1 on, or a list of 2, not 0", "DC0101", nn.unfold, x, 1, { stride = 0 })
  raises("fold: x is f32[1, 8, 5]; [batch, channels * 4, 6] is needed", "DC0301", nn.fold, dc.zeros "f32[1, 8, 5]",
    { 3, 4 }, 2)
  raises("fold: the size of the images is a list of 1 to 3, such as { height, width }, not 3", "DC0101", nn.fold, x, 3,
    2)
end
