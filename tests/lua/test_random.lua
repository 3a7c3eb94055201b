-- deepc.random: seeds, typed functions, loops, parameters that are tensors, gradients, edges, errors. That draws have
-- their distributions is compared with SciPy: tests/peers/cases/random.lua.
local lu = require "luaunit"
local dc = require "deepc"
local random = require "deepc.random"
local raises = require "tests.lua.check".raises

local of_type = {
  exponential = { rate = 2 }, laplace = {}, gumbel = {}, cauchy = {}, log_normal = {}, chi2 = { df = 3 },
  gamma = { concentration = 0.7 }, beta = { alpha = 2, beta = 3 }, student_t = { df = 3 }, dirichlet = {},
  truncated_normal = { low = 0.5 }, geometric = { p = 0.3 }, poisson = { rate = 3 },
  binomial = { n = 20, p = 0.4 },
}

local function with_seed(options, seed)
  local copy = { seed = seed }
  for k, v in pairs(options) do
    copy[k] = v
  end
  return copy
end

TestRandom = {}

function TestRandom:test_seeds()
  for name, options in pairs(of_type) do
    local a = random[name]("f32[50]", with_seed(options, 1)):totable()
    lu.assertEquals(random[name]("f32[50]", with_seed(options, 1)):totable(), a, name)
    lu.assertNotEquals(random[name]("f32[50]", options):totable(), a, name)
  end
end

-- Without log and exp the same bits interpreted, compiled, small and large.
function TestRandom:test_exponentials_are_the_same_everywhere()
  for _, t in ipairs { "f32", "f64", "f16", "bf16" } do
    local large = random.exponential(t .. "[2000]", { seed = 3 }):totable()
    lu.assertEquals(random.exponential(t .. "[8]", { seed = 3 }):totable(), table.move(large, 1, 8, 1, {}))
    local function draw() return random.exponential(t .. "[2000]", { seed = 3 }) end
    lu.assertEquals(dc.fn(("f() -> %s[2000]"):format(t), draw)():totable(), large)
    for _, v in ipairs(large) do
      lu.assertTrue(v > 0 or t == "f16" and v == 0)
    end
  end
  lu.assertEquals(("%.9g"):format(random.exponential("f32[1]", { seed = 1 }):item()), "0.328887314")
end

function TestRandom:test_typed_functions()
  for _, name in ipairs { "gamma", "dirichlet", "poisson", "binomial" } do
    local options = of_type[name]
    local f = dc.fn("f() -> f32[40], f32[40]", function()
      return random[name]("f32[40]", with_seed(options, 7)), random[name]("f32[40]", options)
    end)
    local seeded, first = f()
    local want = random[name]("f32[40]", with_seed(options, 7))
    lu.assertTrue(((seeded - want):abs() / (want:abs() + 1)):max():item() < 1e-5, name)
    lu.assertNotEquals(select(2, f()):totable(), first:totable(), name)
  end
end

function TestRandom:test_loops_and_maps_draw_anew()
  local f = dc.fn("f(n: i32[3]) -> f32[3], f32[3]", function(n)
    return dc.map(function() return random.gamma("f32[]", { concentration = 2 }) end, n),
      dc.vmap(function() return random.poisson("f32[]", { rate = 1e7 }) end)(n)
  end)
  for _, list in ipairs { f(dc.iota(3)) } do
    local v = list:totable()
    lu.assertTrue(v[1] ~= v[2] and v[2] ~= v[3])
  end
end

function TestRandom:test_dtypes_and_shapes()
  for name, options in pairs(of_type) do
    local counts = name == "geometric" or name == "poisson" or name == "binomial"
    for _, t in ipairs(counts and { "i32", "u8" } or { "bf16" }) do
      lu.assertEquals(random[name](t .. "[2, 3]", options).dtype, t)
    end
    lu.assertEquals(random[name](dc.zeros "f32[0, 2]", options).shape, { 0, 2 })
    if name ~= "dirichlet" then
      lu.assertEquals(random[name]("f32[]", options).shape, {})
    end
  end
  lu.assertEquals(tostring(random.gamma("f32[n=2]", { concentration = 1 })):match "[^\n]*$", "f32[n=2]")
  local f = dc.fn("f(x: f32[n <= 9]) -> f32[n]", function(x) return random.gamma(x, { concentration = 3 }) end)
  lu.assertEquals(#f { 1, 2, 3 }, 3)
end

function TestRandom:test_parameters_by_element()
  local a = dc.tensor { 0.5, 100 }
  local x = random.gamma("f32[2000, 2]", { concentration = a, rate = dc.tensor { 1, 10 }, seed = 1 }):mean(1)
  lu.assertAlmostEquals(x[1]:item(), 0.5, 0.06)
  lu.assertAlmostEquals(x[2]:item(), 10, 0.1)
  local n = random.poisson("i32[2000, 3]", { rate = dc.tensor { 0, 3, 500 }, seed = 1 }):cast("f32"):mean(1)
  lu.assertEquals(n[1]:item(), 0)
  lu.assertAlmostEquals(n[2]:item(), 3, 0.15)
  lu.assertAlmostEquals(n[3]:item(), 500, 2)
  n = random.binomial("i32[2000, 5]", { n = dc.tensor({ 0, 9, 9, 4, 500 }, "i32"),
    p = dc.tensor { 0.5, 1, 0, 0.5, 0.9 }, seed = 1 })
  lu.assertEquals({ n:max(1)[{ { 1, 3 } }]:totable(), n:min(1)[{ { 1, 3 } }]:totable() }, { { 0, 9, 0 }, { 0, 9, 0 } })
  lu.assertEquals({ n:max(1)[4]:item(), n:min(1)[4]:item() }, { 4, 0 })
  lu.assertAlmostEquals(n:cast("f32"):mean(1)[5]:item(), 450, 0.6)
  local low = dc.tensor { -math.huge, 0, 30, -1, 1 }
  local z = random.truncated_normal("f32[2000, 5]", { low = low, high = dc.tensor { -40, 0.5, math.huge, 1, 0 },
    seed = 1 })
  lu.assertTrue(z[{ {}, 1 }]:le(-40):all():item() and z[{ {}, 1 }]:gt(-41):all():item())
  lu.assertTrue(z[{ {}, { 2, 4 } }]:ge(low[{ { 2, 4 } }]):all():item())
  lu.assertAlmostEquals(z[{ {}, 4 }]:square():mean():item(), 0.2911, 0.02)
  lu.assertTrue(z[{ {}, 5 }]:isnan():all():item())
  local never = random.geometric("f32[3]", { p = dc.tensor { 1, 1, 1 } })
  lu.assertEquals(never:totable(), { 1, 1, 1 })
end

-- Of loc, scale and rate they are those of the formula; of the rate of counts there are none.
function TestRandom:test_gradients()
  local loc, scale = dc.tensor(1.5), dc.tensor(2)
  for _, name in ipairs { "laplace", "gumbel", "cauchy", "student_t" } do
    local x = random[name]("f32[20]", { loc = loc, scale = scale, df = name == "student_t" and 3 or nil, seed = 1 })
    local dloc, dscale = table.unpack(dc.grad(x:sum(), { loc, scale }))
    lu.assertEquals(dloc:item(), 20)
    lu.assertAlmostEquals(dscale:item(), ((x - 1.5) / 2):sum():item(), 1e-3)
  end
  local rate, a = dc.tensor(2), dc.tensor(3)
  local y = random.gamma("f32[20]", { concentration = a, rate = rate, seed = 1 })
  lu.assertAlmostEquals(dc.grad(y:sum(), rate):item(), -y:sum():item() / 2, 1e-4)
  lu.assertEquals(dc.grad(random.poisson("f32[2]", { rate = a }):sum(), a):item(), 0)
end

-- The distribution function of gamma numbers by its series, beside its value at a.
local function share_of_gamma(a, x)
  local term, sum = 1, 1
  for n = 1, 4000 do
    term = term * x / (a + n)
    sum = sum + term
  end
  return math.exp(a * math.log(x) - x - dc.tensor(a + 1, "f64"):lgamma():item()) * sum
end

-- -dF/da / dF/dx, with dF/da by differences.
local function slope_of_gamma(a, x)
  local h = 1e-5 * a
  local density = math.exp((a - 1) * math.log(x) - x - dc.tensor(a, "f64"):lgamma():item())
  return (share_of_gamma(a - h, x) - share_of_gamma(a + h, x)) / (2 * h * density)
end

function TestRandom:test_second_gradients_of_concentrations()
  local f = dc.fn("f(a: f64[3])", function(a)
    local g = dc.grad(random.gamma("f64[3]", { concentration = a, seed = 1 }):sum(), a)
    return g, dc.grad(g:sum(), a)
  end)
  local first, second = f(dc.tensor({ 1, 2, 3 }, "f64"))
  lu.assertTrue(first:isfinite():all():item())
  lu.assertTrue(second:isnan():all():item())
end

function TestRandom:test_gradients_of_concentrations()
  local list = { 0.05, 0.4, 1, 3, 7.9, 8.1, 60, 900 }
  local a = dc.tensor(list, "f64"):expand(40, 8):clone():watch()
  local x = random.gamma("f64[40, 8]", { concentration = a, seed = 1 })
  local slopes, values = dc.grad(x:sum(), a):totable(), x:totable()
  for i = 1, 40 do
    for k, concentration in ipairs(list) do
      if values[i][k] > 1e-12 then
        local want = slope_of_gamma(concentration, values[i][k])
        lu.assertAlmostEquals(slopes[i][k] / want, 1, 5e-3, ("%g of %g"):format(values[i][k], concentration))
      end
    end
  end
end

-- Means of gradients are those of means: of beta alpha / (alpha + beta), of a square of gamma a (a + 1) ...
function TestRandom:test_gradients_of_means()
  local function mean_slope(at, draw)
    local p = dc.tensor(at):watch()
    return dc.grad(draw(p):mean(), p):item()
  end
  local t = "f32[20000]"
  for _, row in ipairs {
    { 2, 5, 0.3, function(p) return random.gamma(t, { concentration = p, seed = 1 }):square() end },
    { 2, 3 / 25, 0.005, function(p) return random.beta(t, { alpha = p, beta = 3, seed = 1 }) end },
    { 3, -2 / 25, 0.005, function(p) return random.beta(t, { alpha = 2, beta = p, seed = 1 }) end },
    { 0.02, 0.02 / 0.04 ^ 2, 1, function(p) return random.beta(t, { alpha = p, beta = 0.02, seed = 3 }) end },
    { 5, 1, 0.02, function(p) return random.chi2(t, { df = p, seed = 1 }) end },
    { 9, -2 / 49, 0.02, function(p) return random.student_t(t, { df = p, seed = 1 }):square() end },
  } do
    lu.assertAlmostEquals(mean_slope(row[1], row[4]), row[2], row[3])
  end
  local c = dc.tensor({ 1, 2, 0.5 }):watch()
  local y = random.dirichlet("f32[20000, 3]", { concentration = c, seed = 1 })
  lu.assertAlmostEquals(dc.grad(y:sum() / 20000, c):abs():max():item(), 0, 1e-5)
  lu.assertAlmostEquals(dc.grad(y[{ {}, 1 }]:mean(), c)[1]:item(), 2.5 / 3.5 ^ 2, 0.01)
  local f = dc.fn("f(p: f32[n <= 8]) -> f32[n], f32[n]", function(p)
    local x = random.gamma(p, { concentration = p, seed = 1 })
    return x, dc.grad(x:sum(), p)
  end)
  local x, slope = f(c)
  local again = random.gamma("f32[3]", { concentration = c, seed = 1 })
  lu.assertTrue((x - again):abs():max():item() < 1e-5)
  lu.assertTrue((slope - dc.grad(again:sum(), c)):abs():max():item() < 1e-4)
  local rows = dc.fn("g(p: f32[2, 3]) -> f32[2, 3]", function(p)
    return dc.grad(dc.vmap(function(row) return (random.gamma(row, { concentration = row })) end)(p):sum(), p)
  end)
  lu.assertTrue(rows(dc.full("f32[2, 3]", 2)):gt(0):all():item())
  local short = dc.tensor({ 2, 3 }, "bf16"):watch()
  lu.assertEquals(dc.grad(random.gamma("bf16[2]", { concentration = short }):sum(), short).dtype, "bf16")
end

-- Sums of probabilities of f32 end at 1 - 2^-22, which one number in some millions is above.
function TestRandom:test_the_end_of_sums()
  lu.assertTrue(random.poisson("f32[500000]", { rate = 2.21, seed = 2 }):max():item() < 20)
end

-- The sums of the weights up to these 32768 classes are larger than the whole numbers that f32 holds.
function TestRandom:test_small_weights_behind_a_large_one()
  local weights = dc.concat({ dc.full("f32[1]", 2 ^ 25), dc.ones "f32[32768]" }, 1)
  local drawn = random.multinomial(weights, 100000, { replacement = true, seed = 3 })
  local rest, small = {}, 0
  for _, class in ipairs(drawn:totable()) do
    if class > 0 then
      small = small + 1
      rest[class % 4] = true
    end
  end
  lu.assertTrue(small > 50 and small < 160, small)
  lu.assertEquals(rest, { [0] = true, true, true, true })
end

function TestRandom:test_bounds()
  local x = random.truncated_normal("f32[3000]", { mean = -3, std = 0.5, low = -3.2, high = -3, seed = 1 })
  lu.assertTrue(x:ge(-3.2):all():item() and x:le(-3):all():item())
  local far = random.truncated_normal("f32[300]", { low = 30, seed = 1 })
  lu.assertTrue(far:ge(30):all():item() and far:lt(31):all():item())
  local b = random.beta("f32[3000]", { alpha = 0.01, beta = 0.01, seed = 1 })
  lu.assertTrue(b:ge(0):all():item() and b:le(1):all():item())
  local p = random.dirichlet("f32[100, 4]", { concentration = 0.001, seed = 1 })
  lu.assertTrue((p:sum(2) - 1):abs():max():item() < 1e-5)
end

TestClasses = {}

function TestClasses:test_weights_of_zero_are_never_drawn()
  local weights = dc.tensor { { 1, 0, 3, 0 }, { 0, 1e-30, 0, 0 } }
  local many = random.multinomial(weights, 500, { replacement = true, seed = 1 })
  lu.assertEquals(many.shape, { 2, 500 })
  lu.assertFalse(many[1]:eq(1):any():item() or many[1]:eq(3):any():item())
  lu.assertTrue(many[2]:eq(1):all():item())
  local classes = random.categorical(weights:log(), { seed = 2 }):totable()
  lu.assertTrue((classes[1] == 0 or classes[1] == 2) and classes[2] == 1)
  lu.assertEquals(random.categorical(dc.tensor { { 0 }, { 50 } }, { axis = 1 }):totable(), { 1 })
end

function TestClasses:test_with_replacement()
  local weights = dc.where((dc.iota "i32[1000]" % 3):eq(1), 2, 0) -- nothing in front, nor behind
  local f = dc.fn("f(w: f32[1000]) -> i32[100000]", function(w)
    return random.multinomial(w, 100000, { replacement = true, seed = 3 })
  end)
  local drawn = f(weights:cast "f32")
  lu.assertTrue((drawn % 3):eq(1):all():item())
  local counts = drawn:bincount { bins = 1000 }
  lu.assertTrue(counts:max():item() < 400 and counts:sum():item() == 100000) -- 300 and five deviations
  raises("multinomial: index 2 outside 0..1 of axis 2 at position [2, 1]", "DC0701", function()
    return random.multinomial(dc.tensor { { 0, 1 }, { 0, -1 } }, 3, { replacement = true, seed = 1 }):totable()
  end)
end

function TestClasses:test_without_replacement()
  local f = dc.fn("f(w: f32[r, 6]) -> i32[r, 6]", function(w) return random.multinomial(w, 6) end)
  for _, row in ipairs(f(dc.ones "f32[20, 6]"):totable()) do
    table.sort(row)
    lu.assertEquals(row, { 0, 1, 2, 3, 4, 5 })
  end
  lu.assertEquals(#random.multinomial(dc.tensor({ 5, 0, 1 }, "i32"), 2), 2)
end

function TestClasses:test_orders()
  for _, n in ipairs { 0, 1, 2, 100 } do
    local list = random.permutation(n, { seed = n }):totable()
    table.sort(list)
    lu.assertEquals(list, n == 0 and {} or dc.iota(n):totable())
  end
  lu.assertNotEquals(random.permutation(50):totable(), random.permutation(50):totable())
  local counts = {} -- all orders of three come as often
  for seed = 1, 150 do
    local order = table.concat(random.permutation(3, { seed = seed }):totable())
    counts[order] = (counts[order] or 0) + 1
  end
  for _, order in ipairs { "012", "021", "102", "120", "201", "210" } do
    lu.assertTrue(counts[order] > 10 and counts[order] < 45, order)
  end
  local x = dc.iota "i32[n=3, 5]"
  local y = random.shuffle(x, { axis = 2, seed = 3 })
  lu.assertEquals(y[1]:sort():totable(), { 0, 1, 2, 3, 4 })
  lu.assertEquals(y[1]:totable(), y[3]:totable())
end

function TestClasses:test_wrong()
  local w = dc.tensor { 1, 0, 2 }
  for text, case in pairs {
    ["exponential: rate is a number above 0, or a tensor of such, not -1"] =
      { "DC0101", random.exponential, "f32[2]", { rate = -1 } },
    ["gamma: concentration is needed: { concentration = ... }"] = { "DC0101", random.gamma, "f32[2]" },
    ["gamma: concentration is f32[3], which does not stretch to [1]"] =
      { "DC0301", random.gamma, "f32[1]", { concentration = w } },
    ["gamma: i32[2]: a float is needed"] = { "DC0202", random.gamma, "i32[2]", { concentration = 1 } },
    ["gamma: seed is an integer, not 0.5"] = { "DC0101", random.gamma, "f32[2]", { concentration = 1, seed = 0.5 } },
    ["gamma: a type such as \"f32[3]\" or a tensor is needed, not the number 3"] = { "DC0101", random.gamma, 3 },
    ["beta: unknown option 'a'; known are seed, alpha, beta"] = { "DC0101", random.beta, "f32[2]", { a = 1 } },
    ["binomial: n is needed: { n = ... }"] = { "DC0101", random.binomial, "f32[2]", { p = 0.5 } },
    ["binomial: n is a whole number from 0 on, or a tensor of such, not 2.5"] = { "DC0101", random.binomial, "f32[2]",
      { n = 2.5, p = 0.5 } },
    ["binomial: p is a number from 0 to 1, or a tensor of such, not 1.5"] = { "DC0101", random.binomial, "f32[2]",
      { n = 2, p = 1.5 } },
    ["binomial: p is needed: { p = ... }"] = { "DC0101", random.binomial, "f32[2]", { n = 2 } },
    ["truncated_normal: low is f32[3], which does not stretch to [2]"] = { "DC0301", random.truncated_normal, "f32[2]",
      { low = dc.zeros "f32[3]" } },
    ["poisson: bool[2]: a number is needed"] = { "DC0202", random.poisson, "bool[2]" },
    ["geometric: p is a number above 0 up to 1, or a tensor of such, not 2"] =
      { "DC0101", random.geometric, "f32[2]", { p = 2 } },
    ["truncated_normal: low is 2, high 1; nothing is between them"] =
      { "DC0101", random.truncated_normal, "f32[2]", { low = 2, high = 1 } },
    ["multinomial: 4 of 3 classes without replacement"] = { "DC0301", random.multinomial, w, 4 },
    ["multinomial: n is a positive integer, not 0"] = { "DC0101", random.multinomial, w, 0 },
    ["categorical: logits is i32[3], floats are needed"] = { "DC0202", random.categorical, dc.iota(3) },
    ["permutation: how many numbers is an integer from 0 on, not -1"] = { "DC0101", random.permutation, -1 },
  } do
    raises(text, case[1], function() case[2](case[3], case[4]) end)
  end
  raises("multinomial: index 3 outside 0..2 of axis 1 at position 3", "DC0701", function()
    return random.multinomial(w, 3):totable()
  end)
end
