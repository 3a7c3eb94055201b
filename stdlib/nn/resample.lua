-- Images at other places: interpolate, grid_sample, affine_grid. x is [batch, channels, ...] with 1 to 3 dims behind.
--
-- Along one axis an element of the result is a weighted sum of a few of x, whose positions and weights are numbers that
-- are known while tracing; so each axis by itself is a few gathers and products, which become one kernel.

local dc = require "deepc"
local nn = require "deepc.nn.class"
local _, core = ...

local describe = core.describe

local function fail(row, op, x, hint, text, ...)
  core.fail(row, op, text:format(...), hint, "x", x)
end

-- How many dims x has behind the batch and the channels; their sizes are known.
local function spatial(op, x)
  core.check_tensor(op, x)
  local n = #x.shape - 2
  if n < 1 or n > 3 then
    fail("DIMS", op, x, "x:reshape(1, 1, ...) adds what is missing",
      "x is %s; [batch, channels, ...] with 1 to 3 dims behind is needed", describe(x))
  end
  for k = 3, n + 2 do
    if core.is_size(x.shape[k]) then
      fail("EXTENT", op, x, nil, "the size of axis %d of %s is known when the function runs only", k, describe(x))
    end
  end
  return n
end

core.spatial = spatial

-- ---- positions along one axis ----

-- Of the result's element i (from 0) where it lies in an axis of n, by the mode's convention.
local function place(i, n, m, ratio, aligned)
  if aligned then
    return m > 1 and i * ((n - 1) / (m - 1)) or 0
  end
  return (i + 0.5) * ratio - 0.5
end

-- Keys (1981): a cubic convolution kernel with a = -0.75, as in PyTorch and OpenCV.
local function cubic(t)
  t = math.abs(t)
  local a = -0.75
  if t <= 1 then
    return ((a + 2) * t - (a + 3)) * t * t + 1
  end
  return t < 2 and ((t - 5) * t + 8) * t * a - 4 * a or 0
end

local function clamp(k, n)
  return math.max(0, math.min(n - 1, k))
end

-- Each mode: of an axis of n elements that becomes m, for element i of the result the positions and their weights.
local taps = {}

function taps.nearest(i, n, m, ratio, exact)
  local at = exact and (i * n) // m or math.floor(i * ratio)
  return { clamp(at, n) }, { 1 }
end

taps["nearest-exact"] = function(i, n, m, ratio, exact)
  local at = exact and ((2 * i + 1) * n) // (2 * m) or math.floor((i + 0.5) * ratio)
  return { clamp(at, n) }, { 1 }
end

function taps.linear(i, n, m, ratio, _, aligned)
  local at = math.max(0, place(i, n, m, ratio, aligned))
  local low = clamp(math.floor(at), n)
  local part = math.min(1, at - low)
  return { low, part > 0 and clamp(low + 1, n) or low }, { 1 - part, part } -- 0 times another's infinity is NaN
end

function taps.cubic(i, n, m, ratio, _, aligned)
  local at = place(i, n, m, ratio, aligned)
  local low = math.floor(at)
  local where, weights = {}, {}
  for k = 1, 4 do
    local position = low + k - 2
    where[k], weights[k] = clamp(position, n), cubic(at - position)
  end
  return where, weights
end

function taps.area(i, n, m)
  local first, behind = i * n // m, -(-(i + 1) * n // m)
  local where, weights = {}, {}
  for k = 1, -(-n // m) + 1 do
    where[k] = clamp(first + k - 1, n)
    weights[k] = first + k - 1 < behind and 1 / (behind - first) or 0
  end
  return where, weights
end

-- Sums over the positions: lists of the k-th position of all elements, and of its weight.
local function columns(mode, m, ...)
  local where, weights = {}, {}
  for i = 1, m do
    local at, weight = taps[mode](i - 1, ...)
    for k = 1, #at do
      where[k], weights[k] = where[k] or {}, weights[k] or {}
      where[k][i], weights[k][i] = at[k], weight[k]
    end
  end
  return where, weights
end

local function all_are(list, value)
  for _, v in ipairs(list) do
    if v ~= value then
      return false
    end
  end
  return true
end

-- Each element so often.
local function stretched(x, axis, times)
  local apart, wide, shape = { table.unpack(x.shape) }, { table.unpack(x.shape) }, { table.unpack(x.shape) }
  table.insert(apart, axis + 1, 1)
  table.insert(wide, axis + 1, times)
  shape[axis] = shape[axis] * times
  return x:rename({ [axis] = false }):reshape(apart):expand(wide):reshape(shape)
end

local function resized(x, axis, m, mode, ratio, exact, aligned)
  local n = x.shape[axis]
  if n == m and (exact or aligned) then
    return x
  elseif mode == "nearest" and m % n == 0 and (exact or ratio == n / m) then
    return stretched(x, axis, m // n)
  end
  local where, weights = columns(mode, m, n, m, ratio, exact, aligned)
  local own = {}
  for k = 1, #x.shape do
    own[k] = k == axis and m or 1
  end
  local sum
  for k = 1, #where do
    if not all_are(weights[k], 0) then
      local term = core.pick("interpolate", x, core.anywhere(dc.tensor(where[k], "i32")), axis, 0)
      if not all_are(weights[k], 1) then
        local weight = core.anywhere(dc.tensor(weights[k], x.dtype)):reshape(own)
        term = (mode == "area" and dc.where(weight:gt(0), term, 0) or term) * weight -- of 0: not covered
      end
      sum = sum and sum + term or term
    end
  end
  return sum
end

-- ---- interpolate ----

local kinds = {
  linear = { "linear", 1 }, bilinear = { "linear", 2 }, trilinear = { "linear", 3 }, bicubic = { "cubic", 2 },
  cubic = { "cubic" }, nearest = { "nearest" }, ["nearest-exact"] = { "nearest-exact" }, area = { "area" },
}

-- The kind of the mode; "linear" is for any number of dims.
local function read_mode(op, x, mode, dims)
  mode = mode == nil and "nearest" or mode
  local kind = kinds[mode]
  if not kind then
    core.fail("ARG", op, ('mode is "nearest", "nearest-exact", "linear", "cubic" or "area", not %s'):format(
      core.shown(mode)))
  elseif kind[2] and kind[2] ~= dims and mode ~= "linear" then
    fail("ARG", op, x, nil, '"%s" is for %d dims behind the channels, x is %s', mode, kind[2], describe(x))
  end
  return kind[1]
end

-- A number for each dim, out of one for all or a list.
local function each_dim(op, what, v, dims, good, wanted)
  local list = type(v) == "table" and not core.kind(v) and v or nil
  if list and #list ~= dims then
    core.fail("ARG", op, ("%s is %s, or a list of %d, not a list of %d"):format(what, wanted, dims, #list))
  end
  local out = {}
  for k = 1, dims do
    local number = list and list[k] or v
    if list and list[k] == nil or not good(number) then
      core.fail("ARG", op, ("%s is %s, or a list of %d, not %s"):format(what, wanted, dims, core.shown(number)))
    end
    out[k] = number
  end
  return out
end

local function is_size(n)
  return math.type(n) == "integer" and n > 0
end

local function is_factor(v)
  return type(v) == "number" and v > 0 and v < math.huge
end

-- By dim its new size, and how far apart its elements lie in x: false where that follows from the sizes.
local function read_sizes(op, x, options, dims)
  local sizes, ratios = {}, {}
  if (options.size == nil) == (options.scale == nil) then
    core.fail("ARG", op, "size or scale is needed, one of them", "nn.interpolate(x, { scale = 2 })")
  elseif options.size ~= nil then
    sizes = each_dim(op, "size", options.size, dims, is_size, "a positive integer")
    return sizes, ratios
  end
  for k, factor in ipairs(each_dim(op, "scale", options.scale, dims, is_factor, "a positive number")) do
    sizes[k] = math.floor(x.shape[k + 2] * factor)
    ratios[k] = 1 / factor
    if sizes[k] < 1 then
      fail("DIMS", op, x, nil, "axis %d of %s times %s has no element", k + 2, describe(x), core.shown(factor))
    end
  end
  return sizes, ratios
end

---x of [batch, channels, ...] with other sizes of the 1 to 3 dims behind the channels (F.interpolate of PyTorch,
---scipy.ndimage.zoom, jax.image.resize).
---
---    nn.interpolate(dc.ones "f32[1, 3, 8, 8]", { scale = 2 })
---    nn.interpolate(dc.ones "f32[1, 3, 8, 8]", { size = { 12, 5 }, mode = "bilinear", align_corners = true })
---
---Options: size (a number or one for each dim) or scale (the same; the size is rounded down), mode and align_corners.
---"nearest" takes the element before the place, "nearest-exact" that which is nearest, "linear" (also called
---"bilinear" and "trilinear") the 2 around it along each dim, "cubic" ("bicubic") 4 (Keys 1981, a = -0.75), "area" the
---mean of all that the new element covers. align_corners = true puts the first and the last elements on those of x;
---else borders are aligned. Made smaller, an image keeps what is between the elements that are met out of all but
---"area".
---
---Errors: DC0301 for other numbers of dims, DC0101 for options, DC0202 for integers, which are for the nearest modes,
---DC0311 for sizes that are known at run time.
---@param x deepc.Tensor
---@param options { size?: integer|integer[], scale?: number|number[], mode?: string, align_corners?: boolean }
---@return deepc.Tensor
function nn.interpolate(x, options)
  local op = "interpolate"
  local dims = spatial(op, x)
  core.options(op, options, "size", "scale", "mode", "align_corners")
  options = options or {}
  local mode = read_mode(op, x, options.mode, dims)
  local sizes, ratios = read_sizes(op, x, options, dims)
  local near = mode == "nearest" or mode == "nearest-exact"
  local aligned = options.align_corners ~= nil and core.unless_false(op, options, "align_corners")
  if aligned and (near or mode == "area") then
    core.fail("ARG", op, ('align_corners is for "linear" and "cubic", not "%s"'):format(mode))
  elseif not near then
    core.check_floats(op, x)
  end
  for k = 1, dims do
    if x.shape[k + 2] == 0 then
      fail("DIMS", op, x, nil, "axis %d of %s has no element", k + 2, describe(x))
    end
  end
  local narrow, y = core.in_f32(x)
  for k = 1, dims do
    local n, m = x.shape[k + 2], sizes[k]
    y = resized(y, k + 2, m, mode, ratios[k] or n / m, not ratios[k], aligned)
  end
  y = narrow(y:expand(y.shape))
  return y
end

-- ---- grids ----

-- The grid is [batch, ..., dims]: coordinates of the last dim first.
local function check_grid(op, x, grid, dims)
  core.check_floats(op, grid, "grid")
  local a, b = x.shape, grid.shape
  if #b ~= dims + 2 or b[#b] ~= dims or b[1] ~= a[1] then
    core.fail("DIMS", op, ("x is %s, grid %s; a grid of [%s, %s, %d] is needed"):format(describe(x), describe(grid),
      tostring(a[1]), dims == 2 and "height, width" or "depth, height, width", dims), nil, "x", x, "grid", grid)
  elseif grid.dtype ~= x.dtype then
    core.fail("DTYPE", op, ("x is %s, grid %s"):format(describe(x), describe(grid)), ":cast makes them equal", "x", x,
      "grid", grid)
  end
end

-- Into 0 to span, forth and back.
local function reflected(v, low, span)
  if span == 0 then
    return v * 0
  end
  local far = (v - low):abs()
  local turns = (far / span):floor()
  local rest = far - turns * span
  return dc.where((turns % 2):eq(0), rest, span - rest) + low
end

-- From -1 .. 1 to places along an axis of n.
local function unnormalized(v, n, padding, aligned)
  local at = aligned and (v + 1) * ((n - 1) / 2) or ((v + 1) * n - 1) / 2
  if padding == "reflection" then
    at = aligned and reflected(at, 0, n - 1) or reflected(at, -0.5, n)
  end
  return padding == "zeros" and at or at:clamp(0, n - 1)
end

local function times(a, b)
  return a and b and a * b or a or b
end

-- Along an axis of n the two positions around each place, or the nearest one: as integers inside, with their weights.
local function around(at, n, mode, padding)
  local list
  if mode == "nearest" then
    list = { { at:round() } }
  else
    local low = at:floor()
    local part = at - low
    list = { { low, 1 - part }, { low + 1, part } }
  end
  for i, p in ipairs(list) do
    local inside = padding == "zeros" and (p[1]:ge(0) & p[1]:lt(n)):cast(at.dtype) or nil
    list[i] = { index = p[1]:clamp(0, n - 1):cast "i32", weight = times(p[2], inside) }
  end
  return list
end

-- All combinations of the positions of the dims: index of the row, weight.
local function corners(x, near)
  local dims = #near
  local rows = { x.shape[1], table.unpack({ 1, 1, 1 }, 1, dims) }
  local list = { { index = dc.iota(x.shape[1]):reshape(rows) } }
  for k = 1, dims do
    local more = {}
    for _, c in ipairs(list) do
      local index = c.index * x.shape[k + 2]
      for _, p in ipairs(near[k]) do
        more[#more + 1] = { index = index + p.index, weight = times(c.weight, p.weight) }
      end
    end
    list = more
  end
  return list
end

---x of [batch, channels, height, width] read at the places of a grid of [batch, rows, columns, 2], which gives
---[batch, channels, rows, columns]; with one dim more the grid is [..., 3] (F.grid_sample of PyTorch; Jaderberg et al.,
---2015). A place is (x, y), or (x, y, z), from -1 at the start of the last, the last but one ... axis to 1 at its end.
---
---    nn.grid_sample(dc.ones "f32[1, 3, 8, 8]", dc.zeros "f32[1, 4, 4, 2]")
---
---Options: mode "bilinear" (of 3 dims it is trilinear) or "nearest"; padding, what is outside: "zeros", "border", the
---last elements, or "reflection"; align_corners = true has -1 and 1 in the middle of the first and last elements, else
---at their borders.
---
---Errors: DC0301 for shapes that do not fit, DC0202 for dtypes, DC0101 for options.
---@param x deepc.Tensor floats
---@param grid deepc.Tensor of the dtype of x
---@param options? { mode?: string, padding?: string, align_corners?: boolean } "bilinear", "zeros", false
---@return deepc.Tensor
function nn.grid_sample(x, grid, options)
  local op = "grid_sample"
  local dims = spatial(op, x)
  core.check_floats(op, x)
  if dims < 2 then
    fail("DIMS", op, x, nil, "x is %s; [batch, channels, ...] with 2 or 3 dims behind is needed", describe(x))
  end
  core.options(op, options, "mode", "padding", "align_corners")
  options = options or {}
  local mode, padding = options.mode or "bilinear", options.padding or "zeros"
  if mode ~= "bilinear" and mode ~= "nearest" then
    core.fail("ARG", op, ('mode is "bilinear" or "nearest", not %s'):format(core.shown(mode)))
  elseif padding ~= "zeros" and padding ~= "border" and padding ~= "reflection" then
    core.fail("ARG", op, ('padding is "zeros", "border" or "reflection", not %s'):format(core.shown(padding)))
  end
  local aligned = options.align_corners ~= nil and core.unless_false(op, options, "align_corners")
  check_grid(op, x, grid, dims)
  local narrow, wide, places = core.in_f32(x, grid)
  local near, order = {}, { 1 }
  for k = 1, dims do
    order[k + 1] = k + 2
    local v = places:slice { [dims + 2] = { dims + 1 - k, dims + 1 - k } }
    v = v:reshape { table.unpack(grid.shape, 1, dims + 1) }
    near[k] = around(unnormalized(v, x.shape[k + 2], padding, aligned), x.shape[k + 2], mode, padding)
  end
  order[dims + 2] = 2
  local back = { 1, dims + 2 }
  for k = 1, dims do
    back[k + 2] = k + 1
  end
  local rows, sum = wide:permute(order):flatten(1, dims + 1), nil
  for _, c in ipairs(corners(wide, near)) do
    local term = core.pick(op, rows, c.index, 1, 0)
    if c.weight then
      local shape = { table.unpack(c.weight.shape) }
      shape[#shape + 1] = 1
      term = term * c.weight:reshape(shape)
    end
    sum = sum and sum + term or term
  end
  local y = narrow(sum:permute(back))
  return y
end

---The grid of nn.grid_sample for an affine map: theta of [batch, 2, 3], or [batch, 3, 4], times each place of the
---result (F.affine_grid of PyTorch).
---
---    local theta = dc.tensor { { { 1, 0, 0 }, { 0, 1, 0 } } }
---    nn.grid_sample(dc.ones "f32[1, 3, 8, 8]", nn.affine_grid(theta, { 1, 3, 4, 4 }))
---
---Errors: DC0301 where theta does not fit the sizes, DC0101 for sizes and options.
---@param theta deepc.Tensor floats
---@param size integer[] [batch, channels, height, width] of the result of nn.grid_sample; of 3 dims one more
---@param options? { align_corners?: boolean } false, as for nn.grid_sample
---@return deepc.Tensor
function nn.affine_grid(theta, size, options)
  local op = "affine_grid"
  core.check_floats(op, theta, "theta")
  core.options(op, options, "align_corners")
  local aligned = options ~= nil and options.align_corners ~= nil and core.unless_false(op, options, "align_corners")
  if type(size) ~= "table" or #size ~= 4 and #size ~= 5 then
    core.fail("ARG", op, "the sizes are a list of 4 or 5, [batch, channels, height, width], not " .. core.shown(size))
  end
  local dims, shape = #size - 2, theta.shape
  if #shape ~= 3 or shape[1] ~= size[1] or shape[2] ~= dims or shape[3] ~= dims + 1 then
    core.fail("DIMS", op, ("theta is %s; f32[%s, %d, %d] is needed"):format(describe(theta), tostring(size[1]), dims,
      dims + 1), nil, "theta", theta)
  end
  local out, narrow, wide = { size[1] }, core.in_f32(theta)
  local parts, full = {}, {}
  for k = 1, dims do
    full[k], out[k + 1] = size[k + 2], size[k + 2]
    core.check_size(op, "a size", size[k + 2])
  end
  out[dims + 2] = dims
  for k = 1, dims do -- the coordinates of the last dim first
    local n, own = full[dims + 1 - k], {}
    for i = 1, dims do
      own[i] = i == dims + 1 - k and n or 1
    end
    local low = aligned and (n > 1 and -1 or 0) or -(n - 1) / n
    parts[k] = dc.linspace(low, -low, n, wide.dtype):reshape(own):expand(full)
  end
  parts[dims + 1] = dc.ones(parts[1])
  local places = dc.stack(parts, -1):reshape(-1, dims + 1)
  local y = narrow(places:matmul(wide:transpose()):reshape(out))
  return y
end

---nn.interpolate with these options.
---
---    nn.Upsample { scale = 2, mode = "bilinear" }
---@class deepc.nn.Upsample: deepc.nn.Layer
local Upsample = nn.class "nn.Upsample"
nn.Upsample = Upsample

---@param options { size?: integer|integer[], scale?: number|number[], mode?: string, align_corners?: boolean }
function Upsample:init(options)
  core.options("nn.Upsample", options, "size", "scale", "mode", "align_corners")
  self.options = options or {}
end

function Upsample:forward(x)
  local y = nn.interpolate(x, self.options)
  return y
end
