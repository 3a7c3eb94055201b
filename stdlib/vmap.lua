-- dc.vmap: a function over one more axis of its arguments. Its annotation is in api/vmap.lua.
--
-- While a function is traced, f is called once, on stand-ins of the types without the axis, and what it did is put into
-- the graph over all rows (dsl/control/vmap.c). Elsewhere it is called for each row by a loop of Lua. Checks and errors
-- are the same.

local dc = require "deepc"
require "deepc.control"
require "deepc.operands"
local _, core = ...

local trees = core.trees
local fail, describe = trees.fail, core.describe
local op = "vmap"

-- ---- which axes ----

local function is_list(v)
  return type(v) == "table" and getmetatable(v) == nil
end

-- An entry of in_axes or out_axes: nil where there is none.
local function entry(spec, key)
  if is_list(spec) then
    return spec[key]
  end
  return spec
end

local function check_entry(what, spec)
  local known = spec == nil or spec == false or math.type(spec) == "integer" or type(spec) == "string"
  if not known and not is_list(spec) then
    fail("ARG", op, nil, "%s is %s; the number of an axis, the name of a dim, false, or a table of these is needed",
      what, describe(spec))
  end
end

-- Entries are of what is there.
local function check_keys(what, spec, known, of)
  if not is_list(spec) then
    return
  end
  for key in next, spec do
    if not known(key) then
      fail("ARG", op, nil, "%s has an entry %s, which is of no %s", what, core.shown(key), of)
    end
  end
end

-- Tensor x, whose axis is mapped: noted, with that axis in front.
local function add_mapped(c, x, axis, path)
  if #x.shape == 0 then
    core.fail("ARG", op, ("%s is %s, which has no axis to map"):format(path, describe(x)),
      "in_axes = { ..., false } leaves it as it is", path, x)
  end
  local k, name = core.control_axis(x, axis, op)
  local n = x.shape[k]
  if c.n and c.n ~= n then
    core.fail("ARG", op, ("%s has %s rows along axis %d, %s has %s"):format(c.paths[1], c.n, c.axes[1], path, n),
      nil, c.paths[1], c.given[1], path, x)
  elseif name and c.name and name ~= c.name then
    core.fail("ARG", op, ("the mapped axis is '%s' in %s and '%s' in %s"):format(c.name, c.named, name, path),
      "x:rename gives an axis another name", path, x)
  end
  c.n, c.name, c.named = n, c.name or name, c.name and c.named or path
  local at = #c.paths + 1
  c.paths[at], c.axes[at], c.given[at] = path, k, x
  if k ~= 1 then
    local order = { k }
    for i = 1, #x.shape do
      order[#order + 1] = i ~= k and i or nil
    end
    x = x:permute(table.unpack(order))
  end
  c.xs[at] = x
  return { mapped = at }
end

-- What an argument is made of: { mapped = number }, { same = value } or { keys =, parts = }.
local function take(c, v, spec, path, explicit, depth)
  check_entry("in_axes of " .. path, spec)
  if core.kind(v) then
    if is_list(spec) then
      fail("ARG", op, nil, "in_axes of %s is a table, and it is %s", path, describe(v))
    end
    return spec == false and { same = v } or add_mapped(c, v, spec or 1, path)
  elseif is_list(v) and spec ~= false and depth < trees.DEEP then
    local shape = { keys = trees.keys_of(op, v, path), parts = {} }
    check_keys("in_axes of " .. path, spec, function(key) return rawget(v, key) ~= nil end, "part of it")
    for i, key in ipairs(shape.keys) do
      shape.parts[i] = take(c, v[key], entry(spec, key), trees.path_to(path, key), is_list(spec), depth + 1)
    end
    return shape
  elseif explicit and spec then
    fail("ARG", op, nil, "in_axes of %s is %s, and it is %s", path, core.shown(spec), describe(v))
  end
  return { same = v }
end

-- The argument of this shape whose mapped tensors are `leaves`.
local function give(shape, leaves)
  if shape.mapped then
    return leaves[shape.mapped]
  elseif not shape.keys then
    return shape.same
  end
  local t = {}
  for i, key in ipairs(shape.keys) do
    t[key] = give(shape.parts[i], leaves)
  end
  return t
end

local function take_arguments(c, ...)
  local n = select("#", ...)
  local explicit = is_list(c.in_axes)
  check_keys("in_axes", c.in_axes, function(key) return math.type(key) == "integer" and key >= 1 and key <= n end,
    "argument")
  c.shapes, c.xs, c.paths, c.axes, c.given = { n = n }, {}, {}, {}, {}
  for k = 1, n do
    c.shapes[k] = take(c, (select(k, ...)), entry(c.in_axes, k), ("argument %d"):format(k), explicit, 0)
  end
  if not c.n and not c.size then
    fail("ARG", op, "{ size = n } says how many rows there are",
      "no tensor is mapped, so nothing tells how many rows there are")
  elseif c.n and c.size and c.n ~= c.size then
    core.fail("ARG", op, ("size is %s, %s has %s rows along axis %d"):format(c.size, c.paths[1], c.n, c.axes[1]), nil,
      c.paths[1], c.given[1])
  end
  c.n = c.n or c.size
end

local function arguments(c, leaves)
  local list = {}
  for k = 1, c.shapes.n do
    list[k] = give(c.shapes[k], leaves)
  end
  return table.unpack(list, 1, c.shapes.n)
end

-- ---- results ----

-- The leaves of what f returned, with the entry of out_axes of each.
local function flatten(c, results)
  local out = { shapes = {}, leaves = {}, paths = {}, axes = {}, n = results.n }
  local function note(shape, spec, path)
    check_entry("out_axes of " .. path, spec)
    if shape == trees.LEAF then
      if is_list(spec) then
        fail("ARG", op, nil, "out_axes of %s is a table, and it is a tensor", path)
      end
      out.axes[#out.axes + 1] = spec == nil and 1 or spec
    elseif shape ~= trees.NONE then
      check_keys("out_axes of " .. path, spec, function(key)
        for _, k in ipairs(shape.keys) do
          if k == key then
            return true
          end
        end
        return false
      end, "part of it")
      for i, key in ipairs(shape.keys) do
        note(shape.parts[i], entry(spec, key), trees.path_to(path, key))
      end
    end
  end
  check_keys("out_axes", c.out_axes, function(key)
    return math.type(key) == "integer" and key >= 1 and key <= results.n
  end, "result")
  for i = 1, results.n do
    local path = results.n == 1 and "the result" or ("result %d"):format(i)
    local tree = trees.take_apart(op, results[i], path)
    out.shapes[i] = tree.shape
    for k, leaf in ipairs(tree.leaves) do
      out.leaves[#out.leaves + 1] = leaf
      out.paths[#out.leaves] = tree.paths[k]
    end
    note(tree.shape, entry(c.out_axes, i), path)
  end
  if #out.leaves == 0 then
    fail("CONTROL", op, "return the tensor that is wanted of each row", "%s returns %s; a tensor is needed",
      trees.name_of("the function", c.f), results.n == 0 and "nothing" or describe(results[1]))
  end
  trees.make_tensors(op, out)
  return out
end

-- x with its first axis, the new one, where out_axes says.
local function place_axis(x, axis, path)
  local rank, to = #x.shape, axis
  if type(axis) == "string" then
    to = core.control_axis(x[1], axis, op)
  elseif axis < 0 then
    to = rank + 1 + axis
  end
  if to < 1 or to > rank then
    core.fail("ARG", op, ("out_axes is %d, and %s has %d ax%s with the new one"):format(axis, path, rank,
      rank == 1 and "is" or "es"), nil, path, x)
  elseif to == 1 then
    return x
  end
  local order = {}
  for i = 1, rank do
    order[i] = i < to and i + 1 or i == to and 1 or i
  end
  return x:permute(table.unpack(order))
end

-- The results of f, made of these leaves, which have the new axis in front but for those that stay without.
local function give_results(out, leaves)
  for i, axis in ipairs(out.axes) do
    if axis then
      leaves[i] = place_axis(leaves[i], axis, out.paths[i])
    end
  end
  local at, results = 0, {}
  for i = 1, out.n do
    local tree = trees.put_together(out.shapes[i], table.move(leaves, at + 1, #leaves, 1, {}))
    local function count(shape)
      if shape == trees.LEAF then
        at = at + 1
      elseif shape ~= trees.NONE then
        for _, part in ipairs(shape.parts) do
          count(part)
        end
      end
    end
    count(out.shapes[i])
    results[i] = tree
  end
  return table.unpack(results, 1, out.n)
end

local function refuse_differing(path, x)
  core.fail("ARG", op, ("out_axes of %s is false, and it is another one for each row"):format(path), nil, path, x)
end

-- ---- in a trace ----

local function trace(c)
  local body <close> = core.control_begin(op, true)
  core.control_keep_cells(body)
  local element = core.control_stand_ins(body, c.xs, true)
  local out = flatten(c, table.pack(core.control_call(c.f, arguments(c, element))))
  local once = {}
  for i, axis in ipairs(out.axes) do
    once[i] = axis == false
  end
  local leaves, varies = core.control_vmap(body, {
    xs = c.xs, element = element, results = out.leaves, n = c.n, name = c.name, once = once,
  })
  for i, axis in ipairs(out.axes) do
    if axis == false and varies[i] then
      refuse_differing(out.paths[i], leaves[i])
    end
  end
  return give_results(out, leaves)
end

-- ---- row by row ----

-- What row k returned, beside what the first one did.
local function check_alike(c, first, out)
  local what = trees.name_of("the function", c.f)
  if first.n ~= out.n then
    fail("CONTROL", op, nil, "%s returns %d values, and returned %d for the first row", what, out.n, first.n)
  end
  for i = 1, first.n do
    local path, was, is = trees.compare(first.shapes[i], out.shapes[i], ("result %d"):format(i))
    if path then
      fail("CONTROL", op, nil, "%s returns %s of another form: it is %s, and was %s for the first row", what, path, is,
        was)
    end
  end
  for i, x in ipairs(first.leaves) do
    local differs = core.control_differs(x, out.leaves[i])
    if differs then
      core.fail("CONTROL", op, ("%s changes the %s of %s: %s becomes %s"):format(what, differs, first.paths[i],
        describe(x), describe(out.leaves[i])), nil, "first row", x, "this row", out.leaves[i])
    end
  end
end

-- Are they all the same?
local function all_equal(x)
  local first = x[1]
  local same = x:eq(first)
  if core.is_float(x.dtype) then
    same = same | (x:ne(x) & first:ne(first))
  end
  return same:all():item()
end

local function stacked(c, list)
  local x = dc.stack(list, 1)
  if c.name and not describe(x):find("[%[ ]" .. c.name .. "=") then
    return x:reshape(("[%s=%d%s]"):format(c.name, c.n, (describe(list[1]):match "%[(.+)%]" or ""):gsub("^.", ", %0")))
  end
  return x
end

local function run(c)
  if c.n == 0 then
    fail("ARG", op, "inside a typed function there may be none",
      "there are no rows: outside typed functions nothing tells the types of the results")
  end
  local first, lists = nil, {}
  for k = 1, c.n do
    local element = {}
    for i, x in ipairs(c.xs) do
      element[i] = x[k]
    end
    local out = flatten(c, table.pack(core.control_map_call(c.f, arguments(c, element))))
    first = first or out
    check_alike(c, first, out)
    for i, x in ipairs(out.leaves) do
      lists[i] = lists[i] or {}
      lists[i][k] = x
    end
  end
  local leaves = {}
  for i, list in ipairs(lists) do
    local x = stacked(c, list)
    if first.axes[i] ~= false then
      leaves[i] = x
    elseif core.checking() or all_equal(x) then
      leaves[i] = list[1]
    else
      refuse_differing(first.paths[i], x)
    end
  end
  return give_results(first, leaves)
end

-- ---- dc.vmap ----

local vmap = {}

function vmap.vmap(f, options)
  trees.check_function(op, "the first argument", f)
  core.options(op, options, "in_axes", "out_axes", "size")
  options = options or {}
  check_entry("in_axes", options.in_axes)
  check_entry("out_axes", options.out_axes)
  local size = options.size ~= nil and trees.size(op, options.size, "size") or nil
  return core.entries({
    vmap = function(...)
      local c = { f = f, in_axes = options.in_axes, out_axes = options.out_axes, size = size }
      take_arguments(c, ...)
      if core.tracing() then
        return trace(c)
      end
      return run(c)
    end,
  }).vmap
end

return core.entries(vmap)
