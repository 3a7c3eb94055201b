-- deepc's side of bench/linalg.py. Results are closed as soon as they are no longer needed.
local dc = require "deepc"
local linalg = require "deepc.linalg"
local frame = dofile((arg[0]:match "^(.*)/" or ".") .. "/frame.lua")

-- All results are made, those of the peers' names are compared.
local operations = {
  solve = function(a, b) return { x = linalg.solve(a, b) } end,
  ["solve gradient"] = function(a, b)
    local g = dc.grad(linalg.solve(a, b):square():sum(), { a, b })
    return { ga = g[1], gb = g[2] }
  end,
  cholesky = function(a) return { l = linalg.cholesky(a) } end,
  inv = function(a) return { y = linalg.inv(a) } end,
  slogdet = function(a) return { y = select(2, linalg.slogdet(a)) } end,
  qr = function(a)
    local q, r = linalg.qr(a)
    return { q = q, r = r:abs() }
  end,
  eigh = function(a)
    local w, v = linalg.eigh(a)
    return { w = w, v = v }
  end,
  eigvalsh = function(a) return { w = linalg.eigvalsh(a) } end,
  svd = function(a)
    local u, s, vh = linalg.svd(a)
    return { u = u, s = s, vh = vh }
  end,
  svdvals = function(a) return { s = linalg.svdvals(a) } end,
}
local hidden = { q = true, v = true, u = true, vh = true }

frame.serve(function(case, inputs)
  local a, b = inputs.a:cast(case.dtype):clone(), inputs.b:cast(case.dtype):clone()
  local batch = case.b > 1 and case.b .. ", " or ""
  local names, body = {}, operations[case.op]
  local f = dc.fn(("f(a: %s[%s%d, %d], b: %s[%s%d, 1])"):format(case.dtype, batch, case.n, case.n, case.dtype, batch,
    case.n), function(x, y)
    local out, list = body(x, y), {}
    names = {}
    for name in pairs(out) do
      names[#names + 1] = name
    end
    table.sort(names)
    for i, name in ipairs(names) do
      list[i] = out[name]
    end
    return table.unpack(list)
  end)
  local last = {}
  return function(n)
    for _ = 1, n do
      for _, t in ipairs(last) do
        t:close()
      end
      last = { f(a, b) }
    end
    local out = {}
    for i, t in ipairs(last) do
      out[names[i]] = not hidden[names[i]] and t or nil
    end
    return out
  end
end)
