-- deepc's side of bench/linalg.py. Results are closed as soon as they are no longer needed.
local dc = require "deepc"
local linalg = require "deepc.linalg"
local frame = dofile((arg[0]:match "^(.*)/" or ".") .. "/frame.lua")

-- Names of the results that are compared, "_" of others, and what makes them.
local operations = {
  solve = { "x", function(a, b) return linalg.solve(a, b) end },
  ["solve gradient"] = { "ga gb", function(a, b)
    return table.unpack(dc.grad(linalg.solve(a, b):square():sum(), { a, b }))
  end },
  cholesky = { "l", function(a) return linalg.cholesky(a) end },
  inv = { "y", function(a) return linalg.inv(a) end },
  slogdet = { "_ y", function(a) return linalg.slogdet(a) end },
  qr = { "_ r", function(a)
    local q, r = linalg.qr(a)
    return q, r:abs()
  end },
  eigh = { "w _", function(a) return linalg.eigh(a) end },
  eigvalsh = { "w", function(a) return linalg.eigvalsh(a) end },
  svd = { "_ s _", function(a) return linalg.svd(a) end },
  svdvals = { "s", function(a) return linalg.svdvals(a) end },
}

frame.serve(function(case, inputs)
  local a, b = inputs.a:cast(case.dtype):clone(), inputs.b:cast(case.dtype):clone()
  local batch = case.b > 1 and case.b .. ", " or ""
  local names, body = table.unpack(operations[case.op])
  local f = dc.fn(("f(x: %s[%s%d, %d], y: %s[%s%d, 1])"):format(case.dtype, batch, case.n, case.n, case.dtype, batch,
    case.n), function(x, y) return body(x, y) end)
  local last = {}
  return function(n)
    for _ = 1, n do
      for _, t in ipairs(last) do
        t:close()
      end
      last = { f(a, b) }
    end
    local out, i = {}, 0
    for name in names:gmatch "%S+" do
      i = i + 1
      out[name] = last[i]
    end
    out._ = nil
    return out
  end
end)
