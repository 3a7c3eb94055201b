-- Operations of StableHLO with regions: reductions, sort, loops and branches; contractions.

local dc = require "deepc"
local elements = require "deepc.stablehlo.elements"
local shapes = require "deepc.stablehlo.shapes"

local rows = {}

-- ---- reduce --------------------------------------------------------------------------------------

local methods = shapes.reductions

local function reduce_named(o, name, x, init, axes)
  local y = x
  if #axes > 0 then
    y = x[methods[name]](x, axes)
    y = y.dtype == x.dtype and y or y:cast(x.dtype)
  end
  return shapes.is_identity(name, x.dtype, o:number(init)) and y or shapes.combine(name, y, init)
end

-- The axes of a list (from 0) in front, as one.
local function in_front(x, axes)
  local at, perm, rest, n = shapes.places(axes), {}, {}, 1
  for _, d in ipairs(axes) do
    perm[#perm + 1] = d + 1
    n = n * x.shape[d + 1]
  end
  for d = 0, #x.shape - 1 do
    if not at[d] then
      perm[#perm + 1] = d + 1
      rest[#rest + 1] = x.shape[d + 1]
    end
  end
  return shapes.reshape(x:permute(table.unpack(perm)), { n, table.unpack(rest) }), n, rest
end

local function every_second(x, first, n)
  return x:slice { [1] = { first, first + 2 * (n - 1), 2 } }
end

-- Neighbours are combined, again and again: the order stays.
local function fold(body, xs, n)
  local k = #xs
  while n > 1 do
    local half, args, rest = n // 2, {}, {}
    for i = 1, k do
      args[i], args[k + i] = every_second(xs[i], 1, half), every_second(xs[i], 2, half)
      rest[i] = n % 2 == 1 and xs[i]:slice { [1] = { n, n } } or nil
    end
    xs = { body(table.unpack(args, 1, 2 * k)) }
    for i = 1, k do
      xs[i] = rest[i] and dc.concat({ xs[i], rest[i] }, 1) or xs[i]
    end
    n = half + n % 2
  end
  return xs
end

local function reduce_by_body(o, xs, inits, axes)
  local body, k, n, rest = o:region(1, true), #xs, nil, nil
  for i = 1, k do
    xs[i], n, rest = in_front(xs[i], axes)
  end
  if n == 0 or elements.count(rest) == 0 then
    for i = 1, k do
      xs[i] = shapes.spread(inits[i], {}, rest)
    end
    return table.unpack(xs)
  end
  xs = fold(body, xs, n)
  local args = table.pack(table.unpack(inits, 1, k))
  for i = 1, k do
    args[k + i] = shapes.reshape(xs[i], rest)
  end
  local out = { body(table.unpack(args, 1, 2 * k)) }
  for i = 1, k do -- a body may give what it was called with, a scalar
    out[i] = #out[i].shape == #rest and out[i] or shapes.spread(out[i], {}, rest)
  end
  return table.unpack(out)
end

rows["stablehlo.reduce"] = function(o, ...)
  local args = { ... }
  local n = #args // 2
  local xs, inits = { table.unpack(args, 1, n) }, { table.unpack(args, n + 1) }
  local axes = o.attributes.dimensions
  local name = n == 1 and shapes.combination(o.op.regions[1], xs[1].dtype)
  if methods[name] and not (elements.is_complex(xs[1].dtype) and name:find "imum") then
    local list = {}
    for i, d in ipairs(axes) do
      list[i] = d + 1
    end
    return reduce_named(o, name, xs[1], inits[1], list)
  end
  return reduce_by_body(o, xs, inits, axes)
end

rows["stablehlo.map"] = function(o, ...)
  local y = o:region(1, true)(...)
  return #y.shape == #o.types[1].shape and y or shapes.spread(y, {}, o.types[1].shape)
end

-- ---- sort ----------------------------------------------------------------------------------------

local function scalar_text(a)
  local v = a.splat
  if type(v) == "table" then
    v = v.bits and ("bits %d"):format(v.bits)
  end
  return v ~= nil and ("%s %s"):format(v, a.type.element)
end

-- What an operation is but for its operands; false where attributes say more than this tells apart.
local function operation_text(op)
  local a = op.attributes
  if op.name == "stablehlo.constant" then
    return scalar_text(a.value)
  elseif op.name == "stablehlo.compare" then
    return ("compare %s %s"):format(a.comparison_direction, a.compare_type)
  end
  return next(a) == nil and #op.regions == 0 and #op.types == 1 and ("%s %s"):format(op.name, op.types[1].element)
end

-- An expression of a region as text, with '@' for the argument of a name; false where it reads another one. Values from
-- outside of the region are what they are called. What is found once is kept in seen.
local function expression(made, name, argument, seen)
  if name == argument then
    return "@"
  elseif made[name] == nil then
    return "outside " .. name
  elseif seen[name] ~= nil then
    return seen[name]
  end
  local op = made[name]
  local parts, text = {}, op and operation_text(op) -- of another argument there is none
  for i, operand in ipairs(text and op.operands or {}) do
    parts[i] = expression(made, operand, argument, seen)
    text = parts[i] and text
    if not text then
      break
    end
  end
  seen[name] = text and ("%s(%s)"):format(text, table.concat(parts, ","))
  return seen[name]
end

-- A comparison g(a) OP g(b) of one pair of arguments, whose direction is one of these: { pair =, name = of g(a),
-- direction =, type =, text = of g }, or nil.
local function comparison(region, made, name, directions)
  local op = made[name]
  local direction = op and op.name == "stablehlo.compare" and op.attributes.comparison_direction
  if not directions[direction] then
    return nil
  end
  for k = 1, #region.args, 2 do
    local left = expression(made, op.operands[1], region.args[k].name, {})
    local right = expression(made, op.operands[2], region.args[k + 1].name, {})
    if left and left == right and #left < 100000 then
      return { pair = (k + 1) // 2, name = op.operands[1], direction = direction, type = op.attributes.compare_type,
        text = left }
    end
  end
  return nil
end

local orders <const> = { LT = true, GT = true }
local equality <const> = { EQ = true }

local function operands_of(made, name, kind)
  local op = made[name]
  if op and op.name == kind then
    return op.operands[1], op.operands[2]
  end
end

-- f and g where one of two values is what f finds.
local function either(f, a, b)
  local found = a and f(a)
  if found then
    return found, b
  end
  found = b and f(b)
  return found, a
end

-- The keys of a comparator, the first one first: g(a) < g(b), or that, or g(a) = g(b) and what says so of the others.
local function keys_from(region, made, name, keys)
  local first = comparison(region, made, name, orders)
  if first then
    keys[#keys + 1] = first
    return keys
  end
  local less, rest = either(function(v) return comparison(region, made, v, orders) end,
    operands_of(made, name, "stablehlo.or"))
  local same, others = either(function(v) return comparison(region, made, v, equality) end,
    operands_of(made, less and rest, "stablehlo.and"))
  if not same or same.pair ~= less.pair or same.text ~= less.text or same.type ~= less.type or #keys > 100 then
    return nil
  end
  keys[#keys + 1] = less
  return keys_from(region, made, others, keys)
end

-- A list of keys, or nil where the comparator is none of keys.
local function keys_of(region)
  local made = {}
  for _, a in ipairs(region.args) do
    made[a.name] = false
  end
  for _, op in ipairs(region.ops) do
    for _, name in ipairs(op.results) do
      made[name] = op
    end
  end
  return keys_from(region, made, region.ops[#region.ops].operands[1], {})
end

-- The key of each element: what the region computes on the way to its comparison.
local function key_values(o, xs, k, name)
  local region = o.op.regions[1]
  if region.args[2 * k - 1].name == name then
    return xs[k]
  end
  local args = {}
  for i, x in ipairs(xs) do
    args[2 * i - 1], args[2 * i] = x, x
  end
  local key
  o.run:region(region, o.env, args, true, function(env) key = env[name] end)
  return key
end

-- Each element's rank: how many come before it. In the square of the axis, for comparators of any kind.
local function order_by_ranks(o, xs, axis)
  local n, less, args, back = xs[1].shape[axis], o:region(1, true), {}, {}
  if n > 4096 then
    o:fail("a comparator that compares no keys sorts at most 4096 elements, not %d", n)
  end
  for i, x in ipairs(xs) do
    local rows_of, columns_of = table.pack(table.unpack(x.shape)), table.pack(table.unpack(x.shape))
    table.insert(rows_of, axis + 1, 1)
    table.insert(columns_of, axis, 1)
    local whole = table.pack(table.unpack(x.shape))
    table.insert(whole, axis, n)
    args[2 * i - 1] = shapes.reshape(x, columns_of):expand(table.unpack(whole))
    args[2 * i] = shapes.reshape(x, rows_of):expand(table.unpack(whole))
    back[2 * i - 1], back[2 * i] = args[2 * i], args[2 * i - 1]
  end
  local before, behind = less(table.unpack(args)), less(table.unpack(back))
  local shape = before.shape
  local earlier = shapes.positions("i32", shape, axis):lt(shapes.positions("i32", shape, axis - 1))
  local rank = (before | (~behind & earlier)):cast("i32"):sum(axis + 1):cast "i32"
  return rank:argsort(axis)
end

-- By the last key first, as sorts leave equal elements in their order.
local function order_by_keys(o, xs, axis, keys)
  local index
  for i = #keys, 1, -1 do
    local key = key_values(o, xs, keys[i].pair, keys[i].name)
    if keys[i].type == "TOTALORDER" and shapes.has_pattern[key.dtype] then
      key = shapes.in_total_order(key)
    end
    if key.dtype == "bool" then
      key = key:cast "u8"
    end
    local order = (index and key:gather(index, axis) or key):argsort { axis = axis,
      descending = keys[i].direction == "GT" }
    index = index and index:gather(order, axis) or order
  end
  return index
end

rows["stablehlo.sort"] = function(o, ...)
  local xs = { ... }
  local axis = (o.attributes.dimension or -1) % #xs[1].shape + 1
  if xs[1].shape[axis] < 2 or elements.count(xs[1].shape) == 0 then
    return ...
  end
  local keys = keys_of(o.op.regions[1])
  local index = keys and order_by_keys(o, xs, axis, keys) or order_by_ranks(o, xs, axis)
  for i, x in ipairs(xs) do
    xs[i] = x:gather(index, axis)
  end
  return table.unpack(xs)
end

-- ---- loops and branches --------------------------------------------------------------------------

rows["stablehlo.while"] = function(o, ...)
  local n = select("#", ...)
  local condition, body = o:region(1), o:region(2)
  if n == 0 then
    o:fail("a loop without values is not supported")
  end
  local out = dc.loop(function(c) return condition(table.unpack(c, 1, n)) end,
    function(c) return { body(table.unpack(c, 1, n)) } end, { ... })
  return table.unpack(out, 1, n)
end

rows["stablehlo.if"] = function(o, p)
  return dc.cond(p, o:region(1), o:region(2))
end

rows["stablehlo.case"] = function(o, index)
  local list, n = {}, #o.op.regions
  for i = 1, n do
    list[i] = o:region(i)
  end
  return dc.switch(dc.where(index:lt(0), n - 1, index), list)
end

-- ---- contractions --------------------------------------------------------------------------------

-- Letters for the axes of both operands and of the result, as dc.einsum wants them.
local function letters(a, rank_a, rank_b)
  local left, right, result, n = {}, {}, {}, 0
  local function pair(one, two, keep)
    for i, d in ipairs(one) do
      n = n + 1
      left[d + 1], right[two[i] + 1] = "d" .. n, "d" .. n
      result[#result + 1] = keep and "d" .. n or nil
    end
  end
  pair(a.lhs_batching_dimensions, a.rhs_batching_dimensions, true)
  pair(a.lhs_contracting_dimensions, a.rhs_contracting_dimensions, false)
  local function others(list, rank)
    for i = 1, rank do
      if not list[i] then
        n = n + 1
        list[i], result[#result + 1] = "d" .. n, "d" .. n
      end
    end
  end
  others(left, rank_a)
  others(right, rank_b)
  return ("%s, %s -> %s"):format(table.concat(left, " "), table.concat(right, " "), table.concat(result, " "))
end

local function dot(o, x, y, numbers)
  local t = o.types[1]
  if t.dtype == "bool" then
    x, y = x:cast "i32", y:cast "i32"
  elseif x.dtype ~= t.dtype or y.dtype ~= t.dtype then
    x, y = x.dtype == t.dtype and x or x:cast(t.dtype), y.dtype == t.dtype and y or y:cast(t.dtype)
  end
  local z = dc.einsum(letters(numbers, #x.shape, #y.shape), x, y)
  if t.dtype == "bool" then
    return z:ne(0)
  end
  return z.dtype == t.dtype and z or z:cast(t.dtype)
end

rows["stablehlo.dot_general"] = function(o, x, y)
  return dot(o, x, y, o.attributes.dot_dimension_numbers)
end

rows["stablehlo.dot"] = function(o, x, y)
  return dot(o, x, y, { lhs_batching_dimensions = {}, rhs_batching_dimensions = {},
    lhs_contracting_dimensions = { #x.shape - 1 }, rhs_contracting_dimensions = { 0 } })
end

return rows
