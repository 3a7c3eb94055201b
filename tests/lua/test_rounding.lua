-- Composites of several steps are rounded once, at their end: on the interpreter as in a kernel, and next to the
-- exact value, for every float dtype, where steps rounded by themselves would drift far apart.
local lu = require "luaunit"
local dc = require "deepc"

-- Units of the last place, relative; and that of what the steps are computed in.
local UNIT = { f16 = 2 ^ -10, bf16 = 2 ^ -7, f32 = 2 ^ -23, f64 = 2 ^ -52 }
local STEP = { f16 = 2 ^ -23, bf16 = 2 ^ -23, f32 = 2 ^ -23, f64 = 2 ^ -52 }
local LEAST = { f16 = 2 ^ -14, bf16 = 2 ^ -126, f32 = 2 ^ -126, f64 = 2 ^ -1022 }
local MOST = { f16 = 65504, bf16 = 3.3e38, f32 = 3.4e38, f64 = 1.7e308 }

local DTYPES = { "f16", "bf16", "f32", "f64" }

-- The values of x and y as the dtype has them, and f of these: outside of typed functions and in a kernel.
local function both(t, f, x, y)
  local a, b = dc.tensor({ x }, t), dc.tensor({ y }, t)
  local lazy = f(a, b):totable()[1]
  local compiled = dc.fn(("f(p: %s[1], q: %s[1]) -> %s[1]"):format(t, t, t), function(p, q) return f(p, q) end)
  return a:totable()[1], b:totable()[1], lazy, compiled(a, b):totable()[1]
end

-- slack: how much the steps make of their rounding errors.
local function check_near(what, t, got, exact, slack)
  local bound = UNIT[t] / 2 + STEP[t] * (4 + slack)
  if math.abs(got - exact) > bound * math.abs(exact) then
    lu.fail(("%s %s: %.9g, exactly %.9g: %.3g off, %.3g allowed"):format(t, what, got, exact,
      math.abs(got / exact - 1), bound))
  end
end

TestRounding = {}

function TestRounding:test_powers_with_large_exponents()
  for _, t in ipairs(DTYPES) do
    for _, pair in ipairs { { 0.5, 89 }, { 0.5, 13 }, { 1.5, 20.5 }, { 1.0625, 150 }, { 3, -9.5 }, { 10, 37 },
      { 0.1, 3 }, { 7.5, -4 }, { 2, 100.5 }, { 0.9375, 900 } } do
      local x, y, lazy, compiled = both(t, function(a, b) return a ^ b end, pair[1], pair[2])
      local exact = x ^ y
      if exact > LEAST[t] and exact < MOST[t] then
        local what = ("%g ^ %g"):format(x, y)
        local slack = 2 * math.abs(y * math.log(x))
        check_near(what, t, lazy, exact, slack)
        check_near(what .. " in a kernel", t, compiled, exact, slack)
      end
    end
  end
end

function TestRounding:test_a_number_as_exponent()
  for _, t in ipairs { "f16", "bf16" } do
    for _, n in ipairs { 3, 7, 13, 31, 63 } do
      local x, _, lazy, compiled = both(t, function(a) return a ^ n end, 1.1, 1)
      if x ^ n < MOST[t] then
        check_near("1.1 ^ " .. n, t, lazy, x ^ n, n)
        lu.assertEquals(lazy, compiled)
      end
    end
  end
end

function TestRounding:test_floor_division_of_tiny_and_huge_numbers()
  for _, t in ipairs(DTYPES) do
    for _, pair in ipairs { { 1e-39, -104 }, { -1e-39, 104 }, { 6e-8, -3000 }, { 3e38, 0.5 }, { 60000, 7 },
      { 7, -2 }, { 1e-4, 1e4 } } do
      local top = math.min(pair[1], MOST[t])
      local x, y, lazy, compiled = both(t, function(a, b) return a // b end, top, pair[2])
      local what = ("%s %g // %g"):format(t, x, y)
      lu.assertEquals(lazy, compiled, what)
      if t ~= "f32" and math.abs(x / y) < 1000 and math.abs(x / y) > 1e-40 then
        lu.assertEquals(lazy, x // y, what)
      end
      x, y, lazy, compiled = both(t, function(a, b) return a % b end, top, pair[2])
      lu.assertEquals(tostring(lazy), tostring(compiled), ("%s %g %% %g"):format(t, x, y))
    end
  end
end

function TestRounding:test_activations()
  local functions = {
    sigmoid = function(x) return 1 / (1 + math.exp(-x)) end,
    silu = function(x) return x / (1 + math.exp(-x)) end,
    softplus = function(x) return x > 30 and x or math.log(1 + math.exp(x)) end,
    rsqrt = function(x) return x > 0 and x ^ -0.5 or nil end,
  }
  for _, t in ipairs { "f16", "bf16" } do
    for name, exact in pairs(functions) do
      for _, at in ipairs { -8.5, -3.3, -0.7, 0.3, 1.9, 6.1 } do
        local x, _, lazy, compiled = both(t, function(a) return a[name](a) end, at, 1)
        if exact(x) then
          check_near(("%s(%g)"):format(name, x), t, lazy, exact(x), 8)
          check_near(("%s(%g) in a kernel"):format(name, x), t, compiled, exact(x), 8)
        end
      end
    end
  end
end
