-- Elements that a mask selects, one behind the other; counts of values. Their annotations are in api/indexing.lua.
--
-- How many elements there will be is data, and the size of a result is not: so results have room for a bound, and a
-- count tells how many of them are there.

local dc = require "deepc"
local _, core = ...
require "deepc.indexing"
require "deepc.search"

local counting = {}

local describe, search = core.describe, core.search

local function fail(row, op, hint, text, ...)
  core.fail(row, op, text:format(...), hint)
end

-- ---- compaction ----

local function check_mask(op, mask)
  core.check_tensor(op, mask, "mask")
  if mask.dtype ~= "bool" then
    core.fail("DTYPE", op, ("mask is %s, bool is needed"):format(describe(mask)),
      "mask:ne(0) is true where it is not 0", "mask", mask)
  end
end

-- The sizes of x behind those of the mask, which are its first ones.
local function rest_of(op, x, mask)
  local a, b, rest = x.shape, mask.shape, {}
  local fits = #b > 0 and #b <= #a
  for i = 1, #b do
    fits = fits and a[i] == b[i]
  end
  if not fits then
    core.fail("DIMS", op, ("mask is %s; it has the sizes of the first axes of %s"):format(describe(mask), describe(x)),
      nil, "x", x, "mask", mask)
  end
  for i = #b + 1, #a do
    rest[#rest + 1] = a[i]
  end
  return rest
end

local function is_count(n)
  return math.type(n) == "integer" and n >= 0 or core.is_size(n)
end

-- The bound, and whether elements beyond it are dropped.
local function read_bound(op, options, size)
  core.options(op, options, "bound", "fill", "more")
  options = options or {}
  local bound, more = size, options.more
  if options.bound ~= nil then
    bound = options.bound
  end
  if not is_count(bound) then
    fail("ARG", op, nil, "bound is a whole number of elements, not %s", core.shown(bound))
  elseif more ~= nil and more ~= "drop" then
    fail("ARG", op, nil, 'more is "drop", or left out for an error, not %s', core.shown(more))
  end
  return bound, more == "drop", bound ~= size
end

-- Rows of x where the mask, of one axis, is true; and how many. Every row is put at the next place that is free, so
-- that a row that is not selected is overwritten by the next one that is: no branch depends on the mask. What is behind
-- the last one is filled in the end.
function core.compacted(op, x, mask, options, fill)
  local size = mask.shape[1]
  local bound, drop, smaller = read_bound(op, options, size)
  local shape = x.shape
  shape[1] = bound
  local start = dc.full(x.dtype .. "[]", fill):expand(shape)
  if size == 0 then
    return start, dc.zeros "i32[]"
  end
  local running = mask:cumsum(1)
  local count = running[-1]
  if smaller and not drop then
    core.check_room(count, bound, op)
  elseif smaller then
    count = dc.minimum(count, core.is_size(bound) and bound:cast "i32" or bound)
  end
  if bound == 0 then
    return start, count
  end
  local place = running - mask:cast "i32"
  if bound == size and not core.is_size(bound) then
    place = place:clamp(0, bound - 1) -- where they are, as kernels then see
  end
  local there, wide = dc.iota(bound):lt(count), { bound }
  for i = 2, #shape do
    wide[i] = 1
  end
  return dc.where(there:reshape(wide), core.place(op, "set", start, place, x, 1, 0), start), count
end

local compacted = core.compacted

function counting.compact(x, mask, options)
  local op = "compact"
  core.check_tensor(op, x)
  check_mask(op, mask)
  rest_of(op, x, mask)
  local n = #mask.shape
  local fill = options and type(options) == "table" and options.fill
  if fill == nil or fill == false and x.dtype ~= "bool" then
    fill = x.dtype ~= "bool" and 0
  end
  local y, count = compacted(op, n > 1 and x:flatten(1, n) or x, mask:flatten(), options, fill)
  return y, count
end

function counting.nonzero(x, options)
  local op = "nonzero"
  core.check_tensor(op, x)
  local shape = x.shape
  if #shape == 0 then
    core.fail("ARG", op, "x has no axis, so there are no positions", ":ne(0) tells whether it is 0", "x", x)
  end
  local mask = (x.dtype == "bool" and x or x:ne(0)):flatten()
  local at, count = compacted(op, dc.iota(mask.shape[1]), mask, options, 0)
  local fill = options and options.fill
  if fill == nil then
    fill = -1
  end
  local there = dc.iota(at.shape[1]):lt(count)
  local columns = {}
  for i = #shape, 1, -1 do
    columns[i] = dc.where(there, i > 1 and at % shape[i] or at, fill)
    at = i > 1 and at // shape[i] or at
  end
  return dc.stack(columns, 2), count
end

-- ---- counts ----

local function check_bins(op, what, n)
  if not (math.type(n) == "integer" and n >= 1) then
    fail("ARG", op, n == nil and "results have a size that is known before the data: { bins = 10 } counts 0 to 9"
      or nil, "%s is a positive integer, not %s", what, core.shown(n))
  end
end

-- One axis of weights, or nil.
local function read_weights(op, x, options)
  local w = options and options.weights
  if w == nil then
    return nil
  end
  core.check_tensor(op, w, "weights")
  if core.sizes(w.shape) ~= core.sizes(x.shape) then
    core.fail("DIMS", op, ("weights are %s, one for each element of %s is needed"):format(describe(w), describe(x)),
      nil, "x", x, "weights", w)
  end
  return w:flatten()
end

local function flat(x)
  return #x.shape == 0 and x:reshape(1) or x:flatten()
end

function counting.bincount(x, options)
  local op = "bincount"
  core.options(op, options, "bins", "weights")
  local n = options and options.bins
  check_bins(op, "bins", n)
  x = core.index(x, op)
  local w = read_weights(op, x, options)
  local start = dc.full((w and w.dtype or "i32") .. "[]", 0):expand { n }
  x = core.checked_index(op, x, start, 1)
  local y = core.place(op, "add", start, flat(x), w or dc.full("i32[]", 1), 1, 0)
  return y
end

-- ---- histograms ----

local short = { bool = true, i8 = true, i16 = true, u8 = true, u16 = true, f16 = true, bf16 = true }

-- In floats that hold every value.
local function in_floats(x)
  if short[x.dtype] then
    return x:cast "f32"
  end
  return x.dtype:match "^f" and x or x:cast "f64"
end

local function read_range(op, x, range)
  if range == nil then
    -- of what is finite; 0 to 0 where nothing is
    local finite = x:isfinite()
    local some = finite:any()
    local lo = dc.where(some, dc.where(finite, x, math.huge):min(), 0)
    local hi = dc.where(some, dc.where(finite, x, -math.huge):max(), 0)
    local same = lo:eq(hi)
    return dc.where(same, lo - 0.5, lo), dc.where(same, hi + 0.5, hi)
  end
  local lo, hi = table.unpack(type(range) == "table" and range or {})
  local both = type(lo) == "number" and type(hi) == "number" and #range == 2
  if not both or lo > hi or lo - hi ~= lo - hi or hi - lo == math.huge then
    fail("ARG", op, nil, "range is { low, high }, two numbers, the lower one first, not %s",
      type(range) == "table" and ("{ %s, %s }"):format(core.shown(lo), core.shown(hi)) or core.shown(range))
  elseif lo == hi then
    return lo - 0.5, hi + 0.5
  end
  return lo, hi
end

-- n + 1 numbers from lo to hi.
local function even_edges(x, lo, hi, n)
  if type(lo) == "number" then
    local list, step = {}, (hi - lo) / n
    for i = 1, n do
      list[i] = lo + (i - 1) * step
    end
    list[n + 1] = hi
    return (core.anywhere(dc.tensor(list, x.dtype)))
  end
  local at = dc.iota(("%s[%d]"):format(x.dtype, n + 1))
  return dc.where(at:eq(n), hi, at * ((hi - lo) / n) + lo)
end

-- The bin of each element as NumPy finds it: by a quotient, which is then moved by one where an edge says so.
local function even_bins(op, x, lo, hi, edges, n)
  local guess = ((x - lo) / (hi - lo) * n):cast "i32":clamp(0, n - 1)
  local low, high = core.pick(op, edges, guess, 1, 0), core.pick(op, edges, guess + 1, 1, 0)
  local up = x:ge(high) & guess:ne(n - 1)
  local k = dc.where(x:lt(low), guess - 1, dc.where(up, guess + 1, guess))
  return dc.where(x:ge(lo) & x:le(hi), k, n)
end

-- The same by edges of any distance; the last bin has both of its edges.
local function bins_between(op, x, edges, n)
  local k = search(op, edges, x, true) - 1
  local last = core.pick(op, edges, dc.full("i32[]", n), 1, 0)
  k = dc.where(x:eq(last), n - 1, k)
  return dc.where(k:lt(0), n, k)
end

local function read_edges(op, x, bins)
  local edges = bins
  if type(bins) == "table" and not core.kind(bins) then
    edges = core.anywhere(dc.tensor(bins, x.dtype))
  end
  if not core.kind(edges) then
    fail("ARG", op, nil, "bins is a positive integer, or edges that ascend, not %s", core.shown(bins))
  elseif #edges.shape ~= 1 or core.is_size(edges.shape[1]) or edges.shape[1] < 2 then
    core.fail("ARG", op, ("edges are %s; two or more of one axis are needed"):format(describe(edges)), nil, "edges",
      edges)
  end
  edges = in_floats(edges)
  return edges.dtype == x.dtype and edges or edges:cast(x.dtype)
end

function counting.histogram(x, bins, options)
  local op = "histogram"
  core.options(op, options, "range", "weights", "density")
  core.check_tensor(op, x)
  local w = read_weights(op, x, options)
  local density = options and options.density ~= nil and core.unless_false(op, options, "density")
  x = in_floats(flat(x))
  local edges, place
  local n = bins
  if bins == nil then
    n = 10
  end
  if type(n) == "number" then
    check_bins(op, "bins", n)
    local lo, hi = read_range(op, x, options and options.range)
    edges = even_edges(x, lo, hi, n)
    place = even_bins(op, x, lo, hi, edges, n)
  elseif options and options.range ~= nil then
    fail("ARG", op, nil, "edges say what the range is; it is given with a number of bins")
  else
    edges = read_edges(op, x, n)
    n = edges.shape[1] - 1
    place = bins_between(op, x, edges, n)
  end
  local counts = core.place(op, "add", dc.full((w and w.dtype or "i32") .. "[]", 0):expand { n }, place,
    w or dc.full("i32[]", 1), 1, 0)
  if density then
    counts = counts:cast(x.dtype)
    counts = counts / (counts:sum() * (edges[{ { 2, n + 1 } }] - edges[{ { 1, n } }]))
  end
  return counts, edges
end

-- ---- membership ----

local FEW = 16 -- values that each element is compared with; more are sorted

function counting.isin(x, values, options)
  local op = "isin"
  core.options(op, options, "invert")
  core.check_tensor(op, x)
  if type(values) == "table" and not core.kind(values) then
    values = core.anywhere(dc.tensor(values, x.dtype))
  end
  core.check_tensor(op, values, "values")
  local invert = options and options.invert ~= nil and core.unless_false(op, options, "invert")
  local found
  values = flat(values)
  local n = values.shape[1]
  local _, most = 0, n
  if core.is_size(n) then
    _, most = core.size_range(n)
  end
  if most > FEW and values.dtype == x.dtype then
    local sorted = values:sort()
    found = core.pick(op, sorted, search(op, sorted, x, false), 1, 0):eq(x)
  else
    local wide = x.shape
    wide[#wide + 1] = 1
    found = x:reshape(wide):eq(values):any(-1)
  end
  return invert and ~found or found
end

return core.entries(counting)
