-- Functions of deepc that StableHLO has no operation for, as formulas of its operations; of floats shorter than f32
-- they are computed in f32 and rounded once. Polynomials have their highest coefficients first.

local build = require "deepc.stablehlo.build"

local rows = {}

local function polynomial(x, coefficients)
  local y = x * coefficients[1] + coefficients[2]
  for i = 3, #coefficients do
    y = y * x + coefficients[i]
  end
  return y
end

local log_2 <const>, pi <const> = math.log(2), math.pi

-- f(x) of floats of at least 32 bits, as a function of the program.
local function formula(name, f)
  rows[name] = function(w, n, x)
    local inside = build.width(n.dtype) < 32 and "f32" or n.dtype
    return w:call(name, x, function(v)
      return f(v:convert(inside)):convert(n.dtype)
    end)
  end
end

-- With the sign of x, which is negative, or not, where |x| was looked at.
local function with_sign_of(x, size)
  return x:lt(0):select(-size, size)
end

-- ---- exponentials and logarithms -----------------------------------------------------------------

formula("exp2", function(x)
  return x.w:const(x.dtype, x.shape, 2):power(x)
end)

formula("log2", function(x)
  return x:log() * (1 / log_2)
end)

formula("log10", function(x)
  return x:log() * (1 / math.log(10))
end)

-- What is multiplied by a number that comes to 0: not -inf.
local function finite(x)
  return x:max(-10000)
end

formula("silu", function(x)
  return finite(x) * x:logistic()
end)

-- ---- arcs and hyperbolic functions ---------------------------------------------------------------

formula("tan", function(x)
  return x:sin() / x:cos()
end)

formula("asin", function(x)
  return x:atan2(((1 - x) * (1 + x)):sqrt() + 1) * 2
end)

formula("acos", function(x)
  return (1 - x):sqrt():atan2((1 + x):sqrt()) * 2
end)

formula("atan", function(x)
  return x:atan2(1)
end)

-- From 1 on by half the exponent: exp(|x|) may be infinite where its half is not.
formula("sinh", function(x)
  local half, e = (x:abs() * 0.5):exp(), x:expm1()
  local large = half * 0.5 * half - 0.5 / half / half
  return x:abs():lt(1):select((e + e / (e + 1)) * 0.5, with_sign_of(x, large))
end)

formula("cosh", function(x)
  local half = (x:abs() * 0.5):exp()
  return half * 0.5 * half + 0.5 / half / half
end)

local large <const> = 2.0 ^ 60 -- from where on sqrt(x^2 + 1) is x

formula("asinh", function(x)
  local size = x:abs()
  local near = size:min(large)
  near = (near + near * near / ((near * near + 1):sqrt() + 1)):log1p()
  local y = size:gt(large):select(size:log() + log_2, near)
  return x:eq(0):select(x, with_sign_of(x, y))
end)

formula("acosh", function(x)
  local rest = x:min(large) - 1
  return x:gt(large):select(x:log() + log_2, (rest + rest:sqrt() * (rest + 2):sqrt()):log1p())
end)

formula("atanh", function(x)
  return (x:log1p() - (-x):log1p()) * 0.5
end)

-- ---- the error function --------------------------------------------------------------------------

-- Of f32: erf(-t) = expm1(t + t P(t)) for t from -4 to 0; the polynomials are those of jit/flat/expand_erf.c.
local erf_f32 = { -9.25626671723e-6, -0.000117641350259, -0.000632837285925, -0.00166702841327, -0.000160397125815,
  0.0191530632771, 0.102777830324, -0.636619381987, 0.128379171611 }

-- Of f64: x + x P(x^2) below 1, then 1 - exp(-Q).
local erf_f64 = { 2.8067128195611262471e-13, -6.1967364287876999834e-12, 9.3237235181530266337e-11,
  -1.2277734486795523848e-9, 1.4806027146128751663e-8, -1.6365768648832072118e-7, 1.6462110782018636387e-6,
  -0.000014925650236967501742, 0.00012055332978879483867, -0.00085483270234030006089, 0.0052239776254416740139,
  -0.026866170645131218518, 0.11283791670955125626, -0.37612638903183752462, 0.1283791670955125739 }
local erf_middle = { -1.25770728474477617e-9, -9.290400609911463649e-10, 2.713135870023150128e-8,
  -1.513955727443893582e-7, 5.827230585633948888e-7, -1.500721297760181768e-6, 4.966577961359654014e-7,
  0.00002396395972375218735, -0.0001954904432101820639, 0.001102840923188588626, -0.005270029325472056553,
  0.02300896732567727865, 0.901785029657921282, 3.733125959072618186, 3.837088703777942675 }
local erf_large = { 9.242656579931413002e-14, -4.707764680799048002e-13, 5.635897302571697655e-13,
  2.624110092627132345e-12, -4.691347500081684944e-11, 5.343008573016182298e-10, -4.745053349602410923e-9,
  3.704032557280597033e-8, -2.686889556175413127e-7, 1.855652094132194822e-6, -0.00001239124373834055975,
  0.00008109266799469994111, -0.0005284298716106280451, 0.003515757109358091087, 0.9748141681567095509,
  8.479911403956949282, 19.03254276446739192 }

formula("erf", function(x)
  if x.dtype == "f32" then
    local t = (-x:abs()):max(-4)
    return -with_sign_of(x, (t + t * polynomial(t, erf_f32)):expm1())
  end
  local size = x:abs():min(6)
  local q = size:lt(2.25):select(polynomial(size - 1.625, erf_middle), polynomial(size - 4.125, erf_large))
  local near = x + x * polynomial(x * x, erf_f64)
  return x:abs():lt(1):select(near, with_sign_of(x, 1 - (-q):exp()))
end)

-- (1 + 2 a) exp(a^2) erfc(a) is a polynomial in (a - m) / (a + m) (M. Shepherd, J. Laframboise, 1981).
local scaled_f32 = { 0.000888155853221, 0.00123615115095, -0.00845932451904, 0.0259586567179, -0.056402496819,
  0.0915413683358, -0.110546701259, 0.0859948707487, 0.000285597344528, -0.140273231263, 1.23869132709 }
local scaled_f64 = { -1.0633087846768292526e-8, -1.2343205537795277776e-8, 1.0610226619873635844e-7,
  6.7342310199236502554e-8, -8.230444021617981686e-7, 2.9919858568607331032e-7, 5.7089520797291767612e-6,
  -0.000011224507914751285551, -0.000024399103618533449802, 0.00015062241074223898402, -0.00019925668448291109137,
  -0.00075777342910003743492, 0.0050319699712873074492, -0.016197734041020008178, 0.037167515538570171762,
  -0.066330365813385583159, 0.093732834998269492493, -0.10103906603626274954, 0.068097054254695173382,
  0.015379652102619167145, -0.1396211168405625355, 1.232995118625552511 }

-- Near 0 it is 1 - x - x P(x^2).
local small_f32 = { -0.000734893058309, 0.00517670764274, -0.0268574592672, 0.112837186601, -0.376126366576,
  0.128379166983 }
local small_f64 = { -1.4620913409445107079e-7, 1.6371234425769211828e-6, -0.000014923003368152059328,
  0.00012055286202005712175, -0.00085483265107247963809, 0.0052239776220169363621, -0.026866170644999719804,
  0.11283791670954869097, -0.3761263890318375052, 0.1283791670955125739 }

-- exp(-a^2), of a square that is exact and the rest.
local function bell(a)
  local f64 = a.dtype == "f64"
  local high = (a:bitcast(f64 and "i64" or "i32") & (f64 and ~0x7FFFFFF or ~0xFFF)):bitcast(a.dtype)
  return (-(high * high)):exp() * (-((a - high) * (a + high))):exp()
end

local function erfc(x)
  local f64 = x.dtype == "f64"
  local a, middle = x:abs():min(f64 and 27.3 or 10.1), f64 and 4 or 3.6875
  local y = polynomial((a - middle) / (a + middle), f64 and scaled_f64 or scaled_f32) / (a * 2 + 1) * bell(a)
  local near = 1 - x - x * polynomial(x * x, f64 and small_f64 or small_f32)
  return a:lt(f64 and 0.5 or 0.6):select(near, x:lt(0):select(2 - y, y))
end

formula("erfc", erfc)

formula("gelu", function(x)
  return finite(x) * 0.5 * erfc(x * -math.sqrt(0.5))
end)

formula("gelu_tanh", function(x)
  local first = math.sqrt(8 / pi)
  return finite(x) * (x * (x * x * (first * 0.044715) + first)):logistic()
end)

-- x P(w) with w = -log(1 - x^2), of sqrt(w) where it is large (M. Giles, 2010).
local inverse_f32 = { { 4.67193250904e-10, -8.69566757897e-9, 1.52564423677e-8, 4.66576712771e-7, -3.39315147738e-6,
  -5.14941101446e-6, 0.000218023253398, -0.00124465341843, -0.00421207390452, 0.246562457788, 1.50369715732 },
  { 0.000111870195041, -0.00030615421535, -5.0545257456e-5, 0.00148036852364, -0.00360103246005, 0.00568899551013,
    -0.00763643708997, 0.00944501601838, 1.00167490821, 2.8329768066 }, near = 2.50927734375, far = 3, limit = 5 }
local inverse_f64 = { { -3.5932028927020695337e-22, 3.1940155481362710878e-21, 1.9992599888615348824e-20,
  -3.4734793888538034974e-19, 6.0750507020724138813e-19, 1.5510787009902524519e-17, -1.2215637192404172343e-16,
  -3.9401881223043201388e-17, 6.5213335115022384649e-15, -4.0020031087558495143e-14, -8.0719259389900406758e-14,
  2.6305268312595183062e-12, -1.29788053699325656e-11, -5.4143032839195044138e-11, 1.0512233770504290202e-9,
  -4.1126604371632181964e-9, -2.9070391275641319497e-8, 4.2347881682224595795e-7, -1.3654691758785657116e-6,
  -0.000013882523393957482189, 0.00018673420801981186737, -0.00074070253415464312196, -0.0060336708714268510801,
  0.24015818242558834244, 1.653654562683102712 },
  { 7.6802004790770527426e-9, -1.5305397964152548213e-8, -2.0914533347731259665e-8, 1.3158663683192965965e-7,
    -2.4549818963339822496e-7, -2.7617162238162412496e-8, 1.4815977874022538655e-6, -3.9857059456481733275e-6,
    2.9325784553853499679e-6, 0.000012465028224217455259, -0.000047320680665446968429, 0.000068287117392519557239,
    0.000024031512865758356261, -0.00035503781378524517743, 0.00095328934157941372065, -0.0016882755354488555375,
    0.0024914420979569603915, -0.0037512085082247340335, 0.0053709145535550330329, 1.005258967694165383,
    3.0838856104922206763 },
  { -1.5439278197208337765e-11, 4.2802433037309419462e-11, 4.697730344596280542e-11, -4.3738896637340692863e-10,
    1.358936534157709283e-9, -3.4714379338967189619e-9, 7.7774285398266345844e-9, -1.5255160181292629919e-8,
    2.9044909320789474099e-8, -6.7556030353736606166e-8, 2.2904362741369038603e-7, -9.9302947749828854404e-7,
    4.5260543285596711929e-6, -0.000019681770676949252684, 0.00007599527792024939873, -0.00021503011983024693834,
    -0.0001387193183735169747, 1.0103004648645454135, 4.849906401408584301 }, near = 3.125, far = 3.25, limit = 6.25 }

formula("erf_inv", function(x)
  local t = x.dtype == "f64" and inverse_f64 or inverse_f32
  local size = x:abs()
  local w = -((1 - size) * (1 + size)):log()
  local root = w:sqrt()
  local far = polynomial(root - t.far, t[2])
  if t[3] then
    far = root:lt(4):select(far, polynomial(root - 5, t[3]))
  end
  local y = x * w:lt(t.limit):select(polynomial(w - t.near, t[1]), far)
  return size:eq(1):select(x * math.huge, y) -- of 1 and -1
end)

-- ---- the gamma function --------------------------------------------------------------------------

local STEPS <const> = 8

-- t and the factors, or terms, that bring it to at least STEPS: log of their product, or the sum of their reciprocals.
local function shifted(t, join, start)
  local rest = start
  for _ = 1, STEPS do
    local small = t:lt(STEPS)
    rest = small:select(join(rest, t), rest)
    t = small:select(t + 1, t)
  end
  return t, rest
end

-- log(gamma(1 + d)) is d (d - 1) P(d - 535/1024) for d from -1/2 to 3/2 (jit/flat/expand_gamma.c): near its zeros, at 1
-- and 2, the distances to these are exact.
local lgamma_f32 = { 0.00033003423013, -0.00039925718157, -0.000742716282407, 0.000706576839304, 0.00126167087229,
  -0.00130516181187, -8.60762230928e-5, -0.000463410080382, 0.0019669596917, -0.00306652856439, 0.00491327265298,
  -0.00869405904606, 0.0157839473103, -0.0298479978634, 0.0608513423486, -0.143180383815, 0.479881943482 }

-- log(gamma(t)) of t >= 1/2 by Stirling's series, of f32 near the zeros by a polynomial.
local function lgamma_of_positive(t)
  local x, product = t
  local one = t.w:const(t.dtype, t.shape, 1)
  t, product = shifted(t, function(p, v) return p * v end, one)
  local inverse = 1 / t
  local series = polynomial(inverse * inverse, { -3617 / 122400, 1 / 156, -691 / 360360, 1 / 1188, -1 / 1680,
    1 / 1260, -1 / 360, 1 / 12 })
  local y = (t - 0.5) * t:log() - t + 0.5 * math.log(2 * pi) + inverse * series - product:log()
  if x.dtype == "f64" then
    return y
  end
  local d = x - 1
  return x:lt(2.5):select(d * (x - 2) * polynomial(d - 535 / 1024, lgamma_f32), y)
end

local function fraction(x)
  return x - x:round()
end

formula("lgamma", function(x)
  local reflects = x:lt(0.5)
  local y = lgamma_of_positive(reflects:select(1 - x, x))
  local left = fraction(x)
  local z = reflects:select(math.log(pi) - (left * pi):sin():abs():log() - y, y)
  local pole = reflects & left:eq(0) | x:abs():eq(math.huge)
  return pole:select(math.huge, z)
end)

formula("digamma", function(x)
  local reflects = x:le(0)
  local zero = x.w:const(x.dtype, x.shape, 0)
  local t, sum = shifted(reflects:select(1 - x, x), function(s, v) return s + 1 / v end, zero)
  local square = 1 / (t * t)
  local series = polynomial(square, { 1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12 })
  local y = t:log() - 0.5 / t - series * square - sum
  local turn = fraction(x) * pi
  local z = reflects:select(y - turn:cos() / turn:sin() * pi, y)
  local pole = x:eq(x:round()) & x:lt(0)
  return pole:select(0 / 0, x:eq(0):select(-1 / x, z))
end)

return rows
