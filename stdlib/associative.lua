-- dc.associative_scan. Its annotation is in api/vmap.lua.
--
-- Neighbours are combined, the half as many that come of it are run over in the same way and are every second element
-- of the result, and each other one is its own combined with the result in front of it (Blelloch 1990). Nothing of it
-- is a loop of the graph: f is called with slices.

local dc = require "deepc"
require "deepc.control"
local _, core = ...

local trees = core.trees
local fail, describe = trees.fail, core.describe
local op = "associative_scan"

-- Elements number first, first + step ... of the axis, so many, of all leaves.
local function part(c, leaves, first, step, n)
  local out = {}
  for i, x in ipairs(leaves) do
    out[i] = x:slice { [c.axis[i]] = { first, first + (n - 1) * step, step } }
  end
  return out
end

local function combine(c, a, b)
  local what = trees.name_of("the function", c.f)
  local tree = trees.take_apart(op, c.f(trees.put_together(c.shape, a), trees.put_together(c.shape, b)), "xs")
  local path, was, is = trees.compare(c.shape, tree.shape, "xs")
  if path then
    fail("CONTROL", op, "it returns the form that it is called with",
      "%s returns another form: %s is %s, and was %s", what, path, is, was)
  end
  trees.make_tensors(op, tree, { leaves = b })
  for i, x in ipairs(tree.leaves) do
    local differs = core.control_differs(b[i], x)
    if differs then
      core.fail("CONTROL", op, ("%s changes the %s of %s: %s becomes %s"):format(what, differs, c.paths[i],
        describe(b[i]), describe(x)),
        differs == "shape" and "it combines whole slices, element by element along the axis" or nil, "before", b[i],
        "after", x)
    end
  end
  return tree.leaves
end

local function joined(c, even, odd)
  local out = {}
  for i, x in ipairs(even) do
    out[i] = core.interleave(x, odd[i], c.axis[i])
  end
  return out
end

local function with_first(c, first, rest)
  local out = {}
  for i, x in ipairs(first) do
    out[i] = dc.concat({ x, rest[i] }, c.axis[i])
  end
  return out
end

local function run(c, leaves, n)
  if n < 2 then
    return leaves
  end
  local odd, even = n // 2, n - n // 2
  local had = part(c, leaves, 1, 2, odd)
  local all = run(c, combine(c, had, part(c, leaves, 2, 2, odd)), odd)
  local first = part(c, leaves, 1, 1, 1)
  if even == 1 then
    return joined(c, first, all)
  end
  local rest = combine(c, part(c, all, 1, 1, even - 1), part(c, leaves, 3, 2, even - 1))
  return joined(c, with_first(c, first, rest), all)
end

-- Along an axis of n elements, known when the function runs: as many as there may be, with the last one again behind
-- them, which no result reads.
local function to_bound(c, leaves, n)
  local least, most = core.size_range(n)
  if least < 1 then
    fail("EXTENT", op, nil, "%s may have no element along axis %d", c.paths[1], c.axis[1])
  end
  local at = dc.minimum(dc.iota(most), (n - 1):cast "i32")
  for i, x in ipairs(leaves) do
    leaves[i] = x:take(at, c.axis[i])
  end
  return most
end

local function take(c, xs, axis)
  local tree = trees.take_apart(op, xs, "xs")
  c.shape, c.paths, c.axis = tree.shape, tree.paths, {}
  if #tree.leaves == 0 then
    fail("ARG", op, nil, "xs has no tensor")
  end
  local n
  for i, x in ipairs(tree.leaves) do
    if not core.kind(x) then
      fail("ARG", op, nil, "%s is %s; a tensor with an axis to go along is needed", tree.paths[i], core.shown(x))
    elseif #x.shape == 0 then
      core.fail("ARG", op, ("%s is %s, which has no axis to go along"):format(tree.paths[i], describe(x)), nil,
        tree.paths[i], x)
    end
    c.axis[i] = core.control_axis(x, axis, op)
    local size = x.shape[c.axis[i]]
    if n and size ~= n then
      core.fail("ARG", op, ("%s has %s elements along axis %d, %s has %s along axis %d"):format(tree.paths[1],
        tostring(n), c.axis[1], tree.paths[i], tostring(size), c.axis[i]), nil, tree.paths[1], tree.leaves[1],
        tree.paths[i], x)
    end
    n = n or size
  end
  return tree.leaves, n
end

local associative = {}

function associative.associative_scan(f, xs, options)
  trees.check_function(op, "the first argument", f)
  core.options(op, options, "axis", "reverse")
  options = options or {}
  if options.reverse ~= nil and type(options.reverse) ~= "boolean" then
    fail("ARG", op, nil, "reverse is true or false, not %s", core.shown(options.reverse))
  end
  local c = { f = f }
  local leaves, n = take(c, xs, options.axis == nil and 1 or options.axis)
  for i, x in ipairs(leaves) do
    if options.reverse then
      leaves[i] = x:flip(c.axis[i])
    elseif not core.is_size(n) and n < 2 then -- a value of its own, of a parameter too
      leaves[i] = x:expand(x.shape)
    end
  end
  local all = run(c, leaves, core.is_size(n) and to_bound(c, leaves, n) or n)
  for i, x in ipairs(all) do
    x = core.control_names_differ(leaves[i], x) and x:reshape(describe(leaves[i]):match "%[.*") or x
    x = core.is_size(n) and x:slice { [c.axis[i]] = { 1, n } } or x
    all[i] = options.reverse and x:flip(c.axis[i]) or x
  end
  return trees.put_together(c.shape, all)
end

return core.entries(associative)
