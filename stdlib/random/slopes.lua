-- How gamma numbers change with their concentration where the uniform numbers that they come of stay: by the implicit
-- function theorem -dF/da / dF/dx of the distribution function F (Figurnov, Mohamed and Mnih, 2018). What it is near
-- enough by is Jankowiak and Obermeyer's (2018), as in PyTorch: a series for small numbers, Rice's expansion for large
-- concentrations, a rational function between. Relative errors are below 1e-3, of concentrations below 0.1 below 1e-2.

local dc = require "deepc"
require "deepc.operands"
local _, core = ...

-- The series of F and of its slope in a, without x^a exp(-x).
local function small(a, x, log_x)
  x = x:minimum(0.8)
  local term, below = 1, a
  local sum = 1 / below
  local squares = sum * sum
  for i = 1, 5 do
    term = x * (-1 / i) * term
    below = below + 1
    sum = sum + term / below
    squares = squares + term / (below * below)
  end
  return (squares - (log_x - a:digamma()) * sum) * x:exp()
end

-- x within a tenth of the concentration.
local function near_mean(a, x)
  local first = a * 24 * (a * 12 + 1) + 1
  local second = a * a * 1440 + x * 6 * (53 - x * 120) - x * x * 65 / a + a * (x * 3600 + 107)
  local square = a * a
  return first * second / (square * square * 1244160) / x
end

local function far_from_mean(a, x)
  local root, ratio, off = (a * 8):sqrt(), (x / a):log(), a - x
  local outer = (x - a - a * ratio) ^ -1.5
  local inner = root / off + dc.where(off:gt(0), -outer, outer)
  local slope = ratio * inner - (2 / a):sqrt() * (a + x) / (off * off)
  local stirling = (1 / (a * 24) + 1) / (a * 12) + 1
  return -(stirling * slope) / root
end

-- Of u = log(x / a) and v = log(a): a row for each power of u, in it powers of v, first of the numerator.
local coefficients = {
  { 0.16009398, -0.094634809, 0.025146376, -0.0030648343, 1, 0.32668115, 0.10406089, 0.0014179084 },
  { 0.53487893, 0.1298071, 0.065735949, -0.0015649758, 0.16639465, 0.020070113, -0.0035938915, -0.00058392623 },
  { 0.040121004, -0.0065914022, -0.0026286047, -0.0013441777, 0.017050642, -0.0021309326, 0.00085092367,
    -1.5247877e-07 },
}

local function rational(a, x)
  local v = a:log()
  local u = x:log() - v
  local function polynomial(first)
    local sum
    for i = first + 3, first, -1 do
      local c = (u * coefficients[3][i] + coefficients[2][i]) * u + coefficients[1][i]
      sum = sum and sum * v + c or c
    end
    return sum
  end
  return (polynomial(1) / polynomial(5)):exp() / x
end

-- The slope of log x for a draw x of concentration a, both tensors of one shape. Each way sees what is its own, or
-- something harmless.
function core.gamma_log_slope(a, x, log_x)
  local high = x:maximum(0.8)
  local large, some = a:maximum(8), a:minimum(8)
  local near = high:ge(large * 0.9) & high:le(large * 1.1)
  local of_large = dc.where(near, near_mean(large, high), far_from_mean(large, dc.where(near, large * 2, high)))
  return dc.where(x:lt(0.8), small(a, x, log_x),
    dc.where(a:gt(8), of_large, rational(some, high:minimum(100))))
end

return {}
