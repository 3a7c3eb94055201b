-- CHLO's functions, transforms and linear algebra.

local dc = require "deepc"
local elements = require "deepc.stablehlo.elements"
local shapes = require "deepc.stablehlo.shapes"

local rows = {}

for name, method in pairs { acos = "acos", acosh = "acosh", asin = "asin", asinh = "asinh", atan = "atan",
  atanh = "atanh", cosh = "cosh", sinh = "sinh", tan = "tan", erf = "erf", erfc = "erfc", erf_inv = "erf_inv",
  lgamma = "lgamma", digamma = "digamma", square = "square", is_inf = "isinf" } do
  rows["chlo." .. name] = function(_, x)
    return x[method](x)
  end
end

-- Inverse functions of complex numbers (Kahan, "Branch cuts for complex elementary functions", 1987); those of c64 in
-- f64, rounded once.
local function signed_zero_product(a, b) -- the imaginary part of conj(a) b
  return a:real() * b:imag() - a:imag() * b:real()
end

local function asin(z)
  local less, more = (-z + 1):sqrt(), (z + 1):sqrt()
  local product = less:real() * more:real() - less:imag() * more:imag()
  return dc.complex(dc.atan2(z:real(), product), signed_zero_product(less, more):asinh())
end

local function acos(z)
  local less, more = (-z + 1):sqrt(), (z + 1):sqrt()
  return dc.complex(2 * dc.atan2(less:real(), more:real()), signed_zero_product(more, less):asinh())
end

local function acosh(z)
  local less, more = (z - 1):sqrt(), (z + 1):sqrt()
  local product = less:real() * more:real() + less:imag() * more:imag()
  return dc.complex(product:asinh(), 2 * dc.atan2(less:imag(), more:real()))
end

local function atanh(z)
  local x, y = z:real(), z:imag()
  local off = 1 - x
  local re = (4 * x / (off * off + y * y)):log1p() / 4
  return dc.complex(re, dc.atan2(2 * y, off * (1 + x) - y * y) / 2)
end

local function turned(z) -- i z
  return dc.complex(-z:imag(), z:real())
end

local function turned_back(z) -- -i z
  return dc.complex(z:imag(), -z:real())
end

local complex_inverses = { asin = asin, acos = acos, acosh = acosh, atanh = atanh,
  asinh = function(z) return turned(asin(turned_back(z))) end,
  atan = function(z) return turned_back(atanh(turned(z))) end }

for name, f in pairs(complex_inverses) do
  local real = rows["chlo." .. name]
  rows["chlo." .. name] = function(o, x)
    if x.dtype == "c64" then
      return f(x:cast "c128"):cast "c64"
    end
    return x.dtype == "c128" and f(x) or real(o, x)
  end
end

rows["chlo.conj"] = function(_, x)
  return elements.is_complex(x.dtype) and x:conj() or x
end

rows["chlo.is_pos_inf"] = function(_, x)
  return x:eq(math.huge)
end

rows["chlo.is_neg_inf"] = function(_, x)
  return x:eq(-math.huge)
end

rows["chlo.top_k"] = function(o, x)
  local values, index = x:top_k(o.attributes.k)
  return values, index
end

-- ---- the next float --------------------------------------------------------------------------------

-- From 0 the least float of the sign of y; else the pattern one up or down, which is the order of floats of one sign.
rows["chlo.next_after"] = function(_, x, y)
  local dtype = shapes.has_pattern[x.dtype]
  local a = x:bitcast(dtype)
  local least = dtype == "i64" and math.mininteger or -(1 << (tonumber(dtype:sub(2)) - 1))
  local sign_of_y = y:bitcast(dtype) & least
  local away = x:abs():lt(y:abs()) & (x:lt(0) | x:gt(0)) & x:lt(0):eq(y:lt(0))
  local next = dc.where(x:eq(0), sign_of_y | 1, dc.where(away, a + 1, a - 1)):bitcast(x.dtype)
  return dc.where(x:isnan() | y:isnan(), x + y, dc.where(x:eq(y), y, next))
end

-- The upper half of a product of integers.
local wider = { i8 = "i64", i16 = "i64", i32 = "i64", u8 = "u64", u16 = "u64", u32 = "u64" }

rows["chlo.mulhi"] = function(o, x, y)
  local wide = wider[x.dtype]
  if not wide then
    o:fail("the upper half of a product of %s is not supported", x.dtype)
  end
  local bits = tonumber(x.dtype:sub(2))
  return (x:cast(wide) * y:cast(wide)):shift_right(dc.full(wide .. "[]", bits)):cast(x.dtype)
end

-- ---- Bessel ----------------------------------------------------------------------------------------

-- exp(-|x|) I1(x), by the Chebyshev series of Cephes (Moshier 1989): of |x| up to 8, and beyond.
local near = { 2.77791411276104639959E-18, -2.11142121435816608115E-17, 1.55363195773620046921E-16,
  -1.10559694773538630805E-15, 7.60068429473540693410E-15, -5.04218550472791168711E-14, 3.22379336594557470981E-13,
  -1.98397439776494371520E-12, 1.17361862988909016308E-11, -6.66348972350202774223E-11, 3.62559028155211703701E-10,
  -1.88724975172282928790E-9, 9.38153738649577178388E-9, -4.44505912879632808065E-8, 2.00329475355213526229E-7,
  -8.56872026469545474066E-7, 3.47025130813767847674E-6, -1.32731636560394358279E-5, 4.78156510755005422638E-5,
  -1.61760815825896745588E-4, 5.12285956168575772895E-4, -1.51357245063125314899E-3, 4.15642294431288815669E-3,
  -1.05640848946261981558E-2, 2.47264490306265168283E-2, -5.29459812080949914269E-2, 1.02643658689847095384E-1,
  -1.76416518357834055153E-1, 2.52587186443633654823E-1 }
local far = { 7.51729631084210481353E-18, 4.41434832307170791151E-18, -4.65030536848935832153E-17,
  -3.20952592199342395980E-17, 2.96262899764595013876E-16, 3.30820231092092828324E-16, -1.88035477551078244854E-15,
  -3.81440307243700780478E-15, 1.04202769841288027642E-14, 4.27244001671195135429E-14, -2.10154184277266431302E-14,
  -4.08355111109219731823E-13, -7.19855177624590851209E-13, 2.03562854414708950722E-12, 1.41258074366137813316E-11,
  3.25260358301548823856E-11, -1.89749581235054123450E-11, -5.58974346219658380687E-10, -3.83538038596423702205E-9,
  -2.63146884688951950684E-8, -2.51223623787020892529E-7, -3.88256480887769039346E-6, -1.10588938762623716291E-4,
  -9.76109749136146840777E-3, 7.78576235018280120474E-1 }

local function chebyshev(x, c)
  local a, b, behind = c[1], 0, nil
  for i = 2, #c do
    behind, b = b, a
    a = x * b - behind + c[i]
  end
  return (a - behind) * 0.5
end

rows["chlo.bessel_i1e"] = function(_, x)
  local size = x.dtype == "f64" and x:abs() or x:cast("f32"):abs()
  local small = size:le(8)
  local inner = dc.where(small, size, 8)
  local outer = dc.where(small, 8, size)
  local y = dc.where(small, chebyshev(inner / 2 - 2, near) * inner, chebyshev(32 / outer - 2, far) / outer:sqrt())
  y = y:cast(x.dtype)
  return dc.where(x:lt(0), -y, y)
end

-- ---- floats with fewer bits -----------------------------------------------------------------------

local layout = { f64 = { "i64", 52, 11 }, f32 = { "i32", 23, 8 } }

local function number_in(dtype, v)
  return dc.full(dtype .. "[]", v)
end

-- The pattern rounded to the mantissa, half to even; then what is beyond the exponents is infinite, or zero.
rows["stablehlo.reduce_precision"] = function(o, x)
  local exponent, mantissa = o.attributes.exponent_bits, o.attributes.mantissa_bits
  local wide = layout[x.dtype] and x or x:cast "f32"
  local dtype, bits, whole = table.unpack(layout[wide.dtype])
  local pattern, cut = wide:bitcast(dtype), bits - mantissa
  local y = wide
  if cut > 0 then
    local last = pattern:shift_right(number_in(dtype, cut)) & 1
    local rounded = pattern + (last + ((1 << (cut - 1)) - 1))
    y = (rounded & ~((1 << cut) - 1)):bitcast(wide.dtype)
  end
  if exponent < whole then
    local top = (1 << (exponent - 1)) - 1
    local largest = (2 - 2.0 ^ -math.min(mantissa, bits)) * 2.0 ^ top
    y = dc.where(y:abs():gt(largest), dc.full(y.dtype .. "[]", math.huge):copysign(y), y)
    y = dc.where(y:abs():lt(2.0 ^ (1 - top)), dc.full(y.dtype .. "[]", 0):copysign(y), y)
  end
  y = dc.where(wide:isfinite(), y, wide)
  return y.dtype == x.dtype and y or y:cast(x.dtype)
end

-- ---- transforms ------------------------------------------------------------------------------------

rows["stablehlo.fft"] = function(o, x)
  local fft = require "deepc.fft"
  local kind, length = o.attributes.fft_type, o.attributes.fft_length
  local n, rank = #length, #x.shape
  if elements.count(o.types[1].shape) == 0 then
    return dc.zeros(o:type_text())
  end
  local first = rank - n + 1
  local ends = kind == "RFFT" and fft.rfft or kind == "IRFFT" and fft.irfft
  local plain = (kind == "IFFT" or kind == "IRFFT") and fft.ifft or fft.fft
  if kind == "RFFT" then
    x = ends(x, { axis = rank, n = length[n] })
  end
  for axis = first, ends and rank - 1 or rank do
    x = plain(x, { axis = axis })
  end
  if kind == "IRFFT" then
    x = ends(x, { axis = rank, n = length[n] })
  end
  return x
end

-- ---- linear algebra --------------------------------------------------------------------------------

rows["stablehlo.cholesky"] = function(o, x)
  local linalg = require "deepc.linalg"
  local lower = o.attributes.lower
  local l = linalg.cholesky(lower and x or x:transpose(), { check = false })
  return lower and l or l:transpose()
end

-- A complex system as a real one of twice the size: of the triangle, whose other half may hold anything.
local function solve_complex(linalg, a, b, at)
  local half = at.lower and a:real():tril() or a:real():triu()
  local imaginary = at.lower and a:imag():tril() or a:imag():triu()
  local n, rank = a.shape[#a.shape], #a.shape
  if at.unit_diagonal then
    local others = dc.eye(("%s[%d, %d]"):format(half.dtype, n, n))
    half, imaginary = half * (1 - others) + others, imaginary * (1 - others)
  end
  if at.transpose_a == "ADJOINT" then
    imaginary = -imaginary
  end
  if at.transpose_a == "ADJOINT" or at.transpose_a == "TRANSPOSE" then
    half, imaginary = half:transpose(), imaginary:transpose()
  end
  if not at.left_side then
    half, imaginary, b = half:transpose(), imaginary:transpose(), b:transpose()
  end
  local whole = dc.concat({ dc.concat({ half, -imaginary }, rank), dc.concat({ imaginary, half }, rank) }, rank - 1)
  local x = linalg.solve(whole, dc.concat({ b:real(), b:imag() }, rank - 1), { check = false })
  local re, im = x:slice { [rank - 1] = { 1, n } }, x:slice { [rank - 1] = { n + 1, 2 * n } }
  local z = dc.complex(re, im)
  return at.left_side and z or z:transpose()
end

rows["stablehlo.triangular_solve"] = function(o, a, b)
  local linalg = require "deepc.linalg"
  local at = o.attributes
  if elements.is_complex(a.dtype) then
    return solve_complex(linalg, a, b, at)
  end
  local options = { upper = not at.lower, transposed = at.transpose_a ~= nil and at.transpose_a ~= "NO_TRANSPOSE",
    unit = at.unit_diagonal or false, left = at.left_side or false, check = false }
  return linalg.triangular_solve(a, b, options)
end

-- ---- batch normalisation ---------------------------------------------------------------------------

local function along(x, v, feature)
  return shapes.spread(v, { feature }, x.shape)
end

local function moments(x, feature)
  local axes = {}
  for i = 1, #x.shape do
    axes[#axes + 1] = i ~= feature + 1 and i or nil
  end
  local mean = x:mean(axes)
  local off = x - along(x, mean, feature)
  return mean, (off * off):mean(axes), axes
end

rows["stablehlo.batch_norm_inference"] = function(o, x, scale, offset, mean, variance)
  local a = o.attributes
  local f = a.feature_index
  local by = scale / (variance + a.epsilon):sqrt()
  return (x - along(x, mean, f)) * along(x, by, f) + along(x, offset, f)
end

rows["stablehlo.batch_norm_training"] = function(o, x, scale, offset)
  local mean, variance = moments(x, o.attributes.feature_index)
  return rows["stablehlo.batch_norm_inference"](o, x, scale, offset, mean, variance), mean, variance
end

rows["stablehlo.batch_norm_grad"] = function(o, x, scale, mean, variance, g)
  local f = o.attributes.feature_index
  local _, _, axes = moments(x, f)
  local inverse = 1 / (variance + o.attributes.epsilon):sqrt()
  local off = x - along(x, mean, f)
  local n = elements.count(x.shape) / x.shape[f + 1]
  local sum, dot = g:sum(axes), (g * off):sum(axes)
  local back = g * n - along(x, sum, f) - off * along(x, dot * inverse * inverse, f)
  back = back * along(x, scale * inverse, f) / n
  return back, dot * inverse, sum
end

return rows
