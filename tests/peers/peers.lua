-- Cases of tests/peers/cases: their arguments, drawn from seeds, and what deepc makes of them.
--
-- A variant is a case with one set of arguments and one dtype. Its results are a flat list of tensors by name:
-- "result.1" ..., and "grad.NAME" for the gradient of sum(result * weights) by argument NAME, weights being
-- cos(1), cos(2), ... over the elements of all float results.

local dc = require "deepc"

local peers = {}

local floats = { f16 = true, bf16 = true, f32 = true, f64 = true, c64 = true, c128 = true }

-- One number for each name, so that arguments do not depend on the order of cases.
local function seed_of(name)
  local h = 5381
  for i = 1, #name do
    h = (h * 33 + name:byte(i)) % 2147483647
  end
  return h
end

local function sorted_keys(t)
  local keys = {}
  for k in pairs(t) do
    keys[#keys + 1] = k
  end
  table.sort(keys)
  return keys
end

local complex = { f32 = "c64", f64 = "c128" }
local parts = { c64 = true, c128 = true }

local function column(values, k)
  local out = {}
  for i, v in ipairs(values) do
    out[i] = type(v) == "table" and v[k] or k == 1 and v or 0
  end
  return out
end

local function drawn(spec, dtype, seed)
  local kind = type(spec) == "table" and spec or { spec }
  local written = kind[1]:gsub("^T%[", dtype .. "["):gsub("^Z%[", (complex[dtype] or "?") .. "[")
  local of = written:match "^(%w+)%["
  if parts[of] then
    local real = written:gsub("^%w+", "f64")
    local re, im
    if kind.values then
      re, im = dc.tensor(column(kind.values, 1), real), dc.tensor(column(kind.values, 2), real)
    else
      re, im = dc.randn(real, { seed = seed }), dc.randn(real, { seed = seed + 1 })
    end
    return dc.complex(re, im):cast(of)
  elseif kind.values then
    return dc.tensor(kind.values, written)
  elseif of == "bool" then
    return dc.bernoulli(written, { p = kind.p or 0.5, seed = seed })
  elseif kind.low and floats[of] then
    return dc.rand(written:gsub("^%w+", "f64"), { low = kind.low, high = kind.high, seed = seed }):cast(of)
  elseif floats[of] then
    return dc.randn((written:gsub("^%w+", "f64")), { seed = seed }):cast(of)
  end
  return dc.randint((written:gsub("^%w+", "i64")), { low = kind.low or 0, high = kind.high or 9, seed = seed }):cast(of)
end

-- The variants of a file of cases: { { key =, case =, dtype =, args = { name = tensor }, grads = { names } } ... }
function peers.variants(area, root)
  local cases = dofile((root or "tests/peers") .. "/cases/" .. area .. ".lua")
  local list, seen = {}, {}
  for _, case in ipairs(cases) do
    local name = case[1]
    if seen[name] then
      error(("%s: two cases are called '%s'"):format(area, name))
    end
    seen[name] = true
    for n, set in ipairs(case.args or { {} }) do
      for _, dtype in ipairs(case.dtypes or { "f32", "f64" }) do
        local key = ("%s/%d/%s"):format(name, n, dtype)
        local args, grads = {}, {}
        for _, arg in ipairs(sorted_keys(set)) do
          if arg ~= "grad" then
            args[arg] = drawn(set[arg], dtype, seed_of(key .. arg))
            local own = type(set[arg]) == "table" and set[arg].grad
            if case.grad ~= false and set.grad ~= false and own ~= false and not case.numpy and
              floats[args[arg].dtype] then
              grads[#grads + 1] = arg
            end
          end
        end
        list[#list + 1] = { key = key, case = case, dtype = dtype, args = args, grads = grads }
      end
    end
  end
  return list
end

local function is_tensor(v)
  return type(v) == "userdata"
end

local function weighted_sum(results)
  local loss, from = nil, 0
  for _, y in ipairs(results) do
    if floats[y.dtype] then
      local n = 1
      for _, size in ipairs(y.shape) do
        n = n * size
      end
      local w = (dc.iota(("f64[%d]"):format(n)) + (1 + from)):cos():cast(y.dtype)
      from = from + n
      local part = (y:reshape(n) * w):real():sum():cast "f64"
      loss = loss and loss + part or part
    end
  end
  return loss
end

-- The results of a variant, lazily.
function peers.run(variant)
  local out, args = {}, {}
  for name, x in pairs(variant.args) do
    args[name] = x
  end
  for _, name in ipairs(variant.grads) do
    args[name] = args[name]:watch() -- however many operations there are
  end
  local results, cells = variant.case.run(args)
  results = is_tensor(results) and { results } or results
  for i, y in ipairs(results) do
    out[#out + 1] = { ("result.%d"):format(i), is_tensor(y) and y or dc.tensor(y, "f64") }
  end
  if #variant.grads > 0 then
    local wrt = {}
    for i, name in ipairs(variant.grads) do
      wrt[i] = cells and cells[name] or args[name]
    end
    for i, g in ipairs(dc.grad(weighted_sum(results), wrt, { unused = "zero" })) do
      out[#out + 1] = { "grad." .. variant.grads[i], g }
    end
  end
  return out
end

-- The same in a typed function, compiled.
function peers.run_compiled(variant)
  local fields = {}
  for i, name in ipairs(sorted_keys(variant.args)) do
    local x = variant.args[name]
    fields[i] = ("%s: %s[%s]"):format(name, x.dtype, table.concat(x.shape, ", "))
  end
  local names = {}
  local f = dc.fn(#fields > 0 and ("f(args: {%s})"):format(table.concat(fields, ", ")) or "f()", function(args)
    local results = peers.run { case = variant.case, args = args or {}, grads = variant.grads }
    for i, named in ipairs(results) do
      names[i], results[i] = named[1], named[2]
    end
    return table.unpack(results)
  end)
  local out = { f(#fields > 0 and variant.args or nil) }
  for i, y in ipairs(out) do
    out[i] = { names[i], y }
  end
  return out
end

local of_norm = { f64 = 4e-15, f32 = 1e-6 }
local usual = { f64 = 1e-13, f32 = 2e-6, bf16 = 2e-2, f16 = 2e-3 }

local function flat(x)
  local n = 1
  for _, size in ipairs(x.shape) do
    n = n * size
  end
  return x:reshape(n):totable()
end

local function root_mean_square(list)
  local sum = 0
  for _, x in ipairs(list) do
    sum = sum + x * x
  end
  return math.sqrt(sum / math.max(1, #list))
end

-- The largest |got - want| / max(1, |want|), or a sentence that says what is wrong altogether. With `normwise`, the
-- difference is relative to the root mean square of what is wanted: so errors of a transform are bounded, whose
-- small elements are sums of large ones.
local function apart(got, want, normwise)
  if table.concat(got.shape, ", ") ~= table.concat(want.shape, ", ") then
    return ("shape [%s], the peer's is [%s]"):format(table.concat(got.shape, ", "), table.concat(want.shape, ", "))
  end
  if got.dtype ~= want.dtype and (parts[got.dtype] or parts[want.dtype]) then
    return ("%s, the peer's is %s"):format(got.dtype, want.dtype)
  elseif parts[got.dtype] then
    got, want = got:view_as_real(), want:view_as_real()
  end
  local worst = 0
  local a, b = flat(got), flat(want)
  local least = normwise and math.max(root_mean_square(b), 1e-300)
  for i = 1, #b do
    local x, y = a[i], b[i]
    if x == y or x ~= x and y ~= y then -- luacheck: ignore 581
      goto next
    end
    if type(x) ~= "number" or type(y) ~= "number" or x ~= x or y ~= y or math.abs(x) == math.huge or
      math.abs(y) == math.huge then
      return ("element %d is %s, the peer's is %s"):format(i, tostring(x), tostring(y))
    end
    worst = math.max(worst, math.abs(x - y) / (least or math.max(1, math.abs(y))))
    ::next::
  end
  return worst
end

-- Compares what `run` made with the table: the largest error, and sentences about what is beyond the tolerance.
function peers.compare(variant, results, tables)
  local wrong, worst = {}, 0
  local limits = variant.case.normwise and of_norm or usual
  local tol = (variant.case.tol or {})[variant.dtype] or limits[variant.dtype] or 0
  for _, named in ipairs(results) do
    local name, got = named[1], named[2]
    local want = tables[variant.key .. "/" .. name]
    local off = want and apart(got, want, variant.case.normwise) or "not in the table: run scripts/peers"
    if type(off) == "string" then
      wrong[#wrong + 1] = ("%s %s: %s"):format(variant.key, name, off)
    else
      worst = math.max(worst, off)
      if off > tol then
        wrong[#wrong + 1] = ("%s %s: off by %.2g, %.2g is allowed"):format(variant.key, name, off, tol)
      end
    end
  end
  return wrong, worst
end

return peers
