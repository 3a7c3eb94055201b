-- Contractions, convolutions, factors of matrices and Fourier transforms of deepc as operations of StableHLO.

local build = require "deepc.stablehlo.build"

local rows = {}

local function taker(list)
  local at = 0
  return function(n)
    at = at + n
    return table.move(list, at - n + 1, at, 1, {})
  end
end

-- Products of short floats are summed in f32 and rounded once.
local function sum_type(dtype)
  return build.is_float(dtype) and build.width(dtype) < 32 and "f32" or dtype
end

-- How precise products are, where that is asked for.
local function precision_of(w)
  return w.precision and { w.precision, w.precision } or nil
end

function rows.dot(w, n, x, y)
  local take = taker(n.attributes)
  local counts = take(2)
  local numbers = { lhs_batching_dimensions = take(counts[1]), rhs_batching_dimensions = take(counts[1]),
    lhs_contracting_dimensions = take(counts[2]), rhs_contracting_dimensions = take(counts[2]) }
  return w:one("dot_general", { x, y }, sum_type(n.dtype), n.shape, { dot_dimension_numbers = numbers,
    precision_config = precision_of(w) }):convert(n.dtype)
end

-- Letters of the axes: where `first` and `second` stand, and the dims of the window.
local function letters(axes, first, second)
  local list = { [axes[1] + 1] = first, [axes[2] + 1] = second }
  for i = 3, #axes do
    list[axes[i] + 1] = i - 3
  end
  return list
end

function rows.conv(w, n, x, kernel)
  local take = taker(n.attributes)
  local dims, groups, batch_groups = table.unpack(take(3))
  local a = { dimension_numbers = { lhs = letters(take(2 + dims), "b", "f"), rhs = letters(take(2 + dims), "o", "i"),
    out = letters(take(2 + dims), "b", "f") }, feature_group_count = groups, batch_group_count = batch_groups,
    precision_config = precision_of(w), window_strides = {}, padding = {}, lhs_dilation = {}, rhs_dilation = {},
    window_reversal = {} }
  for i = 1, dims do
    local d = take(6)
    a.window_strides[i], a.padding[i] = d[1], { d[2], d[3] }
    a.lhs_dilation[i], a.rhs_dilation[i], a.window_reversal[i] = d[4], d[5], d[6] ~= 0
  end
  return w:one("convolution", { x, kernel }, sum_type(n.dtype), n.shape, a):convert(n.dtype)
end

-- ---- matrices ------------------------------------------------------------------------------------

-- Above the diagonal stands what the operation leaves there.
function rows.cholesky(w, n, x)
  local rank = #n.shape
  local factor = w:one("cholesky", { x }, n.dtype, n.shape, { lower = true })
  local below = w:iota("i32", n.shape, rank - 2):ge(w:iota("i32", n.shape, rank - 1))
  return below:select(factor, w:const(n.dtype, n.shape, 0))
end

function rows.triangular_solve(w, n, a, b)
  local upper, transposed, unit = table.unpack(n.attributes)
  return w:one("triangular_solve", { a, b }, n.dtype, n.shape, { left_side = true, lower = upper == 0,
    unit_diagonal = unit ~= 0, transpose_a = transposed ~= 0 and "TRANSPOSE" or "NO_TRANSPOSE" })
end

-- ---- transforms ----------------------------------------------------------------------------------

local complex_of = { f32 = "c64", f64 = "c128" }

-- Axis `axis` as the last one of a complex tensor, and back; parts lie along the last axis of x.
function rows.dft(w, n, x)
  local axis, sign = table.unpack(n.attributes)
  local rank = #n.shape - 1
  local shape, perm = table.move(n.shape, 1, rank, 1, {}), {}
  for i = 0, rank - 1 do
    perm[#perm + 1] = i ~= axis and i or nil
  end
  perm[rank] = axis
  local parts, back, whole = {}, {}, { table.unpack(n.shape) }
  for i, from in ipairs(perm) do
    back[from + 1] = i - 1
  end
  for i = 1, 2 do
    parts[i] = x:part(rank, i - 1, 1):reshape(shape):transpose(perm)
  end
  local z = w:one("complex", parts, complex_of[n.dtype], parts[1].shape)
  z = w:one("fft", { z }, z.dtype, z.shape,
    { fft_type = sign < 0 and "FFT" or "IFFT", fft_length = { shape[axis + 1] } })
  whole[rank + 1] = 1
  for i, part in ipairs { "real", "imag" } do
    local y = w:one(part, { z }, n.dtype, z.shape)
    y = sign < 0 and y or y * shape[axis + 1] -- the inverse is divided by the size
    parts[i] = y:transpose(back):reshape(whole)
  end
  return w:one("concatenate", parts, n.dtype, n.shape, { dimension = rank })
end

return rows
