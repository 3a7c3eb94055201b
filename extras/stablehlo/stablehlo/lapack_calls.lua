-- Custom calls by which JAX asks for LAPACK on CPUs: factors and triangular systems. Options are letters, as numbers.

local dc = require "deepc"
local linalg = require "deepc.linalg"
local shapes = require "deepc.stablehlo.shapes"

local calls = {}

local function options_of(o)
  local out = {}
  for name, v in pairs(o.attributes["mhlo.backend_config"] or {}) do
    out[name] = type(v) == "number" and v > 31 and v < 127 and string.char(v) or v
  end
  return out
end

-- Of a matrix that is not positive definite the factor is NaN, and so is what JAX makes of it: no number tells it.
local function potrf(o, x)
  local upper = options_of(o).uplo == "U"
  local l = linalg.cholesky(upper and x:transpose() or x, { check = false })
  return upper and l:transpose() or l, dc.zeros("i32" .. shapes.text(o.types[2].shape))
end

local function trsm(o, a, b)
  local at = options_of(o)
  return linalg.triangular_solve(a, b, { upper = at.uplo == "U", transposed = at.trans_x ~= "N", unit = at.diag == "U",
    left = at.side == "L", check = false })
end

for _, letter in ipairs { "s", "d" } do
  calls[("lapack_%spotrf_ffi"):format(letter)], calls[("lapack_%strsm_ffi"):format(letter)] = potrf, trsm
end

return calls
