-- Convolutions that are tiled, and their gradients, of odd extents, strides, dilation, groups and types: compiled,
-- beside what is computed outside of typed functions. Of small whole numbers, so every order of additions has the same
-- sum.
local lu = require "luaunit"
local dc = require "deepc"

TestConvTiles = {}

local function text(t, dims)
  return ("%s[%s]"):format(t, table.concat(dims, ", "))
end

local convs = { dc.conv1d, dc.conv2d, dc.conv3d }

local function whole(t, dims, seed)
  return dc.randint(text("i32", dims), { low = -1, high = 2, seed = seed }):cast(t)
end

local function same(got, want)
  lu.assertEquals(got.shape, want.shape)
  lu.assertEquals((got:cast "f32" - want:cast "f32"):abs():max():item(), 0)
end

-- x: batch, channels, extents; w: channels of the result, of a group, window.
local function try(t, x, w, options)
  local conv = convs[#x - 2]
  local a, b = whole(t, x, 1), whole(t, w, 2)
  local out = conv(a, b, options)
  local g = whole(t, out.shape, 3)
  local function all(v, u, h)
    local y = conv(v, u, options)
    local d = dc.grad((y:cast "f32" * h:cast "f32"):sum(), { v, u })
    return y, d[1], d[2]
  end
  local f = dc.fn(("f(v: %s, u: %s, h: %s) -> %s, %s, %s"):format(text(t, x), text(t, w), text(t, out.shape),
    text(t, out.shape), text(t, x), text(t, w)), all)
  local y, dx, dw = f(a, b, g)
  local px, pw = dc.param(text(t, x), a), dc.param(text(t, w), b)
  local _, by_x, by_w = all(px, pw, g)
  same(y, out)
  same(dx, by_x)
  same(dw, by_w)
end

function TestConvTiles:test_odd_extents()
  try("f32", { 3, 5, 11, 7 }, { 9, 5, 3, 3 }, { padding = 1 })
  try("f32", { 2, 8, 13, 14 }, { 17, 8, 3, 3 }, { padding = 1, stride = 2 })
  try("f32", { 2, 3, 21, 22 }, { 16, 3, 7, 7 }, { padding = 3, stride = 2 })
  try("f32", { 1, 16, 9, 10 }, { 24, 16, 1, 1 }, { stride = 2 })
end

function TestConvTiles:test_windows()
  try("f32", { 1, 16, 12, 13 }, { 24, 16, 3, 2 }, { padding = { { 2, 0 }, { 1, 3 } }, dilation = { 1, 3 } })
  try("f32", { 2, 9, 12, 8 }, { 11, 9, 5, 1 },
    { padding = { { 4, 4 }, { 0, 0 } }, stride = { 3, 1 }, dilation = { 2, 1 } })
  try("f32", { 2, 12, 40 }, { 20, 12, 5 }, { padding = 2, stride = 3 })
  try("f32", { 1, 8, 6, 5, 7 }, { 10, 8, 3, 2, 3 }, { padding = 1, stride = { 1, 2, 1 } })
end

function TestConvTiles:test_groups()
  try("f32", { 2, 20, 8, 9 }, { 32, 10, 3, 3 }, { padding = 1, groups = 2 })
  try("f32", { 2, 12, 9, 10 }, { 12, 1, 3, 3 }, { padding = 1, groups = 12 })
  try("f32", { 2, 32, 9, 11 }, { 64, 1, 5, 5 }, { padding = 2, stride = 2, groups = 32 })
  try("f32", { 2, 7, 20 }, { 7, 1, 4 }, { dilation = 3, groups = 7 })
end

-- Few tiles and long sums: parts of the images, or of the taps where there are few images; of channels.
function TestConvTiles:test_long_sums()
  try("f32", { 37, 8, 8, 9 }, { 16, 8, 3, 3 }, { padding = 1 })
  try("f32", { 1, 8, 40, 13 }, { 16, 8, 3, 3 }, { padding = 1, stride = 2 })
  try("f32", { 3, 8, 30, 13 }, { 12, 8, 4, 1 }, { dilation = { 2, 1 } })
  try("f32", { 1, 67, 7, 6 }, { 16, 67, 3, 3 }, { padding = 1 })
  try("f32", { 5, 30, 16, 16 }, { 30, 1, 3, 3 }, { padding = 1, groups = 30 })
end

function TestConvTiles:test_short_types()
  for _, t in ipairs { "f16", "bf16" } do
    try(t, { 2, 16, 11, 8 }, { 24, 16, 3, 3 }, { padding = 1 })
    try(t, { 2, 5, 11, 8 }, { 9, 5, 3, 3 }, { padding = 1, stride = 2 })
    try(t, { 9, 8, 12, 12 }, { 16, 8, 3, 3 }, { padding = 1 })
    try(t, { 2, 16, 9, 9 }, { 16, 1, 3, 3 }, { padding = 1, groups = 16 })
  end
end

-- The gradient by x of a convolution with a stride is joined of several parts; what is read beside them lies as the
-- result does.
function TestConvTiles:test_joined_gradients()
  try("f32", { 2, 40, 13, 14 }, { 16, 40, 3, 3 }, { padding = 1, stride = 2 })
  try("f32", { 3, 35, 5, 4 }, { 16, 35, 1, 1 }, { stride = 2 })
  try("f16", { 2, 33, 16, 16 }, { 16, 33, 4, 4 }, { stride = 4 })
  try("f32", { 3, 16, 37 }, { 9, 16, 5 }, { padding = 2, stride = 3 })
  try("f32", { 1, 16, 6, 5, 7 }, { 12, 16, 3, 2, 3 }, { padding = 1, stride = { 1, 2, 1 } })
  local x, w = whole("f32", { 2, 40, 9, 11 }, 1), whole("f32", { 8, 40, 3, 3 }, 2)
  local function gradient(v, u)
    return dc.grad(dc.conv2d(v * v, u, { padding = 1, stride = 2 }):sum(), v)
  end
  local f = dc.fn("(v: f32[2, 40, 9, 11], u: f32[8, 40, 3, 3]) -> f32[2, 40, 9, 11]", gradient)
  same(f(x, w), gradient(dc.param("f32[2, 40, 9, 11]", x), w))
end

-- Too few channels of the result for tiles; few of the input, too.
function TestConvTiles:test_few_channels()
  for _, n in ipairs { 1, 3, 7, 8 } do
    try("f32", { 9, 20, 10, 11 }, { n, 20, 3, 3 }, { padding = 1 })
  end
  try("f32", { 2, 3, 13, 12 }, { 8, 3, 5, 5 }, { padding = 2, stride = 2 })
  try("f32", { 1, 17, 40 }, { 8, 17, 5 }, { padding = 2 })
  try("f16", { 5, 16, 9, 9 }, { 4, 16, 3, 3 }, { padding = 1 })
end

-- Images of 16-bit floats whose channels are no whole vectors.
function TestConvTiles:test_odd_channels()
  for _, t in ipairs { "f16", "bf16" } do
    try(t, { 4, 3, 32, 32 }, { 16, 3, 3, 3 }, { padding = 1 })
    try(t, { 3, 13, 17, 16 }, { 21, 13, 3, 3 }, { padding = 1 })
    try(t, { 2, 33, 20, 20 }, { 18, 33, 3, 3 }, { padding = 1, stride = 2 })
    try(t, { 2, 32, 16, 17 }, { 11, 32, 3, 3 }, { dilation = 2 })
    try(t, { 3, 50, 130 }, { 15, 50, 5 }, { padding = 2 })
    try(t, { 2, 7, 11, 12, 13 }, { 9, 7, 2, 2, 3 }, { stride = { 2, 1, 1 } })
    try(t, { 4, 31, 24, 24 }, { 3, 31, 3, 3 }, { padding = 1 })
  end
end
