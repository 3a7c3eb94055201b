-- Images at other places, patches of images, beside PyTorch.
local nn = require "deepc.nn"

-- The same call of both.
local function interpolated(name, options, peer, shapes, more)
  local function run(a) return nn.interpolate(a.x, options) end
  local case = { name, run = run, peer = ("F.interpolate(x, %s)"):format(peer), args = {} }
  for i, shape in ipairs(shapes) do
    case.args[i] = { x = ("T[%s]"):format(shape) }
  end
  for k, v in pairs(more or {}) do
    case[k] = v
  end
  return case
end

local places = {
  images = { x = "T[2, 3, 5, 4]", grid = { "T[2, 3, 6, 2]", low = -1.7, high = 1.7 } },
  volumes = { x = "T[1, 2, 3, 4, 2]", grid = { "T[1, 2, 3, 2, 3]", low = -1.4, high = 1.4 } },
  one = { x = "T[1, 1, 1, 3]", grid = { "T[1, 2, 2, 2]", low = -3.1, high = 3.1 } },
}

local function sampled(mode, padding, aligned, of, dtypes)
  local options = { mode = mode, padding = padding, align_corners = aligned }
  return {
    ("grid_sample %s %s %s%s"):format(mode, padding, aligned and "corners" or "borders", of and ", " .. of or ""),
    run = function(a) return nn.grid_sample(a.x, a.grid, options) end,
    peer = ("F.grid_sample(x, grid, mode='%s', padding_mode='%s', align_corners=%s)"):format(mode, padding,
      aligned and "True" or "False"),
    args = { places[of or "images"] }, dtypes = dtypes,
  }
end

return {
  interpolated("nearest twice", { scale = 2 }, "scale_factor=2", { "2, 3, 4, 5", "2, 1, 3", "1, 2, 2, 3, 2" }),
  interpolated("nearest of other sizes", { size = { 7, 3 } }, "size=(7, 3)", { "2, 3, 4, 5", "1, 1, 7, 1" }),
  interpolated("nearest by a factor", { scale = { 0.5, 1.6 } }, "scale_factor=(0.5, 1.6)", { "2, 3, 5, 5" }),
  interpolated("nearest-exact", { size = { 7, 3 }, mode = "nearest-exact" }, "size=(7, 3), mode='nearest-exact'",
    { "2, 3, 4, 5" }),
  interpolated("nearest of integers", { size = { 3, 7 } }, "size=(3, 7)", { "2, 3, 4, 5" }, { dtypes = { "u8" } }),
  interpolated("linear", { scale = 2, mode = "linear" }, "scale_factor=2, mode='linear'", { "2, 3, 5", "1, 1, 1" }),
  interpolated("linear corners", { size = 8, mode = "linear", align_corners = true },
    "size=8, mode='linear', align_corners=True", { "2, 3, 5", "1, 1, 1", "1, 2, 9" }),
  interpolated("bilinear", { scale = 2, mode = "bilinear" }, "scale_factor=2, mode='bilinear'", { "2, 3, 4, 5" }),
  interpolated("bilinear by a factor", { scale = { 1.7, 0.6 }, mode = "bilinear" },
    "scale_factor=(1.7, 0.6), mode='bilinear'", { "2, 3, 4, 5" }),
  interpolated("bilinear of other sizes", { size = { 3, 9 }, mode = "bilinear" }, "size=(3, 9), mode='bilinear'",
    { "2, 3, 4, 5", "1, 1, 3, 9" }),
  interpolated("bilinear corners", { size = { 3, 9 }, mode = "bilinear", align_corners = true },
    "size=(3, 9), mode='bilinear', align_corners=True", { "2, 3, 4, 5", "1, 2, 7, 1" }),
  interpolated("trilinear", { size = { 3, 4, 5 }, mode = "trilinear" }, "size=(3, 4, 5), mode='trilinear'",
    { "1, 2, 2, 6, 3" }),
  interpolated("bicubic", { size = { 7, 3 }, mode = "bicubic" }, "size=(7, 3), mode='bicubic'", { "2, 3, 4, 5" }),
  interpolated("bicubic corners", { size = { 7, 8 }, mode = "bicubic", align_corners = true },
    "size=(7, 8), mode='bicubic', align_corners=True", { "2, 3, 4, 5", "1, 1, 1, 2" }),
  interpolated("area", { size = { 3, 2 }, mode = "area" }, "size=(3, 2), mode='area'",
    { "2, 3, 7, 5", "1, 2, 2, 1", "1, 1, 6, 4" }),
  interpolated("area of sequences", { size = 3, mode = "area" }, "size=3, mode='area'", { "2, 3, 8" }),

  sampled("bilinear", "zeros", false), sampled("bilinear", "zeros", true, "volumes", { "f32" }),
  sampled("bilinear", "border", false, nil, { "f32" }), sampled("bilinear", "reflection", false, nil, { "f64" }),
  sampled("bilinear", "reflection", true, "one", { "f32" }), sampled("nearest", "zeros", false, "volumes", { "f64" }),
  sampled("nearest", "border", true, nil, { "f32" }), sampled("nearest", "reflection", false, "one", { "f32" }),
  { "affine_grid", run = function(a) return nn.affine_grid(a.theta, { 2, 3, 4, 5 }) end,
    peer = "F.affine_grid(theta, (2, 3, 4, 5), align_corners=False)", args = { { theta = "T[2, 2, 3]" } } },
  { "affine_grid corners", run = function(a)
    return nn.affine_grid(a.theta, { 1, 3, 2, 1, 4 }, { align_corners = true })
  end, peer = "F.affine_grid(theta, (1, 3, 2, 1, 4), align_corners=True)", args = { { theta = "T[1, 3, 4]" } } },

  -- patches
  { "unfold", run = function(a) return { nn.unfold(a.x, 3), nn.unfold(a.x, 2, { stride = 2 }) } end,
    peer = "(F.unfold(x, 3), F.unfold(x, 2, stride=2))", args = { { x = "T[2, 3, 5, 4]" } } },
  { "unfold with options", run = function(a)
    return nn.unfold(a.x, { 2, 3 }, { stride = { 2, 1 }, padding = { 1, 2 }, dilation = { 1, 2 } })
  end, peer = "F.unfold(x, (2, 3), stride=(2, 1), padding=(1, 2), dilation=(1, 2))",
    args = { { x = "T[2, 3, 5, 4]" }, { x = "T[1, 1, 2, 3]" } } },
  { "fold", run = function(a) return nn.fold(a.x, { 5, 4 }, 3) end, peer = "F.fold(x, (5, 4), 3)",
    args = { { x = "T[2, 18, 6]" } } },
  { "fold with options", run = function(a)
    return nn.fold(a.x, { 5, 4 }, { 2, 3 }, { stride = { 2, 1 }, padding = { 1, 2 }, dilation = { 1, 2 } })
  end, peer = "F.fold(x, (5, 4), (2, 3), stride=(2, 1), padding=(1, 2), dilation=(1, 2))",
    args = { { x = "T[1, 12, 12]" } } },
}
