-- Functions of single elements, and reductions.
local dc = require "deepc"

local inf, nan = math.huge, 0 / 0
local special = { 0 / 0, math.huge, -math.huge, -0.0, 0 }

local function method(name)
  return function(a) return a.x[name](a.x) end
end

-- A function of one tensor: drawn between two numbers, of several shapes, and special values.
local function unary(name, peer, low, high, values, options)
  local case = { name, run = method(name), peer = peer or ("torch.%s(x)"):format(name), args = {
    { x = { "T[7]", low = low, high = high } },
    { x = { "T[2, 3]", low = low, high = high } },
    { x = { "T[]", low = low, high = high } },
    { x = { ("T[%d]"):format(#(values or special)), values = values or special }, grad = false },
  } }
  for k, v in pairs(options or {}) do
    case[k] = v
  end
  return case
end

local function binary(name, peer, low, high, x, y, options)
  local case = { name, run = function(a) return a.x[name](a.x, a.y) end,
    peer = peer or ("torch.%s(x, y)"):format(name), args = {
      { x = { "T[7]", low = low, high = high }, y = { "T[7]", low = low, high = high } },
      { x = { "T[2, 3]", low = low, high = high }, y = { "T[3]", low = low, high = high } },
      { x = { "T[2, 1]", low = low, high = high }, y = { "T[3]", low = low, high = high } },
      { x = { ("T[%d]"):format(#x), values = x }, y = { ("T[%d]"):format(#y), values = y }, grad = false },
    } }
  for k, v in pairs(options or {}) do
    case[k] = v
  end
  return case
end

-- Pairs of special values.
local function crossed(values)
  local x, y = {}, {}
  for _, a in ipairs(values) do
    for _, b in ipairs(values) do
      x[#x + 1], y[#y + 1] = a, b
    end
  end
  return x, y
end
local px, py = crossed { 0, -0.0, 1, -1, inf, -inf, nan, 2.5, -2.5 }
local ones = { -1, 1, -1.5, 2, -0.0, 0, nan, inf, 0.999, -0.999 }

local function reduced(name, peer, options)
  local case = { name, run = function(a)
    local x = a.x
    return { x[name](x), x[name](x, 1), x[name](x, { axis = -1, keep = true }) }
  end, peer = peer:gsub("%s+", " "), args = { { x = "T[3, 4]" }, { x = "T[2, 5]" }, { x = "T[1, 3]" } } }
  for k, v in pairs(options or {}) do
    case[k] = v
  end
  return case
end

local holes = { { x = { "T[2, 3]", values = { { 1, nan, 3 }, { nan, 2, -5 } } } },
  { x = { "T[2, 3]", values = { { nan, nan, nan }, { 0.5, 2, -1 } } }, grad = false } }

local function of_integers(name, peer, dtypes, low, high, values)
  local args = { { x = { "T[9]", low = low, high = high } } }
  args[2] = values and { x = { ("T[%d]"):format(#values), values = values } } or nil
  return { name, run = method(name), numpy = peer, dtypes = dtypes, args = args }
end

local whole = { "i8", "i16", "i32", "i64" }
local natural = { "u8", "u16", "u32", "u64" }

return {
  unary("exp"), unary("expm1"), unary("exp2"), unary("tanh"), unary("erf"), unary("erfc"), unary("sigmoid"),
  unary("log", nil, 0.1, 4), unary("log2", nil, 0.1, 4), unary("log10", nil, 0.1, 4),
  unary("log1p", nil, -0.8, 4, { -1, -2, nan, inf, -0.0, 1e-30 }),
  unary("sqrt", nil, 0.1, 4), unary("rsqrt", nil, 0.1, 4), unary("square"), unary("reciprocal", nil, 0.3, 4),
  unary("cbrt", "torch.sign(x) * torch.abs(x) ** (1 / 3)", nil, nil, { nan, inf, -inf, -8, 27 }),
  unary("sin"), unary("cos"), unary("tan", nil, -1.4, 1.4, { nan, inf, -0.0, 1e6, 3e8, -1e15 }),
  unary("asin", nil, -0.95, 0.95, ones), unary("acos", nil, -0.95, 0.95, ones), unary("atan"),
  unary("sinh", nil, nil, nil, { nan, inf, -inf, -0.0, 89, 1e-20 }), unary("cosh"), unary("asinh"),
  unary("acosh", nil, 1.1, 5, { 1, 0.5, inf, nan, -1 }), unary("atanh", nil, -0.95, 0.95, ones),
  unary("erf_inv", "torch.special.erfinv(x)", -0.95, 0.95, ones),
  unary("lgamma", nil, 0.1, 12, { nan, inf, -inf, 0, -0.0, 1, 2, -1, -7, 0.5, 171, 30.5 }),
  { "lgamma of negative numbers", run = method "lgamma", peer = "torch.lgamma(x)",
    args = { { x = { "T[20]", low = -9.9, high = 0 } } }, tol = { f32 = 2e-5, f64 = 1e-11 } }, -- beside poles
  -- PyTorch's own derivative of digamma has 9 digits
  unary("digamma", nil, 0.1, 12, { nan, inf, 0, -0.0, 1, 1.461632144968362, -1, -7, 0.5, 30.5, -2.5 },
    { grad = false }),
  unary("sinc", nil, -4, 4, { nan, 0, -0.0, 1e-4, 1, -3, 0.25, 100.5 }),
  unary("logit", nil, 0.05, 0.95, { 0, 1, 0.5, nan, -1, 2, 1e-30 }),
  unary("deg2rad"), unary("rad2deg", nil, -3, 3), unary("frac", nil, nil, nil, { nan, 2.75, -2.75, -0.0, 1e20 }),
  unary("neg"), unary("abs"), unary("sign", nil, nil, nil, { inf, -inf, 0, 3, -2 }),
  unary("floor"), unary("ceil"), unary("trunc"),
  unary("round", nil, nil, nil, { 0.5, 1.5, 2.5, -0.5, -1.5, nan, inf }),
  unary("relu"), unary("silu", "F.silu(x)", nil, nil, { nan, inf, 0, -50 }),
  unary("softplus", "torch.logaddexp(x, torch.zeros_like(x))", nil, nil, { nan, inf, -inf, 0, -0.0, 100, -100 }),
  unary("gelu", "F.gelu(x)", nil, nil, { nan, 0, 8, -8 }),
  unary("isnan", nil, nil, nil, nil, { grad = false }), unary("isinf", nil, nil, nil, nil, { grad = false }),
  unary("isfinite", nil, nil, nil, nil, { grad = false }),
  { "gelu with tanh", run = function(a) return a.x:gelu { approximate = "tanh" } end,
    peer = "F.gelu(x, approximate='tanh')", args = { { x = "T[9]" } } },
  { "softplus bends", run = function(a) return dc.grad(a.x:softplus():sum(), a.x) end,
    peer = "torch.sigmoid(x)", args = { { x = { "T[5]", values = { 0, 1, -1, 30, -30 } } } } },
  { "slopes of digamma", run = function(a)
    local first = dc.grad(a.x:digamma():sum(), a.x)
    return { first, dc.grad(first:sum(), a.x) }
  end, numpy = "scipy.special.polygamma(1, x).astype(x.dtype), scipy.special.polygamma(2, x).astype(x.dtype)",
    args = { { x = { "T[12]", low = 0.2, high = 30 } } }, tol = { f32 = 4e-6, f64 = 1e-13 } }, -- large near 0
  { "slope of digamma of negative numbers", run = function(a) return dc.grad(a.x:digamma():sum(), a.x) end,
    peer = "torch.polygamma(1, x)", args = { { x = { "T[12]", low = -0.9, high = -0.1 } } }, grad = false,
    tol = { f32 = 1e-5, f64 = 1e-9 } }, -- the peer's own error
  { "nan_to_num", run = function(a)
    return { a.x:nan_to_num(), a.x:nan_to_num { nan = 1, posinf = 2, neginf = -3 } }
  end,
    peer = "torch.nan_to_num(x), torch.nan_to_num(x, nan=1, posinf=2, neginf=-3)",
    args = { { x = { "T[5]", values = { nan, inf, -inf, 1.5, 0 } } }, { x = "T[2, 3]" } } },
  { "clamp", run = function(a) return { a.x:clamp(-0.5, 0.5), a.x:clamp(nil, 0.3), a.x:clamp(0) } end,
    peer = "torch.clamp(x, -0.5, 0.5), torch.clamp(x, max=0.3), torch.clamp(x, min=0)", args = { { x = "T[9]" } } },

  binary("add", nil, -2, 2, px, py), binary("sub", nil, -2, 2, px, py), binary("mul", nil, -2, 2, px, py),
  binary("div", nil, 0.5, 2, px, py), binary("maximum", nil, -2, 2, px, py), binary("minimum", nil, -2, 2, px, py),
  binary("rem", "torch.fmod(x, y)", 0.5, 4, px, py),
  binary("atan2", nil, -2, 2, px, py), binary("copysign", nil, -2, 2, px, py), binary("hypot", nil, -2, 2, px, py),
  binary("logaddexp", nil, -2, 2, px, py), binary("logaddexp2", nil, -2, 2, px, py),
  binary("xlogy", nil, 0.2, 3, px, py),
  binary("heaviside", "torch.as_tensor(np.heaviside(x.numpy(), y.numpy()))",
    -2, 2, px, py, { grad = false }),
  binary("pow", nil, 0.2, 3, { 0, 2, -2, -2, inf, 0.5, nan, 1 }, { 0, -1, 3, 0.5, 2, inf, 0, nan }),
  binary("eq", nil, -2, 2, px, py, { grad = false }), binary("ne", nil, -2, 2, px, py, { grad = false }),
  binary("lt", nil, -2, 2, px, py, { grad = false }), binary("le", nil, -2, 2, px, py, { grad = false }),
  binary("gt", nil, -2, 2, px, py, { grad = false }), binary("ge", nil, -2, 2, px, py, { grad = false }),
  binary("logical_and", nil, -2, 2, px, py, { grad = false }),
  binary("logical_or", nil, -2, 2, px, py, { grad = false }),
  binary("logical_xor", nil, -2, 2, px, py, { grad = false }),
  unary("logical_not", nil, nil, nil, nil, { grad = false }),
  { "logaddexp of equal numbers", run = function(a)
    return dc.grad(dc.grad(a.x:logaddexp(a.y):sum(), a.x):sum(), a.x)
  end,
    peer = "torch.sigmoid(x - y) * torch.sigmoid(y - x)", grad = false,
    args = { { x = { "T[3]", values = { 1, 2, 3 } }, y = { "T[3]", values = { 1, 2, 2 } } } } },
  { "hypot of equal numbers", run = function(a) return dc.grad(dc.grad(a.x:hypot(a.y):sum(), a.x):sum(), a.x) end,
    peer = "y ** 2 / torch.hypot(x, y) ** 3", grad = false,
    args = { { x = { "T[3]", values = { 1, 2, -3 } }, y = { "T[3]", values = { 1, 2, 2 } } } } },
  { "hypot at the origin", run = function(a) return a.x:hypot(a.y) end, peer = "torch.abs(x + y)",
    differs = "the gradient is 0 where PyTorch has NaN",
    args = { { x = { "T[1]", values = { 0 } }, y = { "T[1]", values = { 0 } } } } },
  { "lerp", run = function(a) return a.x:lerp(a.y, a.w) end, peer = "torch.lerp(x, y, w)",
    args = { { x = "T[7]", y = "T[7]", w = { "T[7]", low = 0, high = 1 } },
      { x = "T[2, 3]", y = "T[2, 3]", w = { "T[3]", low = -1, high = 2 } } } },
  { "lerp by a number", run = function(a) return { a.x:lerp(a.y, 1), a.x:lerp(a.y, 0.25) } end,
    peer = "torch.lerp(x, y, 1.0), torch.lerp(x, y, 0.25)", args = { { x = "T[7]", y = "T[7]" } } },
  { "isclose", run = function(a) return { a.x:isclose(a.y), a.x:isclose(a.y, { rtol = 0.1, atol = 0.01 }),
    a.x:isclose(a.y, { equal_nan = true }) } end,
    peer = "torch.isclose(x, y), torch.isclose(x, y, rtol=0.1, atol=0.01), torch.isclose(x, y, equal_nan=True)",
    grad = false, args = { { x = { ("T[%d]"):format(#px), values = px }, y = { ("T[%d]"):format(#py), values = py } },
      { x = { "T[4]", values = { 1, 1, 1, 0 } }, y = { "T[4]", values = { 1.000001, 1.05, 1.2, 1e-9 } } } } },
  { "allclose", run = function(a) return { a.x:isclose(a.y):all(), a.x:isclose(a.x):all(),
    a.x:isclose(a.y, { atol = 9 }):all() } end,
    peer = "torch.tensor([torch.allclose(x, y), torch.allclose(x, x), torch.allclose(x, y, atol=9)]).unbind()",
    grad = false, args = { { x = { "T[4]", low = -1, high = 1 }, y = { "T[4]", low = -1, high = 1 } } } },
  { "where", run = function(a) return dc.where(a.m, a.x, a.y) end, peer = "torch.where(m, x, y)",
    args = { { m = "bool[7]", x = "T[7]", y = "T[7]" } } },

  of_integers("popcount", "np.bitwise_count(x.view('u%d' % x.itemsize)).astype(x.dtype)", whole, -100, 100,
    { 0, -1, 127, -128, 1, 64 }),
  { "popcount of unsigned", run = method "popcount", numpy = "np.bitwise_count(x).astype(x.dtype)", dtypes = natural,
    args = { { x = { "T[6]", values = { 0, 255, 128, 1, 7, 170 } } } } },
  { "clz", run = method "clz", numpy = "np.array([x.itemsize * 8 - int(v).bit_length() for v in x], x.dtype)",
    dtypes = natural, args = { { x = { "T[7]", values = { 0, 255, 128, 1, 7, 170, 64 } } } } },
  { "clz of signed", run = method "clz",
    numpy = "np.array([x.itemsize * 8 - (int(v) % 2 ** (x.itemsize * 8)).bit_length() for v in x], x.dtype)",
    dtypes = whole, args = { { x = { "T[6]", values = { 0, -1, -128, 127, 1, 100 } } } } },

  { "gcd, lcm", run = function(a) return { a.x:gcd(a.y), a.x:lcm(a.y), dc.gcd(12, a.x), a.x:lcm(-3) } end,
    numpy = "(np.gcd(x, y), np.lcm(x, y), np.gcd(x.dtype.type(12), x), np.lcm(x, x.dtype.type(-3)))",
    dtypes = { "i8", "i16", "i32", "i64" },
    args = { { x = { "T[3, 4]", low = -11, high = 11 }, y = { "T[4]", low = -11, high = 11 } },
      { x = { "T[5]", values = { 0, 0, 7, -8, 1 } }, y = { "T[5]", values = { 0, -9, 7, 12, 0 } } } } },
  { "gcd of unsigned", run = function(a) return { a.x:gcd(a.y), a.x:lcm(a.y) } end,
    numpy = "(np.gcd(x, y), np.lcm(x, y))", dtypes = { "u8", "u16", "u32", "u64" },
    args = { { x = { "T[5]", values = { 12, 0, 128, 105, 255 } }, y = { "T[5]", values = { 18, 0, 32, 15, 255 } } } } },

  reduced("sum", "torch.sum(x), torch.sum(x, 0), torch.sum(x, -1, keepdim=True)"),
  reduced("mean", "torch.mean(x), torch.mean(x, 0), torch.mean(x, -1, keepdim=True)"),
  reduced("prod", "torch.prod(x), torch.prod(x, 0), torch.prod(x, -1, keepdim=True)"),
  reduced("max", "torch.amax(x), torch.amax(x, 0), torch.amax(x, -1, keepdim=True)"),
  reduced("min", "torch.amin(x), torch.amin(x, 0), torch.amin(x, -1, keepdim=True)"),
  reduced("var", [[torch.var(x, correction=0), torch.var(x, 0, correction=0),
    torch.var(x, -1, correction=0, keepdim=True)]]),
  reduced("std", [[torch.std(x, correction=0), torch.std(x, 0, correction=0),
    torch.std(x, -1, correction=0, keepdim=True)]], { args = { { x = "T[3, 4]" }, { x = "T[2, 5]" } } }),
  reduced("norm", "torch.norm(x), torch.norm(x, dim=0), torch.norm(x, dim=-1, keepdim=True)"),
  reduced("logsumexp", "torch.logsumexp(x, (0, 1)), torch.logsumexp(x, 0), torch.logsumexp(x, -1, keepdim=True)"),
  reduced("nansum", "torch.nansum(x), torch.nansum(x, 0), torch.nansum(x, -1, keepdim=True)", { args = holes }),
  reduced("nanmean", "torch.nanmean(x), torch.nanmean(x, 0), torch.nanmean(x, -1, keepdim=True)", { args = holes }),
  { "extremes without NaN", run = function(a)
    local x = a.x
    return { x:nanmax(), x:nanmax(1), x:nanmin(), x:nanmin(2), x:nanprod(), x:nanprod(1) }
  end, numpy = "np.nanmax(x), np.nanmax(x, 0), np.nanmin(x), np.nanmin(x, 1), np.nanprod(x), np.nanprod(x, 0)",
    args = holes },
  { "spread without NaN", run = function(a)
    local x = a.x
    return { x:nanvar(), x:nanvar(2), x:nanstd { axis = 1 }, x:nanvar { axis = 2, correction = 1, keep = true } }
  end, numpy = "np.nanvar(x), np.nanvar(x, 1), np.nanstd(x, 0), np.nanvar(x, 1, ddof=1, keepdims=True)", args = holes },
  { "count_nonzero", run = function(a) return { a.x:count_nonzero(), a.x:count_nonzero(1), a.i:count_nonzero(2),
    a.b:count_nonzero() } end, grad = false,
    peer = "torch.count_nonzero(x), torch.count_nonzero(x, 0), torch.count_nonzero(i, 1), torch.count_nonzero(b)",
    args = { { x = { "T[2, 3]", values = { { 0, -0.0, nan }, { 1, 0, inf } } }, i = "i32[3, 4]", b = "bool[5]" } } },
  { "any and all", run = function(a) return { a.b:any(), a.b:all(), a.b:any(1), a.b:all(2) } end, grad = false,
    peer = "torch.any(b), torch.all(b), torch.any(b, 0), torch.all(b, 1)", dtypes = { "f32" },
    args = { { b = "bool[3, 4]" }, { b = { "bool[2, 2]", values = { { true, true }, { true, true } } } } } },
  { "running", run = function(a) return { a.x:cumsum(1), a.x:cumsum(2), a.x:cumprod(2), a.x:logcumsumexp(1) } end,
    peer = "torch.cumsum(x, 0), torch.cumsum(x, 1), torch.cumprod(x, 1), torch.logcumsumexp(x, 0)",
    args = { { x = "T[3, 4]" }, { x = "T[1, 9]" }, { x = "T[9, 1]" } } },
  { "running extremes", run = function(a) return { a.x:cummax(1), a.x:cummin(2) } end,
    peer = "torch.cummax(x, 0).values, torch.cummin(x, 1).values", args = { { x = "T[3, 4]" } } },
  { "softmax", run = function(a) return { a.x:softmax(1), a.x:log_softmax(2) } end,
    peer = "torch.softmax(x, 0), torch.log_softmax(x, 1)", args = { { x = "T[3, 4]" } } },
}
