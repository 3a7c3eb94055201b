-- Operations of StableHLO that move elements: shapes, parts, gather and scatter.

local dc = require "deepc"
local elements = require "deepc.stablehlo.elements"
local shapes = require "deepc.stablehlo.shapes"
local _, core = ...

local rows = {}

-- ---- shapes --------------------------------------------------------------------------------------

rows["stablehlo.reshape"] = function(o, x)
  return shapes.reshape(x, o.types[1].shape)
end

rows["stablehlo.broadcast_in_dim"] = function(o, x)
  local v = o:number(x)
  local y
  if v ~= nil and x.dtype ~= "u64" then
    y = dc.full(o:type_text(), v)
    o.run.known[y] = v
  else
    y = shapes.spread(x, o.attributes.broadcast_dimensions or {}, o.types[1].shape)
  end
  return y
end

rows["stablehlo.broadcast"] = function(o, x)
  local dims = {}
  for i = 1, #x.shape do
    dims[i] = #o.types[1].shape - #x.shape + i - 1
  end
  return shapes.spread(x, dims, o.types[1].shape)
end

local function plus_one(list)
  local out = {}
  for i, v in ipairs(list) do
    out[i] = v + 1
  end
  return out
end

rows["stablehlo.transpose"] = function(o, x)
  local perm = plus_one(o.attributes.permutation)
  return #perm == 0 and x or x:permute(table.unpack(perm))
end

rows["stablehlo.reverse"] = function(o, x)
  local axes = plus_one(o.attributes.dimensions)
  return #axes == 0 and x or x:flip(axes)
end

rows["stablehlo.concatenate"] = function(o, ...)
  return dc.concat({ ... }, o.attributes.dimension + 1)
end

rows["stablehlo.slice"] = function(o, x)
  return shapes.slice(x, o.attributes.start_indices, o.attributes.limit_indices, o.attributes.strides)
end

rows["stablehlo.pad"] = function(o, x, value)
  local a = o.attributes
  return shapes.pad(x, a.edge_padding_low, a.edge_padding_high, a.interior_padding, value, o:number(value))
end

-- ---- parts at places that are data ---------------------------------------------------------------

local narrow <const> = { i8 = true, i16 = true, u8 = true, u16 = true } -- may not hold the size of an axis

-- Starts as i32, so that `size` elements from each on lie in an axis of n.
local function clamped(start, n, size)
  start = narrow[start.dtype] and start:cast "i32" or start
  return start:clamp(0, n - size):cast "i32"
end

-- Places in a flat x are i32.
local function check_flat(o, x)
  if elements.count(x.shape) >= 1 << 31 then
    o:fail("places in a tensor of 2^31 elements and more are not supported")
  end
end

rows["stablehlo.dynamic_slice"] = function(o, x, ...)
  local starts, sizes = { ... }, o.attributes.slice_sizes
  for i, n in ipairs(x.shape) do
    if sizes[i] < n then
      local first = o:number(starts[i])
      if first then
        first = math.min(math.max(first, 0), n - sizes[i])
        x = x:slice { [i] = { first + 1, first + sizes[i] } }
      else
        x = x:take(clamped(starts[i], n, sizes[i]) + dc.iota(("i32[%d]"):format(sizes[i])), i)
      end
    end
  end
  return x
end

-- The place of each element of `update` in the flat x.
local function flat_places(x, update, starts)
  local stride, index = 1, nil
  for i = #x.shape, 1, -1 do
    local at = shapes.positions("i32", update.shape, i - 1) + clamped(starts[i], x.shape[i], update.shape[i])
    at = stride == 1 and at or at * stride
    index = index and index + at or at
    stride = stride * x.shape[i]
  end
  return index:reshape(-1)
end

local function differing_axes(a, b)
  local list = {}
  for i, n in ipairs(a) do
    if b[i] ~= n then
      list[#list + 1] = i
    end
  end
  return list
end

rows["stablehlo.dynamic_update_slice"] = function(o, x, update, ...)
  local starts = { ... }
  local axes = differing_axes(x.shape, update.shape)
  if #axes == 0 then
    return update
  elseif elements.count(update.shape) == 0 then
    return x
  elseif #axes == 1 then
    local i = axes[1]
    local n = update.shape[i]
    return x:index_copy(clamped(starts[i], x.shape[i], n) + dc.iota(("i32[%d]"):format(n)), update, i)
  end
  check_flat(o, x)
  local index = flat_places(x, update, starts)
  return shapes.reshape(x:reshape(-1):scatter(index, update:reshape(-1), 1), x.shape)
end

-- ---- gather --------------------------------------------------------------------------------------

-- Numbers from 0 to n - 1 that are not in a list.
local function others(n, list)
  local at, out = shapes.places(list), {}
  for d = 0, n - 1 do
    if not at[d] then
      out[#out + 1] = d
    end
  end
  return out
end

-- Coordinate k of the indices, without the axis that they lie along.
local function column(index, axis, k)
  if axis == #index.shape then
    return index
  end
  local shape = {}
  for i, n in ipairs(index.shape) do
    shape[#shape + 1] = i ~= axis + 1 and n or nil
  end
  return shapes.reshape(index:slice { [axis + 1] = { k, k } }, shape)
end

-- The axis of the result that axis d of the indices is, `batch` being its axes that are not offsets.
local function batch_axis(d, index_axis, batch)
  return batch[(d > index_axis and d - 1 or d) + 1]
end

-- By axis of x which axis of the other tensor runs along it: those of `dims`, in order, for axes that are neither
-- gone nor batches.
local function window_axes(x, gone, in_batching, dims)
  local is_gone, of, nth = shapes.places(gone), {}, 0
  for d = 0, #x.shape - 1 do
    if not is_gone[d] and not in_batching[d] then
      nth = nth + 1
      of[d] = dims and dims[nth]
    end
  end
  return of
end

-- Are single places along one axis read, with all of the others? That axis.
local function rows_of(x, a)
  local map, collapsed = a.start_index_map, a.collapsed_slice_dims or {}
  if #map ~= 1 or #collapsed ~= 1 or map[1] ~= collapsed[1] or #(a.operand_batching_dims or {}) > 0 then
    return nil
  end
  for i, n in ipairs(x.shape) do
    if i ~= map[1] + 1 and a.slice_sizes[i] ~= n then
      return nil
    end
  end
  return map[1]
end

local function gather_rows(x, index, a, rank)
  local axis = rows_of(x, a)
  local at = column(index, a.index_vector_dim, 1)
  local taken = x:take(clamped(at, x.shape[axis + 1], 1), axis + 1)
  local offset, perm, nth = shapes.places(a.offset_dims), {}, 0
  for r = 0, rank - 1 do
    local i = offset[r]
    if i then
      perm[r + 1] = i - 1 < axis and i or i + #at.shape
    else
      nth = nth + 1
      perm[r + 1] = axis + nth
    end
  end
  for i = 1, rank do
    if perm[i] ~= i then
      return taken:permute(table.unpack(perm))
    end
  end
  return taken
end

-- The coordinate along axis d of x of each element of the result; nil where it is 0 everywhere.
local function gather_coordinate(x, index, a, shape, d)
  local batch = others(#shape, a.offset_dims)
  local n, size = x.shape[d + 1], a.slice_sizes[d + 1]
  local k, b = a.in_map[d], a.in_batching[d]
  local at
  if k then
    at = shapes.spread(clamped(column(index, a.index_vector_dim, k), n, size), batch, shape)
  elseif b then
    at = shapes.positions("i32", shape, batch_axis(a.start_indices_batching_dims[b], a.index_vector_dim, batch))
  end
  local offset = a.offset_of[d]
  if offset and size > 1 then
    local from = shapes.positions("i32", shape, offset)
    at = at and at + from or from
  end
  return at
end

local function gather_numbers(o, x, sizes)
  local a = setmetatable({ slice_sizes = sizes }, { __index = o.attributes.dimension_numbers })
  a.in_map, a.in_batching = shapes.places(a.start_index_map), shapes.places(a.operand_batching_dims)
  a.index_vector_dim = a.index_vector_dim or 0
  a.offset_of = window_axes(x, a.collapsed_slice_dims, a.in_batching, a.offset_dims)
  return a
end

local function gather(o, x, index, sizes)
  local shape = o.types[1].shape
  local a = gather_numbers(o, x, sizes)
  if elements.count(shape) == 0 then
    return dc.zeros(o:type_text())
  elseif rows_of(x, a) then
    return gather_rows(x, index, a, #shape)
  end
  check_flat(o, x)
  local stride, place = 1, nil
  for d = #x.shape - 1, 0, -1 do
    local at = gather_coordinate(x, index, a, shape, d)
    at = at and stride > 1 and at * stride or at
    place = place and at and place + at or place or at
    stride = stride * x.shape[d + 1]
  end
  place = place or dc.zeros("i32" .. shapes.text(shape))
  return shapes.reshape(x:reshape(-1):take(place:reshape(-1), 1), shape)
end

rows["stablehlo.gather"] = function(o, x, index)
  return gather(o, x, index, o.attributes.slice_sizes)
end

-- ---- scatter -------------------------------------------------------------------------------------

local function scatter_numbers(o, x)
  local a = setmetatable({}, { __index = o.attributes.scatter_dimension_numbers })
  a.in_map = shapes.places(a.scatter_dims_to_operand_dims)
  a.in_batching = shapes.places(a.input_batching_dims)
  a.index_vector_dim = a.index_vector_dim or 0
  a.window_of = window_axes(x, a.inserted_window_dims, a.in_batching, a.update_window_dims)
  return a
end

local function both(a, b)
  return a and b and a & b or a or b
end

-- The coordinate along axis d of x of each element of the updates, and whether it is inside, where that is a question.
local function scatter_coordinate(x, index, a, shape, d)
  local batch = others(#shape, a.update_window_dims)
  local at, inside
  local k, b, window = a.in_map[d], a.in_batching[d], a.window_of[d]
  if k then
    at = shapes.spread(column(index, a.index_vector_dim, k):cast "i64", batch, shape)
  elseif b then
    at = shapes.positions("i64", shape, batch_axis(a.scatter_indices_batching_dims[b], a.index_vector_dim, batch))
  end
  if window then
    local from = shapes.positions("i64", shape, window)
    at = at and at + from or from
  end
  if k then
    inside = at:ge(0) & at:lt(x.shape[d + 1])
  end
  return at, inside
end

-- The places in the flat x, with one behind it for those outside.
local function scatter_places(x, index, a, shape)
  local stride, place, inside = 1, nil, nil
  for d = #x.shape - 1, 0, -1 do
    local at, is_inside = scatter_coordinate(x, index, a, shape, d)
    at = at and stride > 1 and at * stride or at
    place = place and at and place + at or place or at
    inside = both(inside, is_inside)
    stride = stride * x.shape[d + 1]
  end
  place = place or dc.zeros("i64" .. shapes.text(shape))
  place = inside and dc.where(inside, place, stride) or place
  return place:cast("i32"):reshape(-1)
end

local reductions = { add = "add", multiply = "mul", maximum = "max", minimum = "min", second = "set" }

local function with_one_more(x)
  local flat = x:reshape(-1)
  return dc.concat({ flat, dc.zeros(x.dtype .. "[1]") }, 1)
end

local function without_it(flat, shape)
  return shapes.reshape(flat:slice { [1] = { 1, elements.count(shape) } }, shape)
end

-- One update after the other, for bodies of any kind.
local function one_by_one(o, operands, place, updates)
  local body, n = o:region(1), #operands
  local flat = {}
  for i, x in ipairs(operands) do
    flat[i] = with_one_more(x)
    updates[i] = updates[i]:reshape(-1)
  end
  updates[n + 1] = place
  flat = dc.scan(function(carry, u)
    local args, out = {}, {}
    for i = 1, n do
      args[i], args[n + i] = carry[i]:take(u[n + 1], 1), u[i]
    end
    local new = { body(table.unpack(args)) }
    for i = 1, n do
      out[i] = carry[i]:index_copy(u[n + 1]:reshape(1), new[i]:reshape(1), 1)
    end
    return out
  end, flat, updates)
  for i, x in ipairs(operands) do
    flat[i] = without_it(flat[i], x.shape)
  end
  return table.unpack(flat)
end

-- Are whole rows put at places along one axis? That axis.
local function scattered_axis(x, a, shape)
  local map, gone = a.scatter_dims_to_operand_dims, a.inserted_window_dims or {}
  if #map ~= 1 or #gone ~= 1 or map[1] ~= gone[1] or #(a.input_batching_dims or {}) > 0 then
    return nil
  end
  for d, n in ipairs(x.shape) do
    if d ~= map[1] + 1 and shape[a.window_of[d - 1] + 1] ~= n then
      return nil
    end
  end
  return map[1]
end

-- The updates with the axis of the places where x has that of the rows, and the places, those outside as the size.
local function scattered_rows(x, index, a, u, axis)
  local n = x.shape[axis + 1]
  local at = column(index, a.index_vector_dim, 1):reshape(-1)
  if at.dtype ~= "i32" then
    at = at:cast "i64"
    at = dc.where(at:ge(0) & at:lt(n), at, n):cast "i32"
  end
  local batch, perm, shape = others(#u.shape, a.update_window_dims), {}, {}
  for d, size in ipairs(x.shape) do
    if d == axis + 1 then
      for _, b in ipairs(batch) do
        perm[#perm + 1] = b + 1
      end
    else
      perm[#perm + 1] = a.window_of[d - 1] + 1
    end
    shape[d] = d == axis + 1 and at.shape[1] or size
  end
  return shapes.reshape(u:permute(table.unpack(perm)), shape), at
end

rows["stablehlo.scatter"] = function(o, ...)
  local args = { ... }
  local n = (#args - 1) // 2
  local operands, updates = { table.unpack(args, 1, n) }, { table.unpack(args, n + 2) }
  local x, index, u = args[1], args[n + 1], args[n + 2]
  if elements.count(u.shape) == 0 or elements.count(x.shape) == 0 then
    return table.unpack(operands)
  end
  local a = scatter_numbers(o, x)
  local name = n == 1 and shapes.combination(o.op.regions[1], x.dtype)
  if name == "subtract" then
    name, u = "add", u:neg()
  end
  if name == "first" then
    return x
  end
  local axis = reductions[name] and scattered_axis(x, a, u.shape)
  if axis then
    local v, at = scattered_rows(x, index, a, u, axis)
    return core.place("scatter", reductions[name], x, at, v, axis + 1, 0)
  end
  check_flat(o, x)
  local place = scatter_places(x, index, a, u.shape)
  if not reductions[name] then
    return one_by_one(o, operands, place, updates)
  end
  return shapes.reshape(core.place("scatter", reductions[name], x:reshape(-1), place, u:reshape(-1), 1, 0), x.shape)
end

-- ---- sizes that the text knows --------------------------------------------------------------------

rows["stablehlo.get_dimension_size"] = function(o, x)
  return dc.full(o:type_text(), x.shape[o.attributes.dimension + 1])
end

rows["stablehlo.dynamic_broadcast_in_dim"] = function(o, x)
  return shapes.spread(x, o.attributes.broadcast_dimensions or {}, o.types[1].shape)
end

rows["stablehlo.dynamic_reshape"] = function(o, x)
  return shapes.reshape(x, o.types[1].shape)
end

rows["stablehlo.dynamic_iota"] = function(o)
  return dc.iota(o:type_text(), o.attributes.iota_dimension + 1)
end

rows["stablehlo.dynamic_pad"] = function(o, x, value, low, high, interior)
  low, high, interior = o:list(low), o:list(high), o:list(interior)
  if not (low and high and interior) then
    o:fail("sizes that are no constants are not supported")
  end
  return shapes.pad(x, low, high, interior, value, o:number(value))
end

rows["stablehlo.real_dynamic_slice"] = function(o, x, first, limit, step)
  first, limit, step = o:list(first), o:list(limit), o:list(step)
  if not (first and limit and step) then
    o:fail("sizes that are no constants are not supported")
  end
  return shapes.slice(x, first, limit, step)
end

rows["stablehlo.dynamic_gather"] = function(o, x, index, sizes)
  sizes = o:list(sizes)
  if not sizes then
    o:fail("sizes that are no constants are not supported")
  end
  return gather(o, x, index, sizes)
end

return rows
