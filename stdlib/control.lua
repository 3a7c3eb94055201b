-- dc.scan, dc.loop, dc.fori, dc.map, dc.cond, dc.switch. Their annotations are in api/control.lua.
--
-- While a function is traced a body is called once, on stand-ins, and becomes a loop or a branch of the graph
-- (dsl/control/). Elsewhere it is called as often as the loop runs. Checks and errors are the same.
--
-- A tree is a tensor, or a plain table of trees. Taken apart it is a list of tensors, its leaves, with the path of
-- each, and a shape: LEAF, NONE for nil, or { keys =, parts = }.

local dc = require "deepc"
require "deepc.operands"
local _, core = ...

local control = {}

local describe = core.describe
local LEAF, NONE = "leaf", "none"
local MOST = 2147483647
local DEEP = 100

local function fail(row, op, hint, text, ...)
  core.fail(row, op, text:format(...), hint)
end

-- ---- trees ----

local function is_name(key)
  return type(key) == "string"
end

-- The keys of a record in the order of the alphabet, or 1 to n.
local function keys_of(op, t, path)
  local keys, names = {}, 0
  for key in next, t do
    if not is_name(key) and math.type(key) ~= "integer" then
      fail("ARG", op, nil, "a key of %s is %s; names, or whole numbers from 1, are needed", path, describe(key))
    end
    keys[#keys + 1] = key
    names = names + (is_name(key) and 1 or 0)
  end
  if names > 0 and names < #keys then
    fail("ARG", op, nil, "%s has names and numbers as keys; it is a record or a list", path)
  end
  table.sort(keys)
  for i, key in ipairs(keys) do
    if names == 0 and key ~= i then
      fail("ARG", op, nil, "the list %s has no element %d", path, i)
    end
  end
  return keys
end

local function path_to(path, key)
  return is_name(key) and ("%s.%s"):format(path, key) or ("%s[%d]"):format(path, key)
end

local function scalar(v)
  return type(v) == "number" or type(v) == "boolean"
end

local function add(op, tree, v, path, depth)
  if core.kind(v) or scalar(v) then
    tree.leaves[#tree.leaves + 1] = v
    tree.paths[#tree.leaves] = path
    return LEAF
  elseif depth == DEEP then
    fail("ARG", op, nil, "%s is more than %d tables deep; does it hold itself?", path:match "^[^.%[]*", DEEP)
  elseif type(v) ~= "table" or getmetatable(v) ~= nil then
    fail("ARG", op, nil, "%s is %s; a tensor, a number, or a table of these is needed", path, describe(v))
  end
  local shape = { keys = keys_of(op, v, path), parts = {} }
  for i, key in ipairs(shape.keys) do
    shape.parts[i] = add(op, tree, v[key], path_to(path, key), depth + 1)
  end
  return shape
end

-- What v is made of, under this name.
local function take_apart(op, v, name)
  local tree = { leaves = {}, paths = {} }
  tree.shape = v == nil and NONE or add(op, tree, v, name, 0)
  return tree
end

local function join(shape, leaves, at)
  if shape == NONE then
    return nil
  elseif shape == LEAF then
    at[1] = at[1] + 1
    return leaves[at[1]]
  end
  local t = {}
  for i, key in ipairs(shape.keys) do
    t[key] = join(shape.parts[i], leaves, at)
  end
  return t
end

local function put_together(shape, leaves)
  return join(shape, leaves, { 0 })
end

local function kind_of(shape)
  return shape == LEAF and "a tensor" or shape == NONE and "nil" or is_name(shape.keys[1]) and "a record" or
    shape.keys[1] and "a list" or "an empty table"
end

-- The first place where two shapes differ: its path, and what is there in each; nil: they are equal.
local function compare(a, b, path)
  if type(a) ~= "table" or type(b) ~= "table" then
    if a ~= b then
      return path, kind_of(a), kind_of(b)
    end
    return nil
  end
  local i, k = 1, 1
  while i <= #a.keys or k <= #b.keys do
    local x, y = a.keys[i], b.keys[k]
    if x == y then
      local where, was, is = compare(a.parts[i], b.parts[k], path_to(path, x))
      if where then
        return where, was, is
      end
      i, k = i + 1, k + 1
    elseif type(x) ~= type(y) and x ~= nil and y ~= nil then
      return path, kind_of(a), kind_of(b)
    elseif y == nil or (x ~= nil and x < y) then
      return path_to(path, x), kind_of(a.parts[i]), "nil"
    else
      return path_to(path, y), "nil", kind_of(b.parts[k])
    end
  end
end

-- A number becomes a tensor: of the type of `like`, a scalar, where there is one. A cell becomes its value.
local function tensor(op, v, like)
  if not scalar(v) then
    return core.control_read(v, op)
  elseif like ~= nil and #like.shape == 0 then
    return dc.full(like, v)
  end
  return dc.full(type(v) == "boolean" and "bool[]" or "f32[]", v)
end

local function make_tensors(op, tree, like)
  for i, v in ipairs(tree.leaves) do
    tree.leaves[i] = tensor(op, v, like and like.leaves[i])
  end
end

local function read_cells(op, tree)
  for i, v in ipairs(tree.leaves) do
    tree.leaves[i] = scalar(v) and v or core.control_read(v, op)
  end
end

-- ---- functions ----

local function check_function(op, what, f)
  if not core.control_callable(f) then
    fail("ARG", op, nil, "%s is a function, not %s", what, describe(f))
  end
end

-- "the body at train.lua:12"
local function name_of(what, f)
  local where = core.control_where(f)
  return where and ("%s at %s"):format(what, where) or what
end

local function size(op, n, what)
  if core.is_size(n) then
    return n
  end
  if math.type(n) == "float" and n == math.floor(n) then
    n = math.tointeger(n)
  end
  if math.type(n) ~= "integer" then
    fail("ARG", op, nil, "%s is a whole number, not %s", what, core.shown(n))
  elseif n < 0 or n > MOST then
    fail("ARG", op, nil, "%s is %d; it is 0 to %d", what, n, MOST)
  end
  return n
end

-- ---- carries ----

local because = {
  dtype = "a carry keeps its type: cast it where it is made, or init",
  shape = "a carry keeps its shape from one iteration to the next",
  names = "x:rename and x:reshape give other names",
}

-- Is what a body returned like the carry that it was given? Numbers become tensors.
local function check_next(c, init, next)
  local path, was, is = compare(init.shape, next.shape, "carry")
  if path then
    fail("CONTROL", c.op, "the body returns the carry in the form that it has in init",
      "%s returns a carry of another form: %s is %s, and was %s", name_of("the body", c.body), path, is, was)
  end
  make_tensors(c.op, next, init)
  for i, was_one in ipairs(init.leaves) do
    local differs = core.control_differs(was_one, next.leaves[i])
    if differs then
      core.fail("CONTROL", c.op, ("%s changes the %s of %s: %s becomes %s"):format(name_of("the body", c.body),
        differs == "names" and "names" or differs, init.paths[i], describe(was_one), describe(next.leaves[i])),
        because[differs], "before", was_one, "after", next.leaves[i])
    end
  end
end

local function check_count(c, n, most, needed)
  if n < needed or n > most then
    local text = n == 0 and "nothing" or ("%d value%s"):format(n, n == 1 and "" or "s")
    fail("CONTROL", c.op, c.returns, "%s returns %s; %s", name_of("the body", c.body), text, c.needs)
  end
end

-- The results of a body, taken apart.
local function take_results(c, init, ...)
  local n = select("#", ...)
  local carry, y = ...
  if c.only_y then
    check_count(c, n, 1, 1)
    carry, y = nil, carry
  else
    check_count(c, n, c.stacks and 2 or 1, init.shape == NONE and 0 or 1)
  end
  local next, ys = take_apart(c.op, carry, "carry"), take_apart(c.op, y, "y")
  check_next(c, init, next)
  make_tensors(c.op, ys)
  return next, ys
end

local function call_body(c, init, carry, x, i)
  if c.counts then
    return take_results(c, init, core.control_call(c.body, i, carry))
  end
  local args = c.only_y and { n = 1, x } or c.stacks and { n = 2, carry, x } or { n = 1, carry }
  if core.control_counts(c.body) then
    args.n = args.n + 1
    args[args.n] = i
  end
  return take_results(c, init, core.control_call(c.body, table.unpack(args, 1, args.n)))
end

-- A condition, on this carry.
local function call_test(c, carry, i)
  local p
  if core.control_counts(c.test) then
    p = core.control_call(c.test, carry, i)
  else
    p = core.control_call(c.test, carry)
  end
  if not core.kind(p) or p.dtype ~= "bool" or #p.shape > 0 then
    fail("CONTROL", c.op, scalar(p) and "x:lt(y), x:eq(y) ... compare tensors" or
      core.kind(p) and p.dtype == "bool" and ":any() or :all()" or nil,
      "%s returns %s; a bool[] is needed", name_of("the condition", c.test), describe(p))
  end
  return p
end

-- ---- loops in a trace ----

local function trace_loop(c, init, xs)
  local body <close> = core.control_begin(c.op, true)
  local stand = core.control_stand_ins(body, init.leaves, false)
  local element = core.control_stand_ins(body, xs.leaves, true)
  local i = core.control_number(body)
  local carry = put_together(init.shape, stand)
  if c.test then
    core.control_test(body, call_test(c, carry, i))
    carry = put_together(init.shape, stand)
  end
  local next, ys = call_body(c, init, carry, put_together(xs.shape, element), i)
  local last, stacked = core.control_loop(body, {
    init = init.leaves, stand = stand, next = next.leaves, xs = xs.leaves, element = element, ys = ys.leaves,
    n = c.n, reverse = c.reverse, remat = c.remat, limit = c.limit,
  })
  return last, stacked, ys.shape
end

-- ---- loops as loops ----

local function cut(xs, at)
  local leaves = {}
  for i, x in ipairs(xs.leaves) do
    leaves[i] = x[at]
  end
  return put_together(xs.shape, leaves)
end

-- The names of dims that the carry began with.
local function keep_names(init, next)
  for i, was in ipairs(init.leaves) do
    if core.control_names_differ(was, next.leaves[i]) then
      next.leaves[i] = next.leaves[i]:reshape(describe(was):match "%[.*")
    end
  end
end

-- y of the first iteration, and of this one.
local function check_ys(c, first, ys)
  local path, was, is = compare(first.shape, ys.shape, "y")
  if path then
    fail("CONTROL", c.op, nil, "%s returns a y of another form: %s is %s, and was %s", name_of("the body", c.body),
      path, is, was)
  end
  for i, y in ipairs(first.leaves) do
    local differs = core.control_differs(y, ys.leaves[i])
    if differs then
      core.fail("CONTROL", c.op, ("%s changes the %s of %s: %s becomes %s"):format(name_of("the body", c.body),
        differs, first.paths[i], describe(y), describe(ys.leaves[i])), nil, "before", y, "after", ys.leaves[i])
    end
  end
end

-- The name of axis 1 of the xs.
local function stack_name(xs)
  for _, x in ipairs(xs.leaves) do
    local name = describe(x):match "%[([%a_][%w_]*)="
    if name then
      return name
    end
  end
end

local function stack(xs, list)
  local y, name = dc.stack(list, 1), stack_name(xs)
  if name and not describe(y):find("[%[ ]" .. name .. "=") then
    return y:reshape(("[%s=%s]"):format(name, table.concat(y.shape, ", ")))
  end
  return y
end

-- Without an iteration a trace tells the types of what would be stacked.
local function stack_nothing(c, init, xs)
  local found = {}
  dc.fn(c.op .. "() -> ()", function()
    local _, stacked, shape = trace_loop(c, init, xs)
    found.shape = shape
    for i, y in ipairs(stacked) do
      found[i] = describe(y)
    end
  end)
  for i, text in ipairs(found) do
    found[i] = dc.zeros(text)
  end
  return put_together(found.shape, found)
end

local function run_loop(c, init, xs)
  local next, first, lists = init, nil, {}
  local n = c.limit and math.min(c.n, math.max(0, c.limit:item())) or c.n
  if n == 0 and c.stacks then
    return put_together(init.shape, init.leaves), stack_nothing(c, init, xs)
  end
  if c.test and core.checking() then -- without values it may never end
    n = math.min(n, 1)
  end
  for k = 0, n - 1 do
    local at = c.reverse and n - 1 - k or k
    local i = dc.full("i32[]", at)
    if c.test and not call_test(c, put_together(init.shape, next.leaves), i):item() then
      break
    end
    local ys
    next, ys = call_body(c, init, put_together(init.shape, next.leaves), cut(xs, at + 1), i)
    keep_names(init, next)
    first = first or ys
    check_ys(c, first, ys)
    for j, y in ipairs(ys.leaves) do
      lists[j] = lists[j] or {}
      lists[j][at + 1] = y
    end
  end
  local stacked = {}
  for j, list in ipairs(lists) do
    stacked[j] = stack(xs, list)
  end
  return put_together(init.shape, next.leaves), first and put_together(first.shape, stacked)
end

local function run(c, init, xs)
  local start = take_apart(c.op, init, "init")
  for i, path in ipairs(start.paths) do
    start.paths[i] = path:gsub("^init", "carry")
  end
  make_tensors(c.op, start)
  if core.tracing() then
    local last, stacked, shape = trace_loop(c, start, xs)
    return put_together(start.shape, last), put_together(shape, stacked)
  end
  return run_loop(c, start, xs)
end

-- ---- dc.scan, dc.map ----

-- How many elements the xs have along axis 1: all the same.
local function length_of(op, xs, given)
  local n, first
  for i, x in ipairs(xs.leaves) do
    if scalar(x) then
      fail("ARG", op, nil, "%s is %s; a tensor with an axis to go along is needed", xs.paths[i], core.shown(x))
    elseif #x.shape == 0 then
      core.fail("ARG", op, ("%s is %s, which has no axis to go along"):format(xs.paths[i], describe(x)), nil,
        xs.paths[i], x)
    elseif n and x.shape[1] ~= n then
      core.fail("ARG", op, ("%s has %s elements along axis 1, %s has %s"):format(xs.paths[first], n, xs.paths[i],
        x.shape[1]), nil, xs.paths[first], xs.leaves[first], xs.paths[i], x)
    end
    n, first = n or x.shape[1], first or i
  end
  if n and given and n ~= given then
    core.fail("ARG", op, ("length is %s, %s has %s elements along axis 1"):format(given, xs.paths[first], n), nil,
      xs.paths[first], xs.leaves[first])
  elseif not n and not given then
    fail("ARG", op, "{ length = n } without xs", "there are no xs and no length, so nothing tells how often it runs")
  end
  return n or given
end

local function flag(op, v, name)
  if v ~= nil and type(v) ~= "boolean" then
    fail("ARG", op, nil, "%s is true or false, not %s", name, core.shown(v))
  end
  return v == true
end

function control.scan(body, init, xs, options)
  local op = "scan"
  check_function(op, "the first argument", body)
  core.options(op, options, "reverse", "length", "remat")
  options = options or {}
  local c = { op = op, body = body, stacks = true, reverse = flag(op, options.reverse, "reverse"),
    remat = flag(op, options.remat, "remat"),
    needs = "the next carry is needed, then what is stacked", returns = "return carry, y" }
  local tree = take_apart(op, xs, "xs")
  read_cells(op, tree)
  c.n = length_of(op, tree, options.length ~= nil and size(op, options.length, "length") or nil)
  local last, ys = run(c, init, tree)
  if ys == nil then
    return last
  end
  return last, ys
end

function control.map(f, xs)
  local op = "map"
  check_function(op, "the first argument", f)
  local c = { op = op, body = f, stacks = true, only_y = true, needs = "one is needed", returns = nil }
  local tree = take_apart(op, xs, "xs")
  read_cells(op, tree)
  c.n = length_of(op, tree)
  local _, ys = run(c, nil, tree)
  return ys
end

-- ---- dc.loop, dc.fori ----

local empty = { shape = NONE, leaves = {}, paths = {} }

function control.loop(test, body, init, options)
  local op = "loop"
  check_function(op, "the first argument", test)
  check_function(op, "the second argument", body)
  core.options(op, options, "max", "remat")
  local c = { op = op, body = body, test = test, n = MOST, needs = "the next carry is needed",
    remat = flag(op, options and options.remat, "remat") }
  if options and options.max ~= nil then
    c.n = size(op, options.max, "max")
  end
  return (run(c, init, empty))
end

function control.fori(n, body, init, options)
  local op = "fori"
  check_function(op, "the second argument", body)
  core.options(op, options, "max", "remat")
  local c = { op = op, body = body, counts = true, needs = "the next carry is needed",
    remat = flag(op, options and options.remat, "remat") }
  if options and options.max ~= nil then
    c.n = size(op, options.max, "max")
  end
  if core.kind(n) then
    local count = #n.shape == 0 and core.counts_of(n)
    if not count then
      core.fail("ARG", op, ("the number of iterations is %s; a whole number or an i32[] is needed"):format(describe(n)),
        #n.shape == 0 and ':cast "i32"' or nil, "of", n)
    end
    c.limit, c.n = core.control_read(count, op), c.n or MOST
  else
    local times = size(op, n, "the number of iterations")
    c.n = core.is_size(times) and times or math.min(times, c.n or times)
  end
  return (run(c, init, empty))
end

-- ---- dc.cond, dc.switch ----

-- The results of a side, taken apart: a list of trees.
local function call_side(op, f, ...)
  local results = table.pack(core.control_call(f, ...))
  local side = { leaves = {}, paths = {}, shapes = {}, n = results.n }
  for i = 1, results.n do
    local tree = take_apart(op, results[i], ("result %d"):format(i))
    side.shapes[i] = tree.shape
    for k, leaf in ipairs(tree.leaves) do
      side.leaves[#side.leaves + 1] = leaf
      side.paths[#side.leaves] = tree.paths[k]
    end
  end
  return side
end

local function give(side, leaves)
  local at, results = { 0 }, {}
  for i = 1, side.n do
    results[i] = join(side.shapes[i], leaves, at)
  end
  return table.unpack(results, 1, side.n)
end

-- Are the results of this side like those of the first one? Numbers become tensors of its types.
local function check_side(c, first, side, k)
  local name, other = name_of(c.names[k] or c.names.any:format(k), c.list[k]), c.names[1]
  if side.n ~= first.n then
    fail("CONTROL", c.op, "all sides return the same", "%s returns %d value%s, %s %d", name, side.n,
      side.n == 1 and "" or "s", other, first.n)
  end
  for i = 1, first.n do
    local path, was, is = compare(first.shapes[i], side.shapes[i], ("result %d"):format(i))
    if path then
      fail("CONTROL", c.op, "all sides return the same", "%s of %s is %s, of %s %s", path, name, is, other, was)
    end
  end
  make_tensors(c.op, side, first)
  for i, leaf in ipairs(first.leaves) do
    local differs = core.control_differs(leaf, side.leaves[i])
    if differs then
      core.fail("CONTROL", c.op, ("%s of %s is %s, of %s %s"):format(first.paths[i], name, describe(side.leaves[i]),
        other, describe(leaf)), "all sides return the same types", other, leaf,
        c.names[k] or c.names.any:format(k), side.leaves[i])
    end
  end
end

-- The list of functions from lo to hi: the leaves of what they return. pick(k): is it one of the first k?
local function trace_sides(c, lo, hi, pick, ...)
  if lo == hi then
    local side = call_side(c.op, c.list[lo], ...)
    if c.first then
      check_side(c, c.first, side, lo)
    else
      make_tensors(c.op, side)
      c.first = side
    end
    return side.leaves
  end
  local mid = (lo + hi) // 2
  local p = pick(mid)
  local yes, no
  do
    local body <close> = core.control_begin(c.op, false)
    core.control_side(body, trace_sides(c, lo, mid, pick, ...))
    yes = body
  end
  do
    local body <close> = core.control_begin(c.op, false)
    core.control_side(body, trace_sides(c, mid + 1, hi, pick, ...))
    no = body
  end
  return core.control_branch(yes, no, p)
end

local function plain_side(op, f, ...)
  local side = call_side(op, f, ...)
  make_tensors(op, side)
  return give(side, side.leaves)
end

function control.cond(p, yes, no, ...)
  local op = "cond"
  check_function(op, "the second argument", yes)
  check_function(op, "the third argument", no)
  if type(p) == "boolean" then
    return plain_side(op, p and yes or no, ...)
  elseif not core.kind(p) or p.dtype ~= "bool" or #p.shape > 0 then
    core.fail("ARG", op, ("the condition is %s; a bool[] or a boolean is needed"):format(describe(p)),
      core.kind(p) and (p.dtype == "bool" and "p:any(), p:all(); dc.where(p, a, b) chooses element by element" or
      "x:gt(0), x:eq(y) ... compare") or nil, "of", p)
  elseif not core.tracing() then
    return plain_side(op, p:item() and yes or no, ...)
  end
  p = core.control_read(p, op)
  local c = { op = op, list = { yes, no }, names = { "the side for true", "the side for false" } }
  local leaves = trace_sides(c, 1, 2, function() return p end, ...)
  return give(c.first, leaves)
end

local integers = { i8 = true, i16 = true, i32 = true, i64 = true, u8 = true, u16 = true, u32 = true, u64 = true }

function control.switch(i, list, ...)
  local op = "switch"
  if type(list) ~= "table" or getmetatable(list) ~= nil then
    fail("ARG", op, nil, "a list of functions is needed, not %s", describe(list))
  elseif #list == 0 then
    fail("ARG", op, nil, "the list of functions is empty")
  end
  for k = 1, #list do
    check_function(op, ("number %d of the list"):format(k), list[k])
  end
  local last = #list - 1
  if math.type(i) == "integer" then
    return plain_side(op, list[math.max(0, math.min(last, i)) + 1], ...)
  elseif not core.kind(i) or not integers[i.dtype] or #i.shape > 0 then
    core.fail("ARG", op, ("the index is %s; an i32[] or a whole number is needed"):format(describe(i)),
      core.kind(i) and #i.shape == 0 and ':cast "i32"' or nil, "of", i)
  elseif not core.tracing() then
    return plain_side(op, list[math.max(0, math.min(last, i:item())) + 1], ...)
  end
  local c = { op = op, list = table.move(list, 1, #list, 1, {}), names = { "function 1", any = "function %d" } }
  local leaves = trace_sides(c, 1, #list, function(k) return i:lt(k) end, ...)
  return give(c.first, leaves)
end

-- For vmap.lua.
core.trees = {
  LEAF = LEAF, NONE = NONE, DEEP = DEEP, fail = fail, keys_of = keys_of, path_to = path_to, scalar = scalar,
  take_apart = take_apart, put_together = put_together, compare = compare, make_tensors = make_tensors,
  check_function = check_function, name_of = name_of, size = size,
}

return core.entries(control)
