-- Elements at integers that are data, what masks select, counts, search.
local dc = require "deepc"

local x33 = { "T[3, 4]" }
local rows = { "i64[2, 4]", values = { { 0, 2, 1, 1 }, { 2, 2, 0, 1 } } }
local columns = { "i64[3, 2]", values = { { 3, 0 }, { 1, 1 }, { 2, 0 } } }

-- Where what is there takes no part, PyTorch counts it among equal winners all the same, and shares their gradient: so
-- there it is none.
local function reduced(how, peer, self)
  return { ("scatter %s%s"):format(how, self and "" or " alone"), run = function(a)
    return a.x:scatter(a.i, a.v, 2, { reduce = how, include_self = self })
  end, peer = ("torch.scatter_reduce(x, 1, i, v, %q, include_self=%s)"):format(peer, self and "True" or "False"),
    args = { { x = x33, i = columns, v = "T[3, 2]" },
      { x = { "T[1, 4]", values = { self and { 0, 1, 2, 3 } or { 9, 8, 7, 6 } } },
        i = { "i64[1, 6]", values = { { 0, 1, 1, 2, 3, 3 } } },
        v = { "T[1, 6]", values = { { 5, 1, 1, 2, 4, -4 } } } } } }
end

local function segments(name, torch, fill)
  return { "segment_" .. name, run = function(a) return a.x["segment_" .. name](a.x, a.i, 4) end,
    peer = name == "sum" and "torch.zeros(4, 2, dtype=x.dtype).index_add(0, i, x)"
      or ("torch.full((4, 2), %s, dtype=x.dtype).index_reduce(0, i, x, %q, include_self=%s)"):format(fill, torch,
      name == "mean" and "False" or "True"),
    args = { { x = "T[5, 2]", i = { "i64[5]", values = { 0, 2, 2, 3, 0 } } } } }
end

local quantiles = { 0, 0.1, 0.5, 0.75, 1 }

local function quantile(how)
  return { "quantile " .. how, run = function(a)
    return { a.x:quantile(quantiles, { axis = 2, interpolation = how }), a.x:quantile(0.3, { interpolation = how }) }
  end, peer = ("(torch.quantile(x, torch.tensor([0, .1, .5, .75, 1], dtype=x.dtype), 1, interpolation=%q), " ..
    "torch.quantile(x, .3, interpolation=%q))"):format(how, how), args = { { x = "T[3, 5]" }, { x = "T[2, 7]" } } }
end

return {
  quantile "linear", quantile "lower", quantile "higher", quantile "nearest", quantile "midpoint",
  { "quantile beside NaN", run = function(a)
    return { a.x:quantile(0.5, 2), a.x:nanquantile({ 0.2, 0.5 }, 2), a.x:median(1), a.x:nanmedian(1) }
  end, numpy = "(np.quantile(x, .5, 1), np.nanquantile(x, [.2, .5], 1), np.median(x, 0), np.nanmedian(x, 0))",
    args = { { x = { "T[3, 4]", values = { { 5, 1, 7, 2 }, { 9, 3, 0 / 0, 4 }, { 0 / 0, 0 / 0, 0 / 0, 6 } } } } } },
  { "percentile of all, of several axes", run = function(a)
    return { a.x:percentile(40), a.x:median(), a.x:median { axis = { 1, 3 }, keep = true } }
  end, numpy = "tuple(np.asarray(r, x.dtype) for r in (np.percentile(x, 40), np.median(x), " ..
    "np.median(x, (0, 2), keepdims=True)))",
    args = { { x = "T[3, 2, 4]" } }, tol = { f32 = 5e-6 } }, -- NumPy's product is of f64
  { "kthvalue", run = function(a) return { a.x:kthvalue(2, 1) } end,
    peer = "r = torch.kthvalue(x, 2, 0); result = (r.values, r.indices.to(torch.int32))",
    args = { { x = "T[3, 5]" } } },
  { "mode", run = function(a) return { a.x:mode(2) } end,
    peer = "r = torch.mode(x, 1); result = (r.values, r.indices.to(torch.int32))", args = { { x = "T[3, 5]" },
      { x = { "T[4, 7]", values = { { 1, 3, 1, 3, 2, 3, 1 }, { 5, -1, -0.0, 0, 5, 2, 2 }, { 4, 4, 4, 4, 4, 4, 4 },
        { math.huge, -math.huge, 1, math.huge, -math.huge, -math.huge, 0 } } } } } },
  { "mode of integers", run = function(a)
    local y, at = a.x:mode(1)
    return { y, at, a.x:mode { axis = -1, keep = true } }
  end, dtypes = { "i32", "i64", "u8" }, peer = [[
r, s = torch.mode(x, 0), torch.mode(x, 2, keepdim=True)
result = (r.values, r.indices.to(torch.int32), s.values, s.indices.to(torch.int32))]],
    args = { { x = { "T[9, 3, 8]", high = 3 } } } },
  { "unique", dtypes = { "f32", "i32", "i64", "u8" }, run = function(a) return { a.x:unique() } end,
    numpy = [[
v, i, c = np.unique(x, return_inverse=True, return_counts=True)
pad = lambda a: np.concatenate([a, np.zeros(x.size - len(a), a.dtype)])
result = (pad(v), np.int32(len(v)), i.astype(np.int32).reshape(x.shape), pad(c.astype(np.int32)))]],
    args = { { x = { "T[2, 4]", values = { { 3, 1, 3, 2 }, { 1, 9, 9, 3 } } } } } },
  { "isin of many", dtypes = { "f32", "i64" }, run = function(a) return a.x:isin(a.v) end, peer = "torch.isin(x, v)",
    grad = false, args = { { x = { "T[4]", values = { 0, 1, 39, 99 } },
      v = { "T[20]", values = { 0, 39, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31, 33, 35, 37, 0 } } } } },
  { "gather axis 1", run = function(a) return a.x:gather(a.i, 1) end, peer = "torch.gather(x, 0, i)",
    args = { { x = x33, i = rows } } },
  { "gather axis 2", run = function(a) return a.x:gather(a.i, -1) end, peer = "torch.gather(x, 1, i)",
    args = { { x = x33, i = columns }, { x = x33, i = { "i64[3, 0]", values = { {}, {}, {} } } } } },
  { "gather of three axes", run = function(a) return a.x:gather(a.i, 2) end, peer = "torch.gather(x, 1, i)",
    args = { { x = "T[2, 3, 2]",
      i = { "i64[2, 2, 2]", values = { { { 0, 2 }, { 1, 1 } }, { { 2, 2 }, { 0, 1 } } } } } } },
  { "gather stretches", run = function(a) return a.x:gather(a.i, 2) end,
    numpy = "np.take_along_axis(x, i, 1)",
    args = { { x = "T[1, 3, 2]", i = { "i64[2, 2, 1]", values = { { { 0 }, { 2 } }, { { 1 }, { 1 } } } } } } },
  { "scatter", run = function(a) return a.x:scatter(a.i, a.v, 2) end, peer = "torch.scatter(x, 1, i, v)",
    args = { { x = x33, i = { "i64[3, 2]", values = { { 3, 0 }, { 1, 2 }, { 2, 0 } } }, v = "T[3, 2]" } } },
  { "scatter of a number", run = function(a) return a.x:scatter(a.i, 2.5, 1) end, peer = "torch.scatter(x, 0, i, 2.5)",
    args = { { x = x33, i = rows } } },
  { "scatter_add", run = function(a) return a.x:scatter_add(a.i, a.v, 1) end, peer = "torch.scatter_add(x, 0, i, v)",
    args = { { x = x33, i = rows, v = "T[2, 4]" } } },
  reduced("add", "sum", true), reduced("mul", "prod", true), reduced("max", "amax", true), reduced("min", "amin", true),
  reduced("mean", "mean", true), reduced("add", "sum", false), reduced("mul", "prod", false),
  reduced("max", "amax", false), reduced("min", "amin", false), reduced("mean", "mean", false),
  { "scatter of integers", dtypes = { "i32", "i64", "u8" }, run = function(a)
    return { a.x:scatter(a.i, a.v, 2, { reduce = "max" }), a.x:scatter(a.i, a.v, 2, { reduce = "mul" }) }
  end, peer = "(x.scatter_reduce(1, i, v, 'amax'), x.scatter_reduce(1, i, v, 'prod'))",
    args = { { x = x33, i = columns, v = "T[3, 2]" } } },
  { "index_add", run = function(a) return a.x:index_add(a.i, a.v, 1, { alpha = 2 }) end,
    peer = "x.index_add(0, i, v, alpha=2)",
    args = { { x = x33, i = { "i64[3]", values = { 2, 0, 2 } }, v = "T[3, 4]" } } },
  { "index_copy", run = function(a) return a.x:index_copy(a.i, a.v, 2) end, peer = "x.index_copy(1, i, v)",
    args = { { x = x33, i = { "i64[2]", values = { 2, 0 } }, v = "T[3, 2]" } } },
  { "index_fill", run = function(a) return a.x:index_fill(a.i, 7, 2) end, peer = "x.index_fill(1, i, 7)",
    args = { { x = x33, i = { "i64[2]", values = { 2, 0 } } } } },
  { "index_reduce", run = function(a)
    return { a.x:index_reduce(a.i, a.v, 1, { reduce = "mean" }),
      a.x:index_reduce(a.i, a.v, 1, { reduce = "max", include_self = false }) }
  end, peer = "(x.index_reduce(0, i, v, 'mean'), x.index_reduce(0, i, v, 'amax', include_self=False))",
    args = { { x = x33, i = { "i64[3]", values = { 2, 0, 2 } }, v = "T[3, 4]" } } },
  { "take_nd", run = function(a) return { a.x:take_nd { a.i, a.j }, a.x:take_nd { a.i } } end,
    peer = "(x[i, j], x[i])", args = { { x = "T[3, 4, 2]", i = { "i64[2, 1]", values = { { 2 }, { 0 } } },
      j = { "i64[3]", values = { 3, 3, 1 } } } } },
  { "gather_nd", run = function(a) return a.x:gather_nd(a.i) end, peer = "x[i[..., 0], i[..., 1]]",
    args = { { x = "T[3, 4, 2]", i = { "i64[3, 2]", values = { { 0, 1 }, { 2, 3 }, { 2, 3 } } } } } },
  { "put_nd", run = function(a)
    return { a.x:put_nd({ a.i, a.j }, a.v, { reduce = "add" }), a.x:scatter_nd(dc.stack({ a.j, a.i }, -1), 1) }
  end, peer = "(x.index_put((i, j), v, accumulate=True), x.index_put((j, i), torch.ones((), dtype=x.dtype)))",
    args = { { x = "T[4, 4]", i = { "i64[3]", values = { 2, 0, 2 } }, j = { "i64[3]", values = { 3, 1, 3 } },
      v = "T[3]" } } },
  segments("sum"), segments("max", "amax", "-float('inf')"), segments("min", "amin", "float('inf')"),
  segments("mean", "mean", "0."), segments("prod", "prod", "1."),
  { "compact", run = function(a) return { a.x:compact(a.m, { bound = 4, fill = -1 }) } end,
    peer = "(torch.cat([x[m], torch.full((4 - m.sum(),), -1., dtype=x.dtype)]), m.sum().to(torch.int32))",
    args = { { x = "T[2, 3]", m = { "bool[2, 3]", values = { { true, false, false }, { true, true, false } } } } } },
  { "compact of rows", run = function(a) return (a.x:compact(a.m)) end,
    peer = "torch.cat([x[m], torch.zeros_like(x[~m])])",
    args = { { x = "T[3, 2]", m = { "bool[3]", values = { true, false, true } } } } },
  { "nonzero", run = function(a) return (a.x:nonzero { bound = 3 }) end, peer = "torch.nonzero(x).to(torch.int32)",
    args = { { x = { "T[2, 3]", values = { { 0, 2, 0 }, { -1, 0, 0 / 0 } } } } }, grad = false },
  { "bincount", dtypes = { "i32", "u8" }, run = function(a) return a.x:bincount { bins = 6 } end,
    peer = "torch.bincount(x, minlength=6).to(torch.int32)", args = { { x = { "T[9]", high = 6 } }, { x = "T[0]" } } },
  { "bincount of weights", run = function(a) return a.i:bincount { bins = 6, weights = a.w } end,
    peer = "torch.zeros(6, dtype=w.dtype).scatter_add(0, i, w)",
    args = { { i = { "i64[9]", high = 6 }, w = "T[9]" } } },
  { "histogram", run = function(a) return { a.x:histogram(8, { range = { -2, 2 } }) } end,
    numpy = "h = np.histogram(x, 8, (-2, 2)); result = (h[0].astype(np.int32), h[1].astype(x.dtype))",
    args = { { x = "T[60]" },
      { x = { "T[10]", values = { -2, -1.5, -1, 0, 0.5, 1.999, 2, 2.001, 0 / 0, -math.huge } } } } },
  { "histogram between its ends", run = function(a) return (a.x:histogram(5)) end,
    numpy = "np.histogram(x, 5)[0].astype(np.int32)",
    args = { { x = "T[60]" }, { x = { "T[2]", values = { 3, 3 } } } } },
  { "histogram of edges", run = function(a) return (a.x:histogram({ -1, 0, 0.5, 3 }, { density = true })) end,
    numpy = "np.histogram(x, np.array([-1, 0, 0.5, 3], x.dtype), density=True)[0].astype(x.dtype)",
    args = { { x = "T[60]" } } },
  { "histogram of weights", run = function(a) return (a.x:histogram(4, { range = { -2, 2 }, weights = a.w })) end,
    numpy = "np.histogram(x, 4, (-2, 2), weights=w)[0]",
    args = { { x = "T[30]", w = "T[30]" } }, tol = { f32 = 1e-5 } },
  { "isin", run = function(a) return { a.x:isin(a.v), a.x:isin(a.v, { invert = true }) } end,
    peer = "(torch.isin(x, v), torch.isin(x, v, invert=True))",
    args = { { x = { "T[2, 3]", values = { { 1, 2, 3 }, { 4, 5, 6 } } }, v = { "T[2]", values = { 2, 5 } } } },
    grad = false },
  { "searchsorted", run = function(a) return { a.s:searchsorted(a.v), a.s:searchsorted(a.v, { right = true }) } end,
    numpy = "(np.searchsorted(s, v).astype(np.int32), np.searchsorted(s, v, 'right').astype(np.int32))",
    args = { { s = { "T[7]", values = { -1, 0, 0, 2, 5, math.huge, 0 / 0 } },
      v = { "T[10]", values = { -2, -1, 0, 1, 2, 5, 6, math.huge, 0 / 0, -math.huge } } }, { s = "T[0]", v = "T[2]" },
      { s = { "T[1]", values = { 1 } }, v = { "T[3]", values = { 0, 1, 2 } } } }, grad = false },
  { "searchsorted in rows", run = function(a) return a.s:searchsorted(a.v, { right = true }) end,
    peer = "torch.searchsorted(s, v, right=True, out_int32=True)", grad = false,
    args = { { s = { "T[2, 4]", values = { { 1, 2, 3, 4 }, { 0, 0, 2, 8 } } },
      v = { "T[2, 3]", values = { { 0, 3, 9 }, { 0, 1, 9 } } } } } },
  { "searchsorted of positions", run = function(a) return a.s:searchsorted(a.v, { sorter = a.p }) end,
    numpy = "np.searchsorted(s, v, sorter=p).astype(np.int32)", grad = false,
    args = { { s = { "T[3]", values = { 5, 1, 3 } }, p = { "i64[3]", values = { 1, 2, 0 } },
      v = { "T[3]", values = { 0, 3, 4 } } } } },
  { "bucketize, digitize", run = function(a)
    return { a.x:bucketize(a.e), a.x:bucketize(a.e, { right = true }), a.x:digitize(a.e),
      a.x:digitize(a.e, { right = true }), a.x:digitize(a.e:flip(1), { descending = true }),
      a.x:digitize(a.e:flip(1), { descending = true, right = true }) }
  end, numpy = [[result = tuple(np.asarray(r, np.int32) for r in (np.searchsorted(e, x), np.searchsorted(e, x, 'right'),
np.digitize(x, e), np.digitize(x, e, True), np.digitize(x, e[::-1]), np.digitize(x, e[::-1], True)))]],
    args = { { x = { "T[2, 3]", values = { { 0, 1, 1.5 }, { 2, 4, 9 } } }, e = { "T[3]", values = { 1, 2, 4 } } } },
    grad = false },
  { "interp", run = function(a) return { a.x:interp(a.p, a.f), a.x:interp(a.p, a.f, { left = -1, right = 9 }) } end,
    numpy = "(np.interp(x, p, f).astype(x.dtype), np.interp(x, p, f, -1, 9).astype(x.dtype))",
    args = { { x = { "T[7]", values = { -1, 0, 0.25, 1, 2.5, 4, 5 } },
      p = { "T[4]", values = { 0, 1, 2, 4 } }, f = "T[4]" },
      { x = { "T[3]", values = { 0, 1, 2 } }, p = { "T[1]", values = { 1 } }, f = "T[1]" } } },
}
