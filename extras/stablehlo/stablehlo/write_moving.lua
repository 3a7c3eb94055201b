-- Operations of deepc that move elements, reduce or order them, as operations of StableHLO.

local attributes = require "deepc.stablehlo.attributes"
local build = require "deepc.stablehlo.build"

local rows = {}

local all = build.all

local function range(from, to)
  local list = {}
  for i = from, to do
    list[#list + 1] = i
  end
  return list
end

-- ---- movement ------------------------------------------------------------------------------------

function rows.reshape(_, n, x)
  return x:reshape(n.shape)
end

function rows.permute(_, n, x)
  return x:transpose(n.attributes)
end

function rows.expand(_, n, x)
  return x:spread(range(0, #n.shape - 1), n.shape)
end

function rows.slice(w, n, x)
  local rank, starts, limits, steps = #n.shape, {}, {}, {}
  for i, size in ipairs(n.shape) do
    starts[i], steps[i] = n.attributes[i], n.attributes[rank + i]
    limits[i] = size == 0 and starts[i] or starts[i] + (size - 1) * steps[i] + 1
  end
  return w:one("slice", { x }, n.dtype, n.shape, { start_indices = starts, limit_indices = limits, strides = steps })
end

-- The elements of x at lo + p * step of a tensor of this shape that has the value elsewhere.
local function pad(w, x, value, lo, step, shape)
  local low, high, interior = {}, {}, {}
  for i, size in ipairs(shape) do
    local count = x.shape[i]
    low[i], interior[i] = lo[i], step[i] - 1
    high[i] = size - lo[i] - (count > 0 and (count - 1) * step[i] + 1 or 0)
  end
  return w:one("pad", { x, value }, x.dtype, shape,
    { edge_padding_low = low, edge_padding_high = high, interior_padding = interior })
end

function rows.pad(w, n, x)
  local rank, a = #n.shape, n.attributes
  local fill = require("deepc.stablehlo.write_simple").const(w,
    { dtype = n.dtype, shape = {}, attributes = { a[2 * rank + 1] } })
  return pad(w, x, fill, { table.unpack(a, 1, rank) }, { table.unpack(a, rank + 1, 2 * rank) }, n.shape)
end

local function axes_of(mask)
  local list = {}
  for axis = 0, 63 do
    if mask >> axis & 1 == 1 then
      list[#list + 1] = axis
    end
  end
  return list
end

function rows.flip(w, n, x)
  return w:one("reverse", { x }, n.dtype, n.shape, { dimensions = axes_of(n.attributes[1]) })
end

-- ---- reductions ----------------------------------------------------------------------------------

-- The identity of an operation.
local function identity(name, dtype)
  local bits = build.width(dtype)
  if name == "add" or name == "multiply" then
    return name == "add" and 0 or 1
  elseif dtype == "bool" then
    return name == "minimum"
  elseif build.is_float(dtype) then
    return name == "maximum" and -math.huge or math.huge
  elseif build.is_unsigned(dtype) then
    return name == "maximum" and 0 or bits == 64 and -1 or (1 << bits) - 1
  end
  local least = bits == 64 and math.mininteger or -(1 << bits - 1)
  return name == "maximum" and least or ~least
end

-- Sums and products of short floats are made in f32 and rounded once; f8e4m3fn has no infinity to begin with.
local function inside_type(name, dtype)
  local short = build.is_float(dtype) and build.width(dtype) < 32
  return short and (name == "add" or name == "multiply" or build.width(dtype) == 8) and "f32" or dtype
end

for op, name in pairs { sum = "add", prod = "multiply", max = "maximum", min = "minimum" } do
  rows[op] = function(_, n, x)
    local dtype = inside_type(name, n.dtype)
    return x:convert(dtype):reduce(name, axes_of(n.attributes[1]), identity(name, dtype)):convert(n.dtype)
  end
end

local run_kinds = { [0] = "add", "multiply", "maximum", "minimum" }

-- The elements up to each one, as a window as long as the axis.
function rows.running(w, n, x)
  local kind, reverse, behind = table.unpack(n.attributes)
  local name, rank = run_kinds[kind], #n.shape
  local axis, dtype = rank - behind, inside_type(name, n.dtype)
  local size = n.shape[axis]
  if size == 0 then
    return x:convert(n.dtype)
  end
  local window, padding = all(rank, 1), {}
  for i = 1, rank do
    padding[i] = { 0, 0 }
  end
  window[axis], padding[axis] = size, reverse ~= 0 and { 0, size - 1 } or { size - 1, 0 }
  return w:one("reduce_window", { x:convert(dtype), w:const(dtype, {}, identity(name, dtype)) }, dtype, n.shape,
    { window_dimensions = window, window_strides = all(rank, 1), base_dilations = all(rank, 1),
      window_dilations = all(rank, 1), padding = padding }, { w:combination(name, dtype) }):convert(n.dtype)
end

-- ---- parts at places that are data ---------------------------------------------------------------

-- Axes of [batch, before, own, after], of which x has one in the place of own.
local function gather_axes(x, index, axis, batches)
  local own = #index.shape - batches
  local offsets = range(batches, axis - 1)
  return table.move(range(axis + own, #x.shape - 2 + own), 1, #x.shape, #offsets + 1, offsets)
end

function rows.gather(w, n, x, index)
  local axis, batches = table.unpack(n.attributes)
  local sizes = table.move(x.shape, 1, #x.shape, 1, {})
  for i = 1, batches do
    sizes[i] = 1
  end
  sizes[axis + 1] = 1
  return w:one("gather", { x, index }, n.dtype, n.shape, { dimension_numbers = {
    offset_dims = gather_axes(x, index, axis, batches), collapsed_slice_dims = { axis },
    operand_batching_dims = range(0, batches - 1), start_indices_batching_dims = range(0, batches - 1),
    start_index_map = { axis }, index_vector_dim = #index.shape }, slice_sizes = sizes, indices_are_sorted = false })
end

for op, name in pairs { scatter = false, scatter_add = "add", scatter_mul = "multiply", scatter_max = "maximum",
  scatter_min = "minimum" } do
  rows[op] = function(w, n, x, index, updates)
    local axis, batches = table.unpack(n.attributes)
    local scalar = build.type(n.dtype)
    local body = name and w:combination(name, n.dtype) or w:region({ scalar, scalar }, function(_, b) return b end)
    return w:one("scatter", { x, index, updates }, n.dtype, n.shape, { scatter_dimension_numbers = {
      update_window_dims = gather_axes(x, index, axis, batches), inserted_window_dims = { axis },
      input_batching_dims = range(0, batches - 1), scatter_indices_batching_dims = range(0, batches - 1),
      scatter_dims_to_operand_dims = { axis }, index_vector_dim = #index.shape }, indices_are_sorted = false,
      unique_indices = false }, { body })
  end
end

-- ---- order ---------------------------------------------------------------------------------------

-- What floats are compared by: -0 is 0, and there is one NaN, which is the greatest in the order of all patterns.
local function key(x)
  local zero, nan = x.w:const(x.dtype, {}, 0), x.w:const(x.dtype, {}, { bits = attributes.nan[x.type.element] })
  return x:eq(zero):select(zero, x:ne(x):select(nan, x))
end

-- Sorts x along its last axis, with what goes with it.
local function sort(w, x, descending, others)
  local operands, types, scalars = { x, table.unpack(others) }, {}, {}
  for i, v in ipairs(operands) do
    types[i] = v.type
    scalars[2 * i - 1], scalars[2 * i] = build.type(v.dtype), build.type(v.dtype)
  end
  local comparator = w:region(scalars, function(a, b)
    if build.is_float(a.dtype) then
      a, b = key(a), key(b)
    end
    return a:compare(descending and "GT" or "LT", b, build.is_float(a.dtype) and "TOTALORDER" or nil)
  end)
  return w:op("sort", operands, types, { dimension = #x.shape - 1, is_stable = true }, { comparator })
end

function rows.sort(w, n, x)
  return (sort(w, x, n.attributes[1] ~= 0, {}))
end

local function order(w, x, descending)
  local _, places = sort(w, x, descending, { w:iota("i32", x.shape, #x.shape - 1) })
  return places
end

function rows.argsort(w, n, x)
  return order(w, x, n.attributes[1] ~= 0)
end

function rows.top_k(w, n, x)
  return order(w, x, n.attributes[2] ~= 0):part(#x.shape - 1, 0, n.attributes[1])
end

return rows
