-- Loops and branches of deepc (core/ir/control.h) as `while` and `if` of StableHLO, whose regions read values around
-- them.

local build = require "deepc.stablehlo.build"

local rows = {}

local REVERSE <const>, LIMIT <const>, TEST <const> = 1, 2, 4

local function type_of(n)
  return build.type(n.dtype, n.shape)
end

local function stack_type(count, n)
  return build.type(n.dtype, { count, table.unpack(n.shape) })
end

-- The places where element i of a stack begins.
local function places(w, x, i)
  local list = { i }
  for axis = 2, #x.shape do
    list[axis] = w:const("i32", {}, 0)
  end
  return list
end

local function element(w, x, i)
  local sizes = { 1, table.unpack(x.shape, 2) }
  return w:one("dynamic_slice", { x, table.unpack(places(w, x, i)) }, x.dtype, sizes, { slice_sizes = sizes })
    :reshape { table.unpack(x.shape, 2) }
end

local function with_element(w, x, i, value)
  local update = value:reshape { 1, table.unpack(x.shape, 2) }
  return w:one("dynamic_update_slice", { x, update, table.unpack(places(w, x, i)) }, x.dtype, x.shape)
end

local function take(list, at, n)
  return table.move(list, at, at + n - 1, 1, {}), at + n
end

local function read_loop(w, n, operands)
  local a, at = n.attributes, 1
  local l = { body = a[1], n = a[2], reverse = a[3] & REVERSE ~= 0, test = a[3] & TEST ~= 0 }
  local body = w.bodies[a[1]]
  if a[3] & LIMIT ~= 0 then
    l.count, at = operands[1]:max(0):min(l.n), 2
  else
    l.count = w:const("i32", {}, l.n)
  end
  l.constants, at = take(operands, at, a[4])
  l.carries, at = take(operands, at, a[5])
  l.xs, at = take(operands, at, a[6])
  l.ys = take(operands, at, a[7])
  for i = #l.ys + 1, a[7] do -- nothing is left out of these
    local t = stack_type(l.n, body.nodes[body.results[a[5] + i]])
    l.ys[i] = w:const(t.dtype, t.shape, t.dtype ~= "bool" and 0)
  end
  return l
end

-- Iteration k: new carries, then stacks.
local function iterate(w, l, k, carries, ys)
  local i = l.reverse and l.count - 1 - k or k
  local params = { i, table.unpack(l.constants) }
  table.move(carries, 1, #carries, #params + 1, params)
  for _, x in ipairs(l.xs) do
    params[#params + 1] = element(w, x, i)
  end
  local out = w:body(l.body, params)
  for j, y in ipairs(ys) do
    out[#carries + j] = with_element(w, y, i, out[#carries + j])
  end
  return out
end

-- The values of a `while` are the number of iterations, carries, then stacks.
function rows.loop(w, n, ...)
  local l = read_loop(w, n, { ... })
  local init, types = { w:const("i32", {}, 0) }, {}
  table.move(l.carries, 1, #l.carries, 2, init)
  table.move(l.ys, 1, #l.ys, #init + 1, init)
  for i, v in ipairs(init) do
    types[i] = v.type
  end
  local condition = w:region(types, function(k, first)
    local more = k:lt(l.count)
    return l.test and more & first or more
  end)
  local body = w:region(types, function(k, ...)
    local values = { ... }
    local out = iterate(w, l, k, { table.unpack(values, 1, #l.carries) }, { table.unpack(values, #l.carries + 1) })
    return k + 1, table.unpack(out)
  end)
  return { select(2, w:op("while", init, types, {}, { condition, body })) }
end

function rows.branch(w, n, condition, ...)
  local params, regions, types, g = { ... }, {}, {}, w.bodies[n.attributes[1]]
  for i, r in ipairs(g.results) do
    types[i] = type_of(g.nodes[r])
  end
  for i = 1, 2 do
    regions[i] = w:region({}, function()
      return table.unpack(w:body(n.attributes[i], params))
    end)
  end
  return { w:op("if", { condition }, types, {}, regions) }
end

function rows.pick(_, n, list)
  return list[n.attributes[1] + 1]
end

return rows
