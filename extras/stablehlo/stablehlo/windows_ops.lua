-- Operations of StableHLO with windows: convolution, reduce_window, select_and_scatter.

local dc = require "deepc"
local elements = require "deepc.stablehlo.elements"
local shapes = require "deepc.stablehlo.shapes"

local rows = {}

-- ---- convolution ---------------------------------------------------------------------------------

-- The axes (from 1) of a list of an operand in the order: two letters, then the dims of the window.
local function order(list, first, second)
  local at = shapes.places(list)
  local perm = { at[first], at[second] }
  for i = 0, #list - 3 do
    perm[i + 3] = at[i]
  end
  return perm
end

local function permute(x, perm)
  for i, p in ipairs(perm) do
    if p ~= i then
      return x:permute(table.unpack(perm))
    end
  end
  return x
end

local function inverse(perm)
  local out = {}
  for i, p in ipairs(perm) do
    out[p] = i
  end
  return out
end

-- Batches of groups, whose results are channels: channels of groups.
local function join_batches(x, groups)
  local shape = table.pack(table.unpack(x.shape))
  local n = table.remove(shape, 1)
  local perm = { 2, 1, 3 }
  for i = 2, #shape do
    perm[i + 2] = i + 2
  end
  x = shapes.reshape(x, { groups, n // groups, table.unpack(shape) }):permute(table.unpack(perm))
  return shapes.reshape(x, { n // groups, groups * shape[1], table.unpack(shape, 2) })
end

-- Everything but the product: x with its dilation and padding, w turned round.
local function prepare(a, x, w, n)
  local low, high, interior = { 0, 0 }, { 0, 0 }, { 0, 0 }
  local turned = {}
  for i = 1, n do
    local p = a.padding and a.padding[i] or { 0, 0 }
    low[i + 2], high[i + 2] = p[1], p[2]
    interior[i + 2] = a.lhs_dilation and a.lhs_dilation[i] - 1 or 0
    local reversed = a.window_reversal and a.window_reversal[i]
    if reversed and reversed ~= 0 then
      turned[#turned + 1] = i + 2
    end
  end
  return shapes.pad(x, low, high, interior, nil, 0), #turned > 0 and w:flip(turned) or w
end

local convolutions = { dc.conv1d, dc.conv2d, dc.conv3d }

local function convolve(x, w, n, a, groups)
  if elements.is_complex(x.dtype) then
    local p, q, r, s = x:real(), x:imag(), w:real(), w:imag()
    return dc.complex(convolve(p, r, n, a, groups) - convolve(q, s, n, a, groups),
      convolve(p, s, n, a, groups) + convolve(q, r, n, a, groups))
  end
  return convolutions[n](x, w, { stride = a.window_strides or shapes.all(n, 1),
    dilation = a.rhs_dilation or shapes.all(n, 1),
    groups = groups })
end

local function cast(x, dtype)
  return x.dtype == dtype and x or x:cast(dtype)
end

rows["stablehlo.convolution"] = function(o, x, w)
  local a, numbers, t = o.attributes, o.attributes.dimension_numbers, o.types[1]
  local n = #numbers.lhs - 2
  x = permute(cast(x, t.dtype), order(numbers.lhs, "b", "f"))
  w = permute(cast(w, t.dtype), order(numbers.rhs, "o", "i"))
  if n == 0 then -- a window along an axis of one element
    x, w = shapes.reshape(x, { x.shape[1], x.shape[2], 1 }), shapes.reshape(w, { w.shape[1], w.shape[2], 1 })
  elseif n > 3 then
    o:fail("a window of %d dims is not supported", n)
  end
  x, w = prepare(a, x, w, n)
  local groups, batch_groups = a.feature_group_count or 1, a.batch_group_count or 1
  if batch_groups > 1 then
    x, groups = join_batches(x, batch_groups), batch_groups
  end
  local y = elements.count(t.shape) == 0 and dc.zeros(o:type_text()) or
    cast(convolve(x, w, math.max(n, 1), a, groups), t.dtype)
  if n == 0 then
    y = shapes.reshape(y, { y.shape[1], y.shape[2] })
  end
  return elements.count(t.shape) == 0 and y or permute(y, inverse(order(numbers.out, "b", "f")))
end

-- ---- reduce_window -------------------------------------------------------------------------------

local methods, combine = shapes.reductions, shapes.combine
local running = { add = "cumsum", multiply = "cumprod", maximum = "cummax", minimum = "cummin" }

local function window_of(a, rank)
  local w = { sizes = a.window_dimensions, strides = a.window_strides or shapes.all(rank, 1),
    dilations = a.window_dilations or shapes.all(rank, 1), low = {}, high = {}, interior = {} }
  for i = 1, rank do
    local p = a.padding and a.padding[i] or { 0, 0 }
    w.low[i], w.high[i] = p[1], p[2]
    w.interior[i] = a.base_dilations and a.base_dilations[i] - 1 or 0
  end
  return w
end

-- The axis (from 1) along which the window is everything up to each element, and whether it is what comes behind.
local function running_axis(w, shape)
  local axis, reverse
  for i, n in ipairs(shape) do
    local k = w.sizes[i]
    if w.strides[i] ~= 1 or w.dilations[i] ~= 1 or w.interior[i] ~= 0 then
      return nil
    elseif k == n and n > 1 and w.low[i] + w.high[i] == n - 1 and (w.low[i] == 0 or w.high[i] == 0) and not axis then
      axis, reverse = i, w.low[i] == 0
    elseif k ~= 1 or w.low[i] ~= 0 or w.high[i] ~= 0 then
      return nil
    end
  end
  return axis, reverse
end

-- The elements that are number j of their windows along axis i.
local function nth(x, w, i, j, out)
  local first = 1 + j * w.dilations[i]
  return x:slice { [i] = { first, first + (out - 1) * w.strides[i], w.strides[i] } }
end

local function out_size(n, w, i)
  return (n - (w.sizes[i] - 1) * w.dilations[i] - 1) // w.strides[i] + 1
end

-- One axis after the other; long windows by a view of them.
local function reduce_axis(name, x, w, i)
  local k, out = w.sizes[i], out_size(x.shape[i], w, i)
  if k > 16 and w.dilations[i] == 1 then
    local windows = x:unfold(i, k, w.strides[i])
    local y = windows[methods[name]](windows, #windows.shape)
    return y.dtype == x.dtype and y or y:cast(x.dtype)
  end
  local y = nth(x, w, i, 0, out)
  for j = 1, k - 1 do
    y = combine(name, y, nth(x, w, i, j, out))
  end
  return y
end

local function reduce_named(o, name, x, init, w)
  local number = o:number(init)
  local identity = shapes.is_identity(name, x.dtype, number)
  local axis, reverse = running_axis(w, x.shape)
  if axis and identity and x.dtype ~= "bool" and not elements.is_complex(x.dtype) then
    local y = x[running[name]](x, { axis = axis, reverse = reverse })
    return y.dtype == x.dtype and y or y:cast(x.dtype)
  end
  x = shapes.pad(x, w.low, w.high, w.interior, init, number)
  for i = 1, #x.shape do
    if w.sizes[i] > 1 or w.strides[i] > 1 then
      x = reduce_axis(name, x, w, i)
    end
  end
  return identity and x or combine(name, x, init)
end

-- Calls f with the position in the window, as a list from 0, of each of its elements.
local function each_place(sizes, f)
  local at = shapes.all(#sizes, 0)
  local i
  repeat
    f(at)
    i = #sizes
    while i > 0 and at[i] == sizes[i] - 1 do
      at[i] = 0
      i = i - 1
    end
    at[i] = i > 0 and at[i] + 1 or nil
  until i == 0
end

local function part_at(x, w, at)
  for i, j in ipairs(at) do
    x = nth(x, w, i, j, out_size(x.shape[i], w, i))
  end
  return x
end

-- What a body makes of everything up to each element along an axis: of what is 1, 2, 4 ... before it, and it (Hillis
-- and Steele, 1986). Bodies are associative, and the initial values change nothing.
local function run_by_body(o, xs, inits, axis, reverse)
  local n, body, size, k = #xs, o:region(1, true), xs[1].shape[axis], 1
  while k < size do
    local low, high, args = shapes.all(#xs[1].shape, 0), shapes.all(#xs[1].shape, 0), {}
    low[axis], high[axis] = reverse and -k or k, reverse and k or -k
    for i, x in ipairs(xs) do
      local moved = shapes.pad(x, low, high, nil, inits[i], o:number(inits[i]))
      args[i], args[n + i] = reverse and x or moved, reverse and moved or x
    end
    xs, k = { body(table.unpack(args)) }, 2 * k
  end
  return table.unpack(xs)
end

local function reduce_by_body(o, xs, inits, w)
  local axis, reverse = running_axis(w, xs[1].shape)
  if axis and xs[1].shape[axis] > 16 then
    return run_by_body(o, xs, inits, axis, reverse)
  end
  local n, body = #xs, o:region(1, true)
  local state = inits
  if elements.count(w.sizes) > 4096 then
    o:fail("a window of %d elements with a body of several operations is not supported", elements.count(w.sizes))
  end
  for i = 1, n do
    xs[i] = shapes.pad(xs[i], w.low, w.high, w.interior, inits[i], o:number(inits[i]))
  end
  each_place(w.sizes, function(at)
    local args = table.pack(table.unpack(state, 1, n))
    for i = 1, n do
      args[n + i] = part_at(xs[i], w, at)
    end
    state = { body(table.unpack(args, 1, 2 * n)) }
  end)
  return table.unpack(state)
end

rows["stablehlo.reduce_window"] = function(o, ...)
  local args = { ... }
  local n = #args // 2
  local xs, inits = { table.unpack(args, 1, n) }, { table.unpack(args, n + 1) }
  local w = window_of(o.attributes, #xs[1].shape)
  if elements.count(o.types[1].shape) == 0 then
    return dc.zeros(o:type_text())
  end
  local name = n == 1 and shapes.combination(o.op.regions[1], xs[1].dtype)
  if methods[name] then
    return reduce_named(o, name, xs[1], inits[1], w)
  end
  return reduce_by_body(o, xs, inits, w)
end

-- ---- select_and_scatter --------------------------------------------------------------------------

-- For each window the number of the element that the first region chooses, in the order of the window.
local function choose(o, x, w)
  local select = o:region(1, true)
  local padded = shapes.pad(x, w.low, w.high, nil, nil, x.dtype ~= "bool" and 0)
  local inside = shapes.pad(dc.full("bool" .. shapes.text(x.shape), true), w.low, w.high, nil, nil, false)
  local best, has, chosen, k = nil, nil, nil, 0
  each_place(w.sizes, function(at)
    local value, valid = part_at(padded, w, at), part_at(inside, w, at)
    if best then
      local take = valid & (~has | ~select(best, value))
      best, has, chosen = dc.where(take, value, best), has | valid, dc.where(take, k, chosen)
    else
      best, has, chosen = value, valid, dc.zeros("i32" .. shapes.text(value.shape))
    end
    k = k + 1
  end)
  return chosen, padded.shape
end

rows["stablehlo.select_and_scatter"] = function(o, x, source, init)
  local w = window_of(o.attributes, #x.shape)
  w.sizes = o.attributes.window_dimensions or shapes.all(#x.shape, 1)
  local name = shapes.combination(o.op.regions[2], x.dtype)
  if name ~= "add" and not (name == "maximum" and x.dtype == "bool") then
    o:fail("values are added where windows overlap; another body is not supported")
  end
  local nothing = x.dtype ~= "bool" and 0
  local chosen, shape = choose(o, x, w)
  local sum, k = nil, 0
  each_place(w.sizes, function(at)
    local low, high, interior = {}, {}, {}
    for i, j in ipairs(at) do
      local n = source.shape[i]
      low[i], interior[i] = j, w.strides[i] - 1
      high[i] = shape[i] - j - ((n - 1) * w.strides[i] + 1)
    end
    local part = shapes.pad(dc.where(chosen:eq(k), source, nothing), low, high, interior, nil, nothing)
    sum = sum and combine(name, sum, part) or part
    k = k + 1
  end)
  local back, front = {}, {}
  for i = 1, #x.shape do
    front[i], back[i] = -w.low[i], -w.high[i]
  end
  local y = shapes.pad(sum, front, back, nil, nil, nothing)
  return o:number(init) == nothing and y or combine(name, y, init)
end

return rows
