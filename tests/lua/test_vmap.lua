-- dc.vmap: every operation, layer and form over one more axis gives what a loop over the rows and a stack give, outside
-- typed functions and inside.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local help = require "deepc.help"

local function near(got, want, what)
  if type(want) ~= "table" then
    lu.assertTrue(got == want or (got ~= got and want ~= want) or
      math.abs(got - want) <= 2e-5 * (1 + math.abs(want)), ("%s: %s, not %s"):format(what, got, want))
    return
  end
  lu.assertEquals(#got, #want, what)
  for i = 1, #want do
    near(got[i], want[i], what)
  end
end

local function plain(v)
  return #v.shape == 0 and v:item() or v:totable()
end

local function type_of(v)
  return ("%s[%s]"):format(v.dtype, table.concat(v.shape, ", "))
end

-- The type with another size along an axis.
local function with_size(v, axis, size)
  local shape = { table.unpack(v.shape) }
  shape[axis] = size
  return ("%s[%s]"):format(v.dtype, table.concat(shape, ", "))
end

local function same(got, want, what)
  lu.assertEquals(type_of(got), type_of(want), what)
  near(plain(got), plain(want), what)
end

-- f as a typed function of arguments and results of these types, which are fields of records. With axes their size is
-- known at run time, and that of axis 1 of the results.
local function typed(f, args, results, axes)
  local from, to, bound = {}, {}, nil
  for i, v in ipairs(args) do
    local axis = axes and axes[i]
    local own = axis and with_size(v, axis, bound or ("rows <= %d"):format(v.shape[axis] + 2)) or type_of(v)
    from[i] = ("a%d: %s"):format(i, own)
    bound = bound or axis and "rows"
  end
  for i, v in ipairs(results) do
    to[i] = ("r%d: %s"):format(i, axes and with_size(v, 1, "rows") or type_of(v))
  end
  local g = dc.fn(("f(all: { %s }) -> { %s }"):format(table.concat(from, ", "), table.concat(to, ", ")), function(all)
    local list, out = {}, {}
    for i = 1, #from do
      list[i] = all["a" .. i]
    end
    for i, y in ipairs(table.pack(f(table.unpack(list)))) do
      out["r" .. i] = y
    end
    return out
  end)
  return function(...)
    local record = {}
    for i = 1, #from do
      record["a" .. i] = (select(i, ...))
    end
    local out, list = g(record), {}
    for i = 1, #to do
      list[i] = out["r" .. i]
    end
    return table.unpack(list)
  end
end

-- Row k of an argument along this axis.
local function row(x, axis, k)
  if not axis then
    return x
  elseif axis ~= 1 then
    local order = { axis }
    for i = 1, #x.shape do
      order[#order + 1] = i ~= axis and i or nil
    end
    x = x:permute(table.unpack(order))
  end
  return x[k]
end

-- What f gives of each row, stacked.
local function by_loop(f, axes, args)
  local lists = {}
  local n
  for i, x in ipairs(args) do
    n = n or (axes[i] and x.shape[axes[i]])
  end
  for k = 1, n do
    local rows = {}
    for i, x in ipairs(args) do
      rows[i] = row(x, axes[i], k)
    end
    for i, y in ipairs(table.pack(f(table.unpack(rows)))) do
      lists[i] = lists[i] or {}
      lists[i][k] = y
    end
  end
  for i, list in ipairs(lists) do
    lists[i] = dc.stack(list, 1)
  end
  return lists
end

-- vmap of f beside the loop, outside typed functions and inside.
local function check(what, f, axes, ...)
  local args = { ... }
  local want = by_loop(f, axes, args)
  local mapped = dc.vmap(f, { in_axes = axes })
  for i, y in ipairs(table.pack(mapped(...))) do
    same(y, want[i], what .. ", outside")
  end
  local inside = table.pack(typed(mapped, args, want)(...))
  lu.assertEquals(#inside, #want)
  for i, y in ipairs(inside) do
    same(y, want[i], what .. ", inside")
  end
  for i, y in ipairs(table.pack(typed(mapped, args, want, axes)(...))) do
    same(y, want[i], what .. ", up to a bound")
  end
  return table.unpack(want)
end

local function floats(type, seed, low, high)
  return dc.rand(type, { low = low or -2, high = high or 2, seed = seed })
end

-- ---- every operation ----

-- Elements are x, y f32[3, 4], p (positive) f32[3, 4], i f32-like integers i32[3, 4], b bool[3, 4], v f32[4].
local unary = [[abs asinh atan cbrt ceil cos cosh erf erfc exp exp2 expm1 floor gelu isfinite isinf isnan neg
  reciprocal relu round sigmoid sign silu
  sin sinh softplus square tan tanh trunc deg2rad rad2deg frac sinc nan_to_num logical_not]]
local positive = "log log1p log2 log10 rsqrt sqrt lgamma digamma"
local below_1 = "asin acos atanh erf_inv"
local binary = [[add atan2 copysign hypot logaddexp logaddexp2 heaviside isclose logical_and logical_or
  logical_xor div eq ge gt le lt maximum minimum mul ne sub floor_div rem mod]]
local whole = "integer_pow bit_and bit_or bit_xor shift_left shift_right"
local reductions = [[max mean min norm prod std sum var logsumexp nansum nanprod nanmean nanmax nanmin nanvar nanstd
  count_nonzero]]
local along = "argmax argmin softmax log_softmax cumsum cumprod cummax cummin logcumsumexp sort argsort"

local ops = {
  pow = function(e) return e.p ^ e.y, e.p ^ 2 end,
  bit_not = function(e) return e.i:bit_not() end,
  all = function(e) return e.b:all(), e.b:all(1), e.b:all { axis = -1, keep = true } end,
  any = function(e) return e.b:any(), e.b:any(2) end,
  cast = function(e) return e.x:cast "i32", e.b:cast "f32", e.i:cast "f16" end,
  bitcast = function(e) return e.x:bitcast "u32", e.i:bitcast "f32" end,
  clamp = function(e) return e.x:clamp(-0.5, 0.5) end,
  acosh = function(e) return (e.p + 1):acosh() end,
  logit = function(e) return e.x:sigmoid():logit() end,
  xlogy = function(e) return e.x:xlogy(e.p), e.x:xlogy(2) end,
  lerp = function(e) return e.x:lerp(e.y, 0.25), e.x:lerp(e.y, e.v) end,
  popcount = function(e) return e.i:popcount() end,
  gcd = function(e) return e.i:gcd(6) end,
  lcm = function(e) return e.i:lcm(6) end,
  clz = function(e) return e.i:clz() end,
  half_float = function(e) return e.i:cast("u16"):half_float() end,
  dp4a = function(e) return e.i:cast("u32"):dp4a(e.i:cast "u32" * 77, 3) end,
  where = function(e) return dc.where(e.b, e.x, e.y), dc.where(e.b, e.x, 0), dc.where(e.b, 1, e.v) end,
  clone = function(e) return e.x:clone() end,
  stop_gradient = function(e) return e.x:stop_gradient() end,
  watch = function(e) return e.x:watch() end,
  reshape = function(e) return e.x:reshape(2, 6), e.x:reshape(-1) end,
  flatten = function(e) return e.x:flatten() end,
  expand = function(e) return e.v:expand(5, 4) end,
  permute = function(e) return e.x:permute(2, 1) end,
  transpose = function(e) return e.x:transpose(1, 2) end,
  rename = function(e) return e.x:rename { [1] = "r" } end,
  slice = function(e) return e.x:slice { { 2, 3 }, { 1, 4, 2 } } end,
  ["[]"] = function(e) return e.x[2], e.x[{ {}, 3 }] end,
  split = function(e) return e.x:split(2, 2) end,
  concat = function(e) return dc.concat({ e.x, e.y, e.x }, 2) end,
  stack = function(e) return dc.stack({ e.x, e.y }, 2) end,
  pad = function(e) return e.x:pad({ [2] = { 1, 2 } }, 3) end,
  flip = function(e) return e.x:flip(2), e.x:flip { 1, 2 } end,
  roll = function(e) return e.x:roll(2, 2), e.x:roll(-1, 1) end,
  tril = function(e) return e.x:tril(), e.x:tril(1) end,
  triu = function(e) return e.x:triu(-1) end,
  matmul = function(e) return e.x:matmul(e.y:transpose(1, 2)), e.x:matmul(e.v) end,
  einsum = function(e) return dc.einsum("i j, k j -> i k", e.x, e.y), dc.einsum("i j, j ->", e.x, e.v) end,
  take = function(e) return e.x:take(e.k, 2), e.x:take(e.k:take(dc.tensor({ 0, 1 }, "i32[2]")), 1) end,
  put = function(e) return e.x:put(e.k, e.y[{ {}, { 1, 2 } }], 2), e.x:put(e.k, e.v, 1) end,
  one_hot = function(e) return e.k:one_hot(5) end,
  size = function(e) return e.x * e.x:size(1) end,
  zeros = function(e) return e.x + dc.zeros "f32[4]", dc.zeros "f32[2]" end,
  ones = function(e) return e.x * dc.ones(e.x) end,
  full = function(e) return e.x * dc.full("f32[4]", 3) end,
  eye = function(e) return e.x:matmul(dc.eye "f32[4, 4]") end,
  iota = function(e) return e.x + dc.iota "f32[4]" end,
  tensor = function(e) return e.x + dc.tensor { 1, 2, 3, 4 } end,
  rand = function(e) return e.x + dc.rand("f32[4]", { seed = 3 }) end,
  randn = function(e) return e.x + dc.randn("f32[3, 4]", { seed = 3 }) end,
  randint = function(e) return e.i + dc.randint("i32[4]", { high = 9, seed = 3 }) end,
  bernoulli = function(e) return dc.where(dc.bernoulli("bool[4]", { seed = 4 }), e.x, 0) end,
  conv1d = function(e) return dc.conv1d(e.x:reshape(1, 3, 4), e.w) end,
  conv2d = function(e) return dc.conv2d(e.x:reshape(1, 1, 3, 4), e.w:reshape(2, 1, 2, 3), { padding = 1 }) end,
  conv3d = function(e) return dc.conv3d(e.x:reshape(1, 1, 3, 2, 2), e.w:reshape(2, 1, 3, 2, 1)) end,
  max_pool1d = function(e)
    local y, at = dc.max_pool1d(e.x:reshape(1, 3, 4), 2, { return_indices = true })
    return y + at:cast "f32"
  end,
  max_pool2d = function(e) return dc.max_pool2d(e.x:reshape(1, 1, 3, 4), 2, { stride = 1 }) end,
  max_pool3d = function(e) return dc.max_pool3d(e.x:reshape(1, 1, 3, 2, 2), 2, { stride = 1 }) end,
  avg_pool1d = function(e) return dc.avg_pool1d(e.x:reshape(1, 3, 4), 2) end,
  avg_pool2d = function(e) return dc.avg_pool2d(e.x:reshape(1, 1, 3, 4), 2, { stride = 1 }) end,
  avg_pool3d = function(e) return dc.avg_pool3d(e.x:reshape(1, 1, 3, 2, 2), 2, { stride = 1 }) end,
  grad = function(e)
    local x = e.x:watch()
    return dc.grad((x * e.y):tanh():sum(), x)
  end,
  scan = function(e) return dc.scan(function(c, x) return c + x, c * x end, e.v, e.x) end,
  map = function(e) return dc.map(function(x) return (x * e.v):sum() end, e.x) end,
  loop = function(e)
    return dc.loop(function(c) return c:lt(30) end, function(c) return c * 2 end, e.p:sum(), { max = 9 })
  end,
  fori = function(e) return dc.fori(3, function(k, c) return c * e.x + k:cast "f32" end, e.y) end,
  cond = function(e)
    return dc.cond(e.x:sum():gt(0), function(a) return a:exp() end, function(a) return a * 2 end, e.x)
  end,
  switch = function(e)
    local list = { function(a) return a + 1 end, function(a) return a * 2 end, function(a) return a:exp() end }
    return dc.switch(e.k[1], list, e.x)
  end,
  gather = function(e) return e.x:gather(e.i % 3, 1), e.x:gather(dc.zeros "i32[3, 2]", 2) end,
  scatter = function(e) return e.x:scatter(e.i % 3, e.y, 1), e.x:scatter(e.i % 4, e.y, 2, { reduce = "max" }) end,
  scatter_add = function(e) return e.x:scatter_add(e.i % 4, e.y, 2) end,
  index_add = function(e) return e.x:index_add(e.k, e.y[{ {}, { 1, 2 } }], 2), e.x:index_add({ 0, 0 }, e.v, 1) end,
  index_copy = function(e) return e.x:index_copy({ 2, 0 }, e.v, 1) end,
  index_fill = function(e) return e.x:index_fill(e.k, 7, 2) end,
  index_reduce = function(e) return e.x:index_reduce({ 1, 1 }, e.v, 1, { reduce = "mul" }) end,
  take_nd = function(e) return e.x:take_nd { e.k, { 1, 3 } } end,
  gather_nd = function(e) return e.x:gather_nd(e.k) end,
  put_nd = function(e) return e.x:put_nd({ e.k, { 1, 3 } }, 5) end,
  scatter_nd = function(e) return e.x:scatter_nd(e.k, 5) end,
  segment_sum = function(e) return e.x:segment_sum({ 0, 1, 1 }, 3), e.v:segment_sum({ 0, 1, 1, 0 }, 2) end,
  segment_mean = function(e) return e.x:segment_mean({ 0, 1, 1 }, 2) end,
  segment_max = function(e) return e.x:segment_max({ 0, 1, 1 }, 2) end,
  segment_min = function(e) return e.x:segment_min({ 0, 1, 1 }, 2) end,
  segment_prod = function(e) return e.x:segment_prod({ 0, 1, 1 }, 2) end,
  compact = function(e) return (e.x:compact(e.b)) end,
  nonzero = function(e) return (e.b:nonzero()) end,
  bincount = function(e) return e.i:bincount { bins = 9 } end,
  histogram = function(e) return (e.x:histogram(4, { range = { -1, 1 } })) end,
  isin = function(e) return e.i:isin { 2, 5 } end,
  searchsorted = function(e) return dc.tensor { -1, 0, 1 }:searchsorted(e.x), e.v:sort():searchsorted(e.v) end,
  bucketize = function(e) return e.x:bucketize { -1, 0, 1 } end,
  digitize = function(e) return e.x:digitize { -1, 0, 1 } end,
  interp = function(e) return e.x:interp({ -1, 0, 1 }, { 3, 1, 2 }) end,
  diag = function(e) return e.x:diag(1), e.v:diag(-1) end,
  diagonal = function(e) return e.x:diagonal(1) end,
  trace = function(e) return e.x:trace() end,
  outer = function(e) return e.v:outer(e.x[1]) end,
  dot = function(e) return e.v:dot(e.x[1]), e.v:vdot(e.v) end,
  vdot = function(e) return e.v:vdot(e.x[2]) end,
  inner = function(e) return e.x:inner(e.y) end,
  kron = function(e) return e.x:kron(e.y[{ 1, { 1, 2 } }]) end,
  cross = function(e) return e.x:transpose():cross(e.y:transpose()) end,
  meshgrid = function(e) return (dc.meshgrid { e.v, e.v }) end,
  tile = function(e) return e.x:tile(2, 1), e.v:tile(3) end,
  repeat_interleave = function(e) return e.x:repeat_interleave(2, 2), e.x:repeat_interleave({ 0, 2, 1 }, 1) end,
  movedim = function(e) return e.x:movedim(1, 2) end,
  rot90 = function(e) return e.x:rot90() end,
  unfold = function(e) return e.x:unfold(2, 2, 1) end,
  cdist = function(e) return dc.cdist(e.x, e.y), dc.cdist(e.x, e.y, { p = 1 }) end,
  linspace = function(e) return e.v + dc.linspace(0, 1, 4) end,
  logspace = function(e) return e.v + dc.logspace(0, 1, 4) end,
  arange = function(e) return e.v + dc.arange(0, 4, 1, "f32") end,
  vander = function(e) return e.v:vander(3) end,
  complex = function(e) return dc.complex(e.x, e.y):abs() end,
  real = function(e) return (dc.complex(e.x, e.y) * dc.complex(e.v, 1)):real() end,
  imag = function(e) return (dc.complex(e.x, e.y) / dc.complex(e.p, 1)):imag() end,
  conj = function(e) return dc.complex(e.x, e.y):conj():imag() end,
  angle = function(e) return dc.complex(e.x, e.y):angle() end,
  view_as_real = function(e) return dc.complex(e.x, e.y):view_as_real() end,
  view_as_complex = function(e) return e.x[{ {}, { 1, 2 } }]:view_as_complex():abs() end,
  vmap = function(e) return dc.vmap(function(x, v) return (x * v):sum() end, { in_axes = { 1, false } })(e.x, e.v) end,
}

for name in unary:gmatch "[%w_]+" do
  ops[name] = function(e) return e.x[name](e.x) end
end
for name in positive:gmatch "%w+" do
  ops[name] = function(e) return e.p[name](e.p) end
end
for name in below_1:gmatch "[%w_]+" do
  ops[name] = function(e) local x = e.x / 3; return x[name](x) end
end
for name in binary:gmatch "[%w_]+" do
  ops[name] = function(e) return e.x[name](e.x, e.p), e.x[name](e.x, e.v:abs() + 1), e.x[name](e.x, 2) end
end
for name in whole:gmatch "[%w_]+" do
  ops[name] = function(e) return e.i[name](e.i, e.i), e.i[name](e.i, 2) end
end
for name in reductions:gmatch "[%w_]+" do
  ops[name] = function(e)
    return e.x[name](e.x), e.x[name](e.x, 1), e.x[name](e.x, { axis = -1, keep = true })
  end
end
for name in ("median nanmedian"):gmatch "%w+" do
  ops[name] = function(e) return e.x[name](e.x), e.x[name](e.x, 2) end
end
for name in ("quantile percentile nanquantile"):gmatch "%w+" do
  ops[name] = function(e) return e.x[name](e.x, 0.3, 1) end
end
ops.kthvalue = function(e) return e.x:kthvalue(2, 1) end
ops.mode = function(e) return (e.x:round():mode(1)) end
ops.unique = function(e) return e.i:unique() end
ops.top_k = function(e) return (e.x:top_k(2)), (e.x:top_k(1, { axis = 1, largest = false })) end
for name in along:gmatch "[%w_]+" do
  ops[name] = function(e) return e.x[name](e.x, 1), e.x[name](e.x, -1) end
end

-- Not of tensors, or not for tensors of a typed function.
local others = { custom_grad = true, remat = true } -- below
for name in ([[allclose autocast bytes checkpoint check_numbers close dim fn frombytes generator item load move ops
    options param print progress save scope seed set state static stats to totable tune]]):gmatch "[%w_]+" do
  others[name] = true
end

local function elements()
  return {
    { "x", floats("f32[5, 3, 4]", 1) }, { "y", floats("f32[5, 3, 4]", 2) },
    { "p", floats("f32[5, 3, 4]", 3, 0.5, 2) }, { "v", floats("f32[5, 4]", 4) },
    { "i", dc.randint("i32[5, 3, 4]", { low = 0, high = 9, seed = 5 }) },
    { "b", dc.bernoulli("bool[5, 3, 4]", { seed = 6 }) },
    { "k", dc.tensor({ { 0, 1 }, { 2, 1 }, { 1, 2 }, { 2, 0 }, { 0, 2 } }, "i32[5, 2]") },
    { "w", floats("f32[5, 2, 3, 2]", 7) },
  }
end

-- f of a record of these elements as a function of them one by one.
local function spread(f, list)
  return function(...)
    local e = {}
    for i, named in ipairs(list) do
      e[named[1]] = (select(i, ...))
    end
    return f(e)
  end
end

TestOperations = {}

function TestOperations:test_that_all_are_there()
  local missing = {}
  for _, e in ipairs(help.entries()) do
    local owned = e.owner == "deepc" or e.owner == "Tensor"
    for _, a in ipairs(e.also) do
      owned = owned or a.owner == "Tensor"
    end
    if e.kind == "function" and owned and not others[e.name] and not ops[e.name] then
      missing[#missing + 1] = e.name
    end
  end
  lu.assertEquals(table.concat(missing, " "), "")
end

-- Convolutions of both operands by rows have a group for each row, whose number is fixed.
local refused = { conv1d = true, conv2d = true, conv3d = true }

-- The results of all the functions.
local function all_of(fs)
  return function(...)
    local all = {}
    for _, f in ipairs(fs) do
      for _, y in ipairs(table.pack(f(...))) do
        all[#all + 1] = y
      end
    end
    return table.unpack(all)
  end
end

-- Many at once in one typed function.
function TestOperations:test_all_over_rows()
  local list, args = elements(), {}
  for i, named in ipairs(list) do
    args[i] = named[2]
  end
  local names = {}
  for name in pairs(ops) do
    names[#names + 1] = name
  end
  table.sort(names)
  local every, parts = { 1, 1, 1, 1, 1, 1, 1, 1 }, { { "conv1d", "conv2d", "conv3d" }, {} }
  for _, name in ipairs(names) do
    if not refused[name] then
      parts[#parts + 1] = #parts[#parts] == 10 and {} or nil
      table.insert(parts[#parts], name)
    end
  end
  for _, part in ipairs(parts) do
    local want, of, fs = {}, {}, {}
    for _, name in ipairs(part) do
      local f = spread(ops[name], list)
      fs[#fs + 1] = dc.vmap(f)
      local outside = table.pack(fs[#fs](table.unpack(args)))
      for i, y in ipairs(by_loop(f, every, args)) do
        same(outside[i], y, name .. ", outside")
        want[#want + 1] = y
        of[#want] = name
      end
    end
    for i, y in ipairs(table.pack(typed(all_of(fs), args, want)(table.unpack(args)))) do
      same(y, want[i], of[i] .. ", inside")
    end
    if not refused[part[1]] then
      for i, y in ipairs(table.pack(typed(all_of(fs), args, want, every)(table.unpack(args)))) do
        same(y, want[i], of[i] .. ", up to a bound")
      end
    end
  end
end

-- One element alone has rows: the others are as they are.
function TestOperations:test_one_operand_over_rows()
  local list = elements()
  for at, named in ipairs(list) do
    local args, axes, names = {}, {}, {}
    for i, other in ipairs(list) do
      args[i] = i == at and other[2] or other[2][1]
      axes[i] = i == at and 1 or false
    end
    for name in pairs(ops) do
      names[#names + 1] = name
    end
    table.sort(names)
    local function compare(some)
      local want, of, fs = {}, {}, {}
      for _, name in ipairs(some) do
        local f = spread(ops[name], list)
        local rows = by_loop(f, axes, args)
        fs[#fs + 1] = dc.vmap(f, { in_axes = axes })
        for _, y in ipairs(rows) do
          want[#want + 1] = y
          of[#want] = name
        end
      end
      for _, bounded in ipairs { false, axes } do
        for i, y in ipairs(table.pack(typed(all_of(fs), args, want, bounded)(table.unpack(args)))) do
          same(y, want[i], ("%s over rows of %s%s"):format(of[i], named[1], bounded and ", up to a bound" or ""))
        end
      end
    end
    for first = 1, #names, 80 do
      compare { table.unpack(names, first, math.min(first + 79, #names)) }
    end
  end
end

-- ---- axes ----

TestAxes = {}

function TestAxes:test_in_axes()
  local x, y, w = floats("f32[3, 5, 2]", 1), floats("f32[2, 5]", 2), floats("f32[3, 2]", 3)
  local function f(a, b, c) return (a * c):matmul(b), a:sum(1) end
  check("axes 2 and 2", f, { 2, 2, false }, x, y, w)
  local want = by_loop(f, { 2, 2, false }, { x, y, w })
  local other = dc.vmap(f, { in_axes = { -2, -1, false } })
  same(other(x, y, w), want[1], "negative")
  same(dc.vmap(function(a) return a:sum() end, { in_axes = 3 })(x), x:sum { 1, 2 }, "one for all")
  same(dc.vmap(function(a) return a:sum() end)(x), x:sum { 2, 3 }, "the default")
end

function TestAxes:test_out_axes()
  local x = floats("f32[4, 2, 3]", 1)
  local function f(a) return a * 2, a:sum(1), a:sum() end
  for _, axes in ipairs { { 1, 1, 1 }, { 2, 2, 1 }, { 3, -1, -1 }, { -1, -2, 1 }, { -2 } } do
    local mapped = dc.vmap(f, { out_axes = axes })
    local y, s, t = mapped(x)
    local want = by_loop(f, { 1 }, { x })
    local function there(v, rank, axis)
      axis = axis or 1
      axis = axis < 0 and rank + 1 + axis or axis
      local order = {}
      for i = 1, rank do
        order[i] = i < axis and i + 1 or i == axis and 1 or i
      end
      return v:permute(table.unpack(order))
    end
    local all = { there(want[1], 3, axes[1]), there(want[2], 2, axes[2]), want[3] }
    same(y, all[1], "out")
    same(s, all[2], "out")
    same(t, all[3], "out")
    local inside = table.pack(typed(mapped, { x }, all)(x))
    for i = 1, 3 do
      same(inside[i], all[i], "out, inside")
    end
  end
end

function TestAxes:test_names()
  local f = dc.fn("f(x: f32[t=3, b=4, c=2], w: f32[c=2]) -> f32[b=4, t=3], f32[t=3, b=4], f32[b=4]", function(x, w)
    local rows = dc.vmap(function(a)
      lu.assertEquals(tostring(a):match "^f32%[t=3, c=2%]", "f32[t=3, c=2]")
      return (a * w):sum "c", (a * w):sum "c", a:sum()
    end, { in_axes = "b", out_axes = { 1, 2, 1 } })
    local y, z, s = rows(x)
    lu.assertStrContains(tostring(y), "f32[b=4, t=3]")
    lu.assertStrContains(tostring(z), "f32[t=3, b=4]")
    return y, z, s
  end)
  local x = dc.randn("f32[t=3, b=4, c=2]", { seed = 1 })
  local y = f(x, dc.ones "f32[c=2]")
  lu.assertStrContains(tostring(y), "f32[b=4, t=3]")
  local out = dc.vmap(function(a) return a:sum "c" end, { in_axes = "b" })(x)
  lu.assertStrContains(tostring(out), "f32[b=4, t=3]")
  same(out, y / 1, "outside")
  -- the name is one that the result has already
  local twice = dc.vmap(function(a) return a:rename { [1] = "b" } end)(dc.ones "f32[b=2, 3]")
  lu.assertStrContains(tostring(twice), "f32[2, b=3]")
  -- before the dim of this name
  local before = dc.vmap(function(a) return a end, { out_axes = "c" })(dc.ones "f32[b=2, t=3, c=4]")
  lu.assertStrContains(tostring(before), "f32[t=3, b=2, c=4]")
end

function TestAxes:test_false_and_size()
  local x, one = floats("f32[3, 2]", 1), floats("f32[2]", 2)
  local f = dc.vmap(function(a, b) return a * b, b:exp() end, { in_axes = { 1, false }, out_axes = { 1, false } })
  local y, e = f(x, one)
  same(y, x * one, "rows")
  same(e, one:exp(), "as it is")
  y, e = dc.fn("f(x: f32[3, 2], one: f32[2]) -> f32[3, 2], f32[2]", f)(x, one)
  same(y, x * one, "rows")
  same(e, one:exp(), "as it is")
  local many = dc.vmap(function(b) return b * 2 end, { in_axes = false, size = 4 })
  same(many(one), dc.stack({ one * 2, one * 2, one * 2, one * 2 }, 1), "size")
  same(typed(many, { one }, { many(one) })(one), many(one), "size")
end

function TestAxes:test_records_numbers_and_other_values()
  local x, y = floats("f32[3, 2]", 1), floats("f32[2, 3]", 2)
  local function f(r, k, name, list)
    lu.assertEquals(name, "a name")
    return { a = r.x * k, b = { r.y + list[1], 7 } }
  end
  local mapped = dc.vmap(f, { in_axes = { { x = 1, y = 2 }, [4] = false }, out_axes = { { a = 2 } } })
  local function flat(...)
    local r = mapped({ x = (select(1, ...)), y = (select(2, ...)) }, 3, "a name", { (select(3, ...)) })
    return r.a, r.b[1], r.b[2]
  end
  local z = floats("f32[2]", 3)
  local want = { (x * 3):transpose(1, 2), y:transpose(1, 2) + z, dc.full("f32[3]", 7) }
  for _, g in ipairs { flat, typed(flat, { x, y, z }, want) } do
    local r = table.pack(g(x, y, z))
    for i = 1, 3 do
      same(r[i], want[i], "record")
    end
  end
end

function TestAxes:test_no_rows()
  local f = dc.fn("f(x: f32[0, 3]) -> f32[0], f32[0, 3]", function(x)
    return dc.vmap(function(a) return a:sum(), a:exp() end)(x)
  end)
  local s, e = f(dc.zeros "f32[0, 3]")
  lu.assertEquals({ s.shape, e.shape }, { { 0 }, { 0, 3 } })
end

-- ---- nesting ----

TestNesting = {}

function TestNesting:test_vmap_in_vmap()
  local x, y = floats("f32[3, 2]", 1), floats("f32[4, 2]", 2)
  local function outer(a, b)
    return dc.vmap(function(p)
      return dc.vmap(function(q) return (p * q):sum() end)(b)
    end)(a)
  end
  local want = x:matmul(y:transpose(1, 2))
  same(outer(x, y), want, "outer product")
  same(typed(outer, { x, y }, { want })(x, y), want, "outer product")
end

function TestNesting:test_scans()
  local xs, w = floats("f32[3, 4, 2]", 1), floats("f32[2, 2]", 2)
  local function run(x) -- a recurrence
    return dc.scan(function(c, e) c = (c:matmul(w) + e):tanh() return c, c:sum() end, dc.zeros "f32[2]", x)
  end
  check("vmap of scan", run, { 1 }, xs)
  local function steps(all) -- a scan of vmap
    return dc.scan(function(c, e)
      c = dc.vmap(function(h, a) return (h:matmul(w) + a):tanh() end)(c, e)
      return c, c:sum(2)
    end, dc.zeros "f32[4, 2]", all)
  end
  local c, ys = steps(xs)
  local ic, iys = typed(steps, { xs }, { c, ys })(xs)
  same(ic, c, "scan of vmap")
  same(iys, ys, "scan of vmap")
end

function TestNesting:test_loops_that_end_at_different_rows()
  check("while", function(x)
    return dc.loop(function(c) return c.x:lt(100) end, function(c) return { x = c.x * 2, n = c.n + 1 } end,
      { x = x, n = dc.zeros "i32[]" }, { max = 50 }).n
  end, { 1 }, dc.tensor { 1, 7, 200, 30 })
  check("fori", function(n, x)
    return dc.fori(n, function(_, c) return c * x end, 1, { max = 9 })
  end, { 1, 1 }, dc.tensor({ 0, 3, 1, 9 }, "i32[4]"), dc.tensor { 2, 2, 3, 1 })
end

function TestNesting:test_branches()
  local w = floats("f32[3]", 1)
  check("cond", function(x, flag)
    local y = dc.cond(x:sum():gt(0), function(a) return (a * w):exp() end, function(a) return a - w end, x)
    return y, dc.cond(flag, function() return y:sum() end, function() return 0 end)
  end, { 1, false }, floats("f32[6, 3]", 2), dc.full("bool[]", true))
end

function TestNesting:test_typed_functions_inside()
  local inner = dc.fn("inner(x: f32[k]) -> f32[]", function(x) return (x * x):sum() end)
  check("a typed function", function(x) return inner(x) end, { 1 }, floats("f32[4, 3]", 1))
  check("a typed function itself", inner, { 2 }, floats("f32[4, 3]", 1))
end

-- ---- gradients ----

TestGradients = {}

local function mlp(seed)
  nn.init.seed = seed
  return nn.Sequential { nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 4) }
end

function TestGradients:test_per_sample()
  local net = mlp(1)
  local params = net:parameters()
  local xs, ys = floats("f32[6, 3]", 1), dc.tensor({ 0, 1, 2, 3, 1, 0 }, "i32[6]")
  local function of_one(x, y)
    return table.unpack(dc.grad(nn.cross_entropy(net(x:reshape(1, 3)), y:reshape(1)), params))
  end
  check("per-sample gradients", of_one, { 1, 1 }, xs, ys)
end

function TestGradients:test_parameters_read_before_and_captured_values()
  local w = dc.param("f32[3]", floats("f32[3]", 1))
  local x = floats("f32[5, 3]", 2)
  local function f(xs, k)
    local u = w * k -- outside, and its gradient flows through it
    return dc.vmap(function(a)
      local gw, gk = table.unpack(dc.grad((a * u):tanh():sum() + (w * w):sum(), { w, k }))
      return gw, gk
    end)(xs)
  end
  local k = dc.full("f32[]", 0.5)
  local gw, gk = {}, {}
  for i = 1, 5 do
    local kk = k:watch()
    local g = dc.grad((x[i] * (w * kk)):tanh():sum() + (w * w):sum(), { w, kk })
    gw[i], gk[i] = g[1], g[2]
  end
  local want = { dc.stack(gw, 1), dc.stack(gk, 1) }
  local got = table.pack(typed(f, { x, k }, want)(x, k))
  same(got[1], want[1], "gradients for w")
  same(got[2], want[2], "gradients for k")
end

-- In loops as well: what was made of a cell before is part of the gradient for it.
function TestGradients:test_in_loops()
  local w = dc.param("f32[2]", dc.tensor { 1, 2 })
  local function f(xs)
    local u = w * 3
    return dc.map(function(x)
      local inner = dc.map(function(k) return dc.grad((u * x + w * x * k):sum(), w) end, dc.tensor { 1, 2 })
      return dc.grad((u * x * x + w * x):sum(), w) + inner:sum(1)
    end, xs)
  end
  local want = f(dc.tensor { 1, 10 })
  lu.assertEquals(want:totable(), { { 13, 13 }, { 400, 400 } })
  same(typed(f, { dc.ones "f32[2]" }, { want })(dc.tensor { 1, 10 }), want, "in a loop")
end

function TestGradients:test_through_vmap()
  local net = mlp(2)
  local params = net:parameters()
  local xs = floats("f32[6, 3]", 1)
  local function by_vmap(x)
    return table.unpack(dc.grad(dc.vmap(function(a) return net(a):square():sum() end)(x):mean(), params))
  end
  local function at_once(x)
    return table.unpack(dc.grad(net(x):square():sum(2):mean(), params))
  end
  local want = table.pack(at_once(xs))
  for _, f in ipairs { by_vmap, typed(by_vmap, { xs }, want) } do
    for i, g in ipairs(table.pack(f(xs))) do
      same(g, want[i], "gradient of a mean over rows")
    end
  end
end

function TestGradients:test_of_second_order()
  local x = floats("f32[4, 3]", 1)
  local function of_row(a)
    a = a:watch()
    local g = dc.grad((a * a * a):sum(), a)
    return dc.grad((g * g):sum(), a)
  end
  check("a gradient of a gradient", of_row, { 1 }, x)
  local function outer(xs)
    local g = dc.vmap(function(a) return dc.grad((a:tanh() * a):sum(), a) end)(xs)
    return dc.grad(g:square():sum(), xs)
  end
  local want = dc.fn("f(xs: f32[4, 3]) -> f32[4, 3]", function(xs)
    return dc.grad(dc.grad((xs:tanh() * xs):sum(), xs):square():sum(), xs)
  end)(x)
  same(typed(outer, { x }, { want })(x), want, "through the rows")
end

function TestGradients:test_jacobian()
  local w = floats("f32[3, 3]", 1)
  local function jacobian(x)
    return dc.vmap(function(e) return dc.grad((x:matmul(w):tanh() * e):sum(), x) end)(dc.eye "f32[3, 3]")
  end
  local x = floats("f32[3]", 2)
  local y = x:matmul(w):tanh()
  local want = w:transpose(1, 2) * (1 - y * y):reshape(3, 1)
  same(typed(jacobian, { x }, { want })(x), want, "jacobian")
end

-- Inside typed functions only; the rows are taken one by one there.
function TestGradients:test_given_and_computed_again()
  local x, y = floats("f32[4, 3]", 1), floats("f32[4, 3]", 2)
  local function custom(a)
    a = a:watch()
    local square = dc.custom_grad(function(v) return v * v end, function(dy, _, v) return dy * v * 3 end)
    local s = square(a)
    return s, dc.grad(s:sum(), a)
  end
  local function again(a, b)
    a = a:watch()
    return dc.grad(dc.remat(function(v) return (v * b):tanh():sum() end)(a), a)
  end
  for name, f in pairs { custom_grad = custom, remat = again } do
    local function rows(u, v)
      return table.unpack(by_loop(f, { 1, 1 }, { u, v }))
    end
    local like = name == "remat" and { x } or { x, x }
    local want = table.pack(typed(rows, { x, y }, like)(x, y))
    for i, g in ipairs(table.pack(typed(dc.vmap(f), { x, y }, like)(x, y))) do
      same(g, want[i], name)
    end
  end
  -- and the gradient through the rows
  local function slope(f)
    return typed(function(u, v)
      local s = f(u, v)
      return dc.grad((s * v):sum(), u)
    end, { x, y }, { x })(x, y)
  end
  local square = dc.custom_grad(function(v) return v * v end, function(dy, _, v) return dy * v * 3 end)
  same(slope(dc.vmap(function(a) return square(a) end)), 3 * x * y, "custom_grad, through the rows")
  local remat = dc.remat(function(v) return v * v end)
  same(slope(dc.vmap(function(a) return remat(a) end)), 2 * x * y, "remat, through the rows")
end

-- ---- layers ----

TestLayersOverRows = {}

function TestLayersOverRows:test_layers()
  local image, row_of = floats("f32[3, 2, 4, 6, 6]", 1), floats("f32[5, 8]", 2)
  local ids = dc.randint("i32[5, 7]", { high = 10, seed = 3 })
  for name, case in pairs {
    Linear = { nn.Linear(8, 3), row_of }, LayerNorm = { nn.LayerNorm(8), row_of }, RMSNorm = { nn.RMSNorm(8), row_of },
    Conv2d = { nn.Conv2d(4, 3, 3, { padding = 1, stride = 2 }), image }, MaxPool2d = { nn.MaxPool2d(2), image },
    AvgPool2d = { nn.AvgPool2d(2), image }, Embedding = { nn.Embedding(10, 4), ids }, GELU = { nn.GELU(), row_of },
    ELU = { nn.ELU(), row_of }, LeakyReLU = { nn.LeakyReLU(), row_of }, Softmax = { nn.Softmax(1), row_of },
    Flatten = { nn.Flatten(), image },
  } do
    check(name, function(x) return case[1](x) end, { 1 }, case[2])
    check(name .. " itself", case[1], { 1 }, case[2])
  end
  local bn = nn.BatchNorm2d(4)
  bn:eval()
  check("BatchNorm2d", function(x) return bn(x) end, { 1 }, image)
end

function TestLayersOverRows:test_losses()
  local logits, labels = floats("f32[5, 3, 4]", 1), dc.randint("i32[5, 3]", { high = 4, seed = 2 })
  check("cross_entropy", function(x, y) return nn.cross_entropy(x, y) end, { 1, 1 }, logits, labels)
  check("cross_entropy of the same labels", function(x, y) return nn.cross_entropy(x, y) end, { 1, false }, logits,
    labels[1])
  check("mse_loss", function(x, y) return nn.mse_loss(x, y) end, { 1, false }, logits, logits[1])
  check("huber_loss", function(x, y) return nn.huber_loss(x, y) end, { 1, false }, logits, logits[1])
end

-- Several nets at once: their parameters are arguments.
function TestLayersOverRows:test_ensemble()
  local w, x = floats("f32[7, 3, 2]", 1), floats("f32[4, 3]", 2)
  check("an ensemble", function(m, a) return a:matmul(m):relu():sum() end, { 1, false }, w, x)
end

-- ---- what else a function does ----

TestEffects = {}

function TestEffects:test_random_numbers()
  local function draw(x) return dc.vmap(function(a) return a + dc.rand "f32[4]" end)(x) end
  local f = dc.fn("f(x: f32[5]) -> f32[5, 4]", draw)
  dc.seed(1)
  local a, b = f(dc.zeros "f32[5]"), f(dc.zeros "f32[5]")
  local seen = {}
  for _, t in ipairs { a, b } do
    for _, r in ipairs(t:totable()) do
      for _, v in ipairs(r) do
        lu.assertNil(seen[v])
        seen[v] = true
      end
    end
  end
  dc.seed(1)
  lu.assertEquals(f(dc.zeros "f32[5]"):totable(), a:totable())
  -- of the same loop
  local g = dc.fn("f(x: f32[5]) -> f32[5, 4]", function(x)
    return dc.map(function(e) return e + dc.rand "f32[4]" end, x)
  end)
  dc.seed(1)
  lu.assertEquals(g(dc.zeros "f32[5]"):totable(), a:totable())
  -- rows differ without an argument, and in nested ones
  local two = dc.vmap(function() return dc.randn "f32[]" end, { size = 2 })
  local h = dc.fn("f() -> f32[3, 2]", function() return dc.vmap(function() return two() end, { size = 3 })() end)
  local all = {}
  for _, r in ipairs(h():totable()) do
    for _, v in ipairs(r) do
      lu.assertNil(all[v])
      all[v] = true
    end
  end
  local drop = nn.Dropout(0.5)
  local d = dc.fn("f(x: f32[20, 8]) -> f32[20, 8]", dc.vmap(function(e) return drop(e) end))
  local rows = {}
  for _, r in ipairs(d(dc.ones "f32[20, 8]"):totable()) do
    rows[table.concat(r, " ")] = true
  end
  lu.assertTrue(next(rows, next(rows)) ~= nil)
end

local function message(f, ...)
  local ok, err = pcall(f, ...)
  lu.assertFalse(ok)
  return tostring(err)
end

function TestEffects:test_checks_of_data()
  local t = floats("f32[4, 2]", 1)
  local function rows(ids) return dc.vmap(function(i) return t:take(i) end)(ids) end
  local f = dc.fn("f(ids: i32[b=3, 2]) -> f32[b=3, 2, 2]", rows)
  local good = dc.tensor({ { 0, 1 }, { 2, 3 }, { 3, 0 } }, "i32[b=3, 2]")
  same(f(good), t:take(good), "take")
  local bad = dc.tensor({ { 0, 1 }, { 2, 9 }, { -7, 0 } }, "i32[b=3, 2]")
  local text = message(f, bad)
  lu.assertStrContains(text, "9")
  lu.assertStrContains(text, "[2, 2]")
  lu.assertStrContains(text, "i32[b=3, 2]")
  lu.assertStrContains(message(rows, bad), "9")
  same(f(good), t:take(good), "take, again")
  local loss = dc.fn("f(x: f32[3, 4], y: i32[3]) -> f32[3]", function(x, y)
    return dc.vmap(function(a, l) return nn.cross_entropy(a:reshape(1, 4), l:reshape(1)) end)(x, y)
  end)
  loss(dc.zeros "f32[3, 4]", dc.tensor({ 0, 1, 3 }, "i32[3]"))
  text = message(loss, dc.zeros "f32[3, 4]", dc.tensor({ 0, 1, 4 }, "i32[3]"))
  lu.assertStrContains(text, "4")
  lu.assertStrContains(text, "[3, 1]")
  -- in a loop in it, and in one around it
  local nested = dc.fn("f(ids: i32[3, 2]) -> f32[3, 2, 2]", function(ids)
    return dc.vmap(function(i) return dc.map(function(k) return t:take(k) end, i) end)(ids)
  end)
  nested(good)
  lu.assertStrContains(message(nested, bad), "9")
  local around = dc.fn("f(ids: i32[3, 2]) -> f32[3, 2, 2]", function(ids)
    return dc.map(function(i) return dc.vmap(function(k) return t:take(k) end)(i) end, ids)
  end)
  around(good)
  lu.assertStrContains(message(around, bad), "9")
end

local function printed(f, ...)
  local lines, old = {}, print
  _G.print = function(...)
    local list = {}
    for i = 1, select("#", ...) do
      list[i] = tostring((select(i, ...)))
    end
    lines[#lines + 1] = table.concat(list, " ")
  end
  local ok, err = pcall(f, ...)
  _G.print = old
  lu.assertTrue(ok, tostring(err))
  return lines
end

function TestEffects:test_print()
  local f = dc.fn("f(x: f32[3]) -> f32[3]", function(x)
    return dc.vmap(function(a)
      dc.print("a", a, a.dtype)
      return a * 2
    end)(x)
  end)
  local lines = printed(f, dc.tensor { 1, 2, 3 })
  lu.assertEquals(#lines, 1)
  lu.assertStrContains(lines[1], "1.0  2.0  3.0")
  -- in a loop: each iteration over all rows
  local g = dc.fn("f(x: f32[2, 3]) -> f32[2]", function(x)
    return dc.vmap(function(a)
      return (dc.scan(function(c, e)
        dc.print(e)
        return c + e
      end, 0, a))
    end)(x)
  end)
  lines = printed(g, dc.tensor { { 1, 2, 3 }, { 4, 5, 6 } })
  lu.assertEquals(#lines, 3)
  lu.assertStrContains(lines[2], "2.0  5.0")
end

function TestEffects:test_setting_a_cell()
  local count = dc.state("f32[]", 0)
  local function f(x)
    return dc.vmap(function(a)
      count:set(count + a)
      return a
    end)(x)
  end
  for _, g in ipairs { f, function(x) return dc.fn("f(x: f32[n]) -> f32[n]", f)(x) end } do
    local text = message(g, dc.ones "f32[3]")
    lu.assertStrContains(text, "sets")
    lu.assertStrContains(text, "return the value")
  end
  lu.assertEquals(count:item(), 0)
  local step = dc.fn("step(x: f32[]) -> f32[]", function(x)
    count:set(x)
    return x
  end)
  lu.assertStrContains(message(dc.vmap(step), dc.ones "f32[3]"), "sets")
  lu.assertEquals(count:item(), 0)
  count:set(3) -- afterwards all is as it was
  lu.assertEquals(count:item(), 3)
  -- a cell that is set before and after
  local g = dc.fn("f(x: f32[3]) -> f32[3]", function(x)
    count:set(2)
    local y = dc.vmap(function(a) return a * count end)(x)
    count:set(count + y:sum())
    return y
  end)
  lu.assertEquals(g(dc.tensor { 1, 2, 3 }):totable(), { 2, 4, 6 })
  lu.assertEquals(count:item(), 14)
end

function TestEffects:test_an_error_in_the_function()
  local text = message(dc.fn, "f(x: f32[3, 2]) -> f32[3, 2]", function(x)
    return dc.vmap(function(a) return a:matmul(dc.ones "f32[3, 3]") end)(x)
  end)
  lu.assertStrContains(text, "matmul")
  lu.assertStrContains(text, "test_vmap.lua")
  local ok = dc.fn("f(x: f32[3, 2]) -> f32[3, 2]", function(x)
    local good = pcall(dc.vmap(function(a) return a:matmul(dc.ones "f32[3, 3]") end), x)
    lu.assertFalse(good)
    return dc.vmap(function(a) return a * 2 end)(x)
  end)
  lu.assertEquals(ok(dc.ones "f32[3, 2]"):sum():item(), 12)
end


