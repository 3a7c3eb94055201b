-- Custom calls for linear algebra: those by which JAX asks for LAPACK on CPUs, whose options are letters, as numbers;
-- and those of the plugin for JAX (extras/pjrt), which begin with "deepc.". What there is none of is NaN.

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

local function settings_of(o)
  return o.attributes["mhlo.backend_config"] or {}
end

local function is_set(v)
  return v ~= nil and v ~= 0 and v ~= false
end

calls["deepc.eigh"] = function(o, x)
  local w, v = linalg.eigh(x, { upper = not is_set(settings_of(o).lower), check = false })
  return v, w
end

calls["deepc.eig"] = function(o, x)
  if is_set(settings_of(o).vectors) then
    return linalg.eig(x, { check = false })
  end
  return linalg.eigvals(x, { check = false })
end

calls["deepc.svd"] = function(o, x)
  local at = settings_of(o)
  if not is_set(at.vectors) then
    return linalg.svdvals(x, { check = false })
  end
  local u, s, vh = linalg.svd(x, { full = is_set(at.full), check = false })
  return s, u, vh
end

calls["deepc.qr"] = function(o, x)
  return linalg.qr(x, { mode = is_set(settings_of(o).full) and "complete" or "reduced" })
end

calls["deepc.lu"] = function(_, x)
  local lu, rows = linalg.lu_factor(x)
  return lu, rows:cast "i32"
end

return calls
