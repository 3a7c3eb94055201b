-- Draws beside the distributions of SciPy: the share of 10000 numbers up to each point, and the exact one. They are
-- apart by 0.0195 once in a thousand times (Kolmogorov and Smirnov); seeds are fixed.
local dc = require "deepc"
local random = require "deepc.random"

local function shares(x, points)
  return x:cast(points.dtype):reshape(10000, 1):le(points):cast("f64"):mean(1)
end

local function distribution(name, draw, scipy, points, dtypes)
  return {
    name, run = function(a) return shares(draw(a.points.dtype .. "[10000]"), a.points) end,
    numpy = ("%s.cdf(points)"):format(scipy), args = { { points = { ("T[%d]"):format(#points), values = points } } },
    dtypes = dtypes or { "f32" }, tol = { f32 = 0.0195, f64 = 0.0195 },
  }
end

local function gamma(a, points)
  return distribution("gamma " .. a, function(t) return random.gamma(t, { concentration = a, rate = 2, seed = 3 }) end,
    ("scipy.stats.gamma(%g, scale=0.5)"):format(a), points, a == 1 and { "f32", "f64" } or nil)
end

local function poisson(rate, points)
  return distribution("poisson " .. rate, function(t) return random.poisson(t, { rate = rate, seed = 4 }) end,
    ("scipy.stats.poisson(%g)"):format(rate), points)
end

local function binomial(n, p, points)
  return distribution(("binomial %d %g"):format(n, p), function(t)
    return random.binomial(t, { n = n, p = p, seed = 2 })
  end, ("scipy.stats.binom(%d, %.17g)"):format(n, p), points, n == 100 and { "f32", "f64" } or nil)
end

local function binomial_by_element(n, p, points)
  return distribution(("binomial %d %g, tensors"):format(n, p), function(t)
    local dtype = t:match "^%w+"
    return random.binomial(t, { n = dc.full("i32[1]", n), p = dc.full(dtype .. "[10000]", p), seed = 3 })
  end, ("scipy.stats.binom(%d, %.17g)"):format(n, p), points)
end

local function truncated(low, high, points, by_element)
  return distribution(("truncated_normal %g %g%s"):format(low, high, by_element and ", tensors" or ""), function(t)
    local from = by_element and dc.full(t:match "^%w+" .. "[1]", low) or low
    return random.truncated_normal(t, { mean = 1, std = 2, low = from, high = high, seed = 5 })
  end, ("scipy.stats.truncnorm(%s, %s, loc=1, scale=2)"):format((low - 1) / 2, high == math.huge and "np.inf" or
    (high - 1) / 2), points)
end

local function normal_like(name, options, scipy)
  return distribution(name, function(t)
    options.seed = 6
    return random[name](t, options)
  end, scipy, { -4, -2, -1, 0, 0.5, 1, 1.5, 2, 3, 5, 8 })
end

local positive = { 0.01, 0.1, 0.3, 0.5, 0.8, 1.2, 2, 3, 5 }
local fractions = { 0.001, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 0.999 }

return {
  distribution("exponential", function(t) return random.exponential(t, { rate = 2, seed = 1 }) end,
    "scipy.stats.expon(scale=0.5)", positive, { "f32", "f64" }),
  normal_like("laplace", { loc = 1, scale = 2 }, "scipy.stats.laplace(1, 2)"),
  normal_like("gumbel", { loc = 1, scale = 2 }, "scipy.stats.gumbel_r(1, 2)"),
  normal_like("cauchy", { loc = 1, scale = 2 }, "scipy.stats.cauchy(1, 2)"),
  normal_like("log_normal", { mean = 0.5, std = 0.75 }, "scipy.stats.lognorm(0.75, scale=np.exp(0.5))"),
  normal_like("student_t", { df = 3, loc = 1, scale = 2 }, "scipy.stats.t(3, 1, 2)"),
  gamma(0.2, positive), gamma(1, positive), gamma(4.5, positive), gamma(200, { 85, 90, 95, 100, 105, 110, 115 }),
  distribution("chi2", function(t) return random.chi2(t, { df = 3, seed = 2 }) end, "scipy.stats.chi2(3)", positive),
  distribution("beta", function(t) return random.beta(t, { alpha = 2, beta = 0.5, seed = 2 }) end,
    "scipy.stats.beta(2, 0.5)", fractions),
  distribution("beta of small numbers", function(t) return random.beta(t, { alpha = 0.01, beta = 0.02, seed = 2 }) end,
    "scipy.stats.beta(0.01, 0.02)", fractions),
  distribution("dirichlet, one of three", function(t)
    return random.dirichlet(t:gsub("%]", ", 3]"), { concentration = dc.tensor({ 1, 2, 0.5 }, t:match "^%w+"),
      seed = 2 })[{ {}, 2 }]
  end, "scipy.stats.beta(2, 1.5)", fractions),
  truncated(-1, 3, { -1, -0.5, 0, 1, 2, 2.5, 3 }), truncated(0.9, 1.2, { 0.9, 1, 1.1, 1.2 }),
  truncated(5, math.huge, { 5, 5.2, 6, 7, 9 }), truncated(3, 3.5, { 3, 3.1, 3.25, 3.4 }),
  truncated(-9, -5, { -8, -7, -6, -5.5, -5 }), truncated(-20, 30, { -4, -1, 0, 1, 3, 5 }),
  truncated(-1, 3, { -1, -0.5, 0, 1, 2, 2.5, 3 }, true), truncated(0.9, 1.2, { 0.9, 1, 1.1, 1.2 }, true),
  truncated(5, math.huge, { 5, 5.2, 6, 7, 9 }, true), truncated(3, 3.5, { 3, 3.1, 3.25, 3.4 }, true),
  truncated(-9, -5, { -8, -7, -6, -5.5, -5 }, true), truncated(-20, 30, { -4, -1, 0, 1, 3, 5 }, true),
  truncated(0.5, 9, { 0.5, 0.6, 1, 2, 3, 5 }, true),
  binomial(1, 0.3, { 0, 1 }), binomial(10, 0.25, { 0, 1, 2, 3, 4, 6 }), binomial(30, 0.9, { 24, 26, 27, 28, 29, 30 }),
  binomial(100, 0.5, { 40, 45, 48, 50, 52, 55, 60 }), binomial(40, 0.25, { 5, 7, 9, 10, 11, 13, 15 }),
  binomial(5000, 0.999, { 4989, 4992, 4994, 4995, 4996, 4998 }),
  binomial(1000000, 0.3, { 299000, 299500, 300000, 300500, 301000 }),
  binomial_by_element(10, 0.25, { 0, 1, 2, 3, 4, 6 }), binomial_by_element(100, 0.6, { 50, 55, 58, 60, 62, 65, 70 }),
  poisson(0.3, { 0, 1, 2, 3 }), poisson(9.5, { 3, 5, 7, 8, 9, 10, 12, 15 }), poisson(10, { 3, 5, 7, 8, 9, 10, 12, 15 }),
  poisson(80, { 60, 70, 75, 80, 85, 90, 100 }), poisson(1e4, { 9800, 9900, 9950, 10000, 10050, 10100, 10200 }),
  distribution("geometric", function(t) return random.geometric(t, { p = 0.2, seed = 1 }) end, "scipy.stats.geom(0.2)",
    { 0, 1, 2, 3, 5, 8, 12, 20 }),
  distribution("categorical", function(t)
    return random.categorical(dc.tensor({ { 1, 0, 2, -1 } }, t:match "^%w+"):expand(10000, 4), { seed = 1 })
  end, "scipy.stats.rv_discrete(values=(range(4), scipy.special.softmax([1, 0, 2, -1])))", { 0, 1, 2, 3 }),
  distribution("multinomial", function(t)
    return random.multinomial(dc.tensor({ 1, 0, 3, 4 }, t:match "^%w+"), 10000, { replacement = true, seed = 1 })
  end, "scipy.stats.rv_discrete(values=(range(4), [0.125, 0, 0.375, 0.5]))", { 0, 1, 2, 3 }),
  distribution("multinomial, the second without replacement", function(t)
    local weights = dc.tensor({ { 1, 0, 3, 4 } }, t:match "^%w+"):expand(10000, 4)
    return random.multinomial(weights, 2, { seed = 1 })[{ {}, 2 }]
    -- 0 first, then 2, is 1/8 * 3/7 ...
  end, [[scipy.stats.rv_discrete(values=(range(4), [3/8 * 1/5 + 4/8 * 1/4, 0, 1/8 * 3/7 + 4/8 * 3/4,
    1/8 * 4/7 + 3/8 * 4/5]))]], { 0, 1, 2, 3 }),
}
