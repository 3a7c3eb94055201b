-- Ranks: the processes that a launcher started with the same script, their mesh, what they do together, values in
-- parts. Annotations are in api/ranks.lua.

local _, core = ...
require "deepc.cells"
require "deepc.operands"

local ranks = {}

local describe = core.describe
local token -- a state: messages of traces read and set it, so they keep their order and stay

local function fail(op, text, ...)
  core.fail("SHARDING", op, text:format(...))
end

-- ---- the world and the mesh ----

function ranks.world()
  local rank, size, hosts = core.world()
  return { rank = rank, size = size, host = hosts[rank + 1], hosts = hosts, sent = core.sent() }
end

local function check_axis(name, size)
  if type(name) ~= "string" or not name:match "^[%a_][%w_]*$" then
    fail("mesh", "an axis has a name, not %s", describe(name))
  end
  if math.type(size) ~= "integer" or size < 1 then
    fail("mesh", "axis '%s' has a size from 1 on, not %s", name, core.shown(size))
  end
end

-- { data = 4, model = 2 } in the order of the names; { { "pipe", 2 }, { "data", 4 } } as it stands.
local function axes_of(sizes)
  local names, list = {}, {}
  if type(sizes) ~= "table" then
    fail("mesh", "axes and their sizes are needed, as in { data = 4 }, not %s", describe(sizes))
  end
  for i, axis in ipairs(sizes) do
    if type(axis) ~= "table" then
      fail("mesh", "axis %d of the list is no pair { \"data\", 4 }", i)
    end
    names[i], list[i] = axis[1], axis[2]
  end
  for name in pairs(#names > 0 and sizes or {}) do
    if math.type(name) ~= "integer" or name < 1 or name > #names then
      fail("mesh", "axes are a list of pairs or sizes by name: %s is beside a list", core.shown(name))
    end
  end
  if #names == 0 then
    for name in pairs(sizes) do
      names[#names + 1] = type(name) == "string" and name or fail("mesh", "an axis has a name, not %s", describe(name))
    end
    table.sort(names)
    for i, name in ipairs(names) do
      list[i] = sizes[name]
    end
  end
  if #names == 0 then
    fail("mesh", "a mesh has an axis at least, as in { data = 4 }")
  end
  return names, list
end

local function refuse_size(names, list, size, world)
  local axes, script = {}, arg and arg[0] or "train.lua"
  for i, name in ipairs(names) do
    axes[i] = ("%s = %d"):format(name, list[i])
  end
  core.fail("SHARDING", "mesh", ("{ %s } has places for %d ranks, and there %s"):format(table.concat(axes, ", "), size,
    world == 1 and "is 1" or ("are %d"):format(world)),
    ("deepc --ranks %d %s, or mpirun -n %d deepc %s, starts so many"):format(size, script, size, script))
end

-- deepc plan says how large the axes are that the script names.
local function take_planned(names, list, planned)
  local left = {}
  for name, size in pairs(planned) do
    left[name] = size
  end
  for i, name in ipairs(names) do
    list[i] = left[name] or fail("mesh", "--mesh says nothing of axis '%s'", name)
    left[name] = nil
  end
  local surplus = next(left)
  if surplus then
    fail("mesh", "--mesh names an axis '%s', which the mesh of the script has not", surplus)
  end
end

function ranks.mesh(sizes)
  local names, list = axes_of(sizes)
  local planned = core.plans()
  if type(planned) == "table" then
    take_planned(names, list, planned)
  end
  local size, seen = 1, {}
  for i, name in ipairs(names) do
    check_axis(name, list[i])
    if seen[name] then
      fail("mesh", "axis '%s' stands twice", name)
    end
    seen[name], size = true, size * list[i]
  end
  local rank, world = core.world()
  if size ~= world and not planned then
    refuse_size(names, list, size, world)
  end
  core.set_mesh(names, list)
  if not token then
    token = require "deepc".state("f32[]", 0)
    core.set_token(token)
  end
  local mesh = { axes = names, size = size, sizes = {}, place = {} }
  for i = #names, 1, -1 do
    mesh.sizes[names[i]], mesh.place[names[i]] = list[i], rank % list[i]
    rank = rank // list[i]
  end
  return mesh
end

-- ---- together ----

local handles = { tensor = true, param = true, state = true }
local combines = { sum = 0, max = 2, min = 3 }

local function read(op, options, more)
  options = options or {}
  if type(options) ~= "table" then
    fail(op, "options are { over = \"data\" }, not %s", describe(options))
  end
  for name in pairs(options) do
    if name ~= "over" and not (more and name == "op") then
      fail(op, "there is no option '%s'", tostring(name))
    end
  end
  local combine = combines[options.op or "sum"]
  if not combine then
    fail(op, "op is \"sum\", \"max\" or \"min\", not %s", core.shown(options.op))
  end
  return options.over, combine
end

local function axis_of(op, x, axis)
  return (core.control_axis(x, axis, op)) - 1
end

function ranks.all_reduce(x, options)
  local over, combine = read("all_reduce", options, true)
  local y = core.exchange("all_reduce", x, 0, combine, over)
  return y
end

function ranks.reduce_scatter(x, axis, options)
  local over, combine = read("reduce_scatter", options, true)
  local y = core.exchange("reduce_scatter", x, axis_of("reduce_scatter", x, axis), combine, over)
  return y
end

function ranks.all_gather(x, axis, options)
  local over = read("all_gather", options)
  local y = core.exchange("all_gather", x, axis_of("all_gather", x, axis), 0, over)
  return y
end

function ranks.all_to_all(x, axis, to, options)
  local over = read("all_to_all", options)
  local y = core.exchange("all_to_all", x, axis_of("all_to_all", x, axis), axis_of("all_to_all", x, to), over)
  return y
end

function ranks.broadcast(x, from, options)
  local over = read("broadcast", options)
  if math.type(from) ~= "integer" or from < 0 then
    fail("broadcast", "the number of a rank from 0 on is needed, not %s", core.shown(from))
  end
  local y = core.exchange("broadcast", x, 0, from, over)
  return y
end

-- ---- messages ----

-- The number of the other one, which may be this rank where `alone`, and the axes.
local function peer(op, options, name, also, alone)
  if type(options) ~= "table" then
    fail(op, "options are { %s = 1, over = \"pipe\" }, not %s", name, describe(options))
  end
  for key in pairs(options) do
    if key ~= "over" and key ~= name and key ~= also then
      fail(op, "there is no option '%s'", tostring(key))
    end
  end
  local other = options[name]
  local me, n = core.mesh_group(op, options.over)
  if math.type(other) ~= "integer" then
    fail(op, "%s is the number of a rank from 0 on, not %s", name, core.shown(other))
  elseif other < 0 or other >= n then
    fail(op, "there is no rank %d of %d: they count from 0", other, n)
  elseif other == me and not alone then
    fail(op, "rank %d would wait for itself", me)
  end
  return other, options.over
end

function ranks.send(x, options)
  local to, over = peer("send", options, "to")
  local y = core.send(x, to, over, token)
  return y
end

function ranks.recv(type_text, options)
  local from, over = peer("recv", options, "from")
  if type(type_text) ~= "string" then
    fail("recv", "the type of what comes is needed, as in \"f32[64, 128]\", not %s", describe(type_text))
  end
  local y = core.recv(type_text, from, over, token)
  return y
end

-- A ring of one rank.
local function is_itself(options)
  if type(options) ~= "table" or options.to ~= options.from or math.type(options.to) ~= "integer" then
    return false
  end
  local me = core.mesh_group("send_recv", options.over)
  return options.to == me
end

function ranks.send_recv(x, options)
  local alone = is_itself(options)
  local to, over = peer("send_recv", options, "to", "from", alone)
  local from = peer("send_recv", options, "from", "to", alone)
  if not handles[core.kind(x)] then
    core.fail("ARG", "send_recv", ("a tensor is needed, not %s"):format(describe(x)))
  end
  if alone then
    local y = x:cast(x.dtype) -- of a state its value now
    return y
  end
  local sent = core.send(x, to, over, token)
  local y = core.recv(("%s[%s]"):format(x.dtype, table.concat(x.shape, ", ")), from, over, token)
  local float = core.is_float(x.dtype)
  return float and y - sent:cast(x.dtype) or y -- who differentiates what came differentiates what went, too
end

function ranks.barrier()
  core.barrier "barrier"
end

-- ---- parts ----

function ranks.reshard(x, type_text)
  local y = core.reshard(x, type_text)
  return y
end

function ranks.part(x, type_text)
  local y = core.part(x, type_text)
  return y
end

-- What all ranks have of a cell in parts, or of a tensor whose whole type is given.
function ranks.whole(x, type_text)
  local axes
  if not handles[core.kind(x)] then
    core.fail("ARG", "whole", ("a tensor, a parameter or a state is needed, not %s"):format(describe(x)))
  elseif type_text == nil then
    local _, _, split = core.cell_split(x)
    axes = split or {}
    if not split and core.kind(x) == "tensor" then
      fail("whole", "the type of the whole value is needed, as in \"f32[64 @ data, 10]\"")
    end
  else
    axes = core.type_split(x, type_text)
  end
  for axis, names in ipairs(axes) do
    if #names > 0 then
      x = core.exchange("all_gather", x, axis - 1, 0, table.concat(names, "+"))
    end
  end
  return x
end

local function each_cell(op, what)
  local list = {}
  if core.kind(what) == "param" or core.kind(what) == "state" then
    list[1] = { name = "", cell = what }
    return list
  end
  for _, entry in ipairs(core.cells.collect(op, what)) do
    list[#list + 1] = { name = entry.name, cell = entry.value }
  end
  return list
end

-- Types by patterns of names, in the order of the patterns: { pattern, what it means to Lua, type }.
local function read_patterns(spec)
  local list = {}
  for pattern, text in pairs(spec) do
    if type(pattern) ~= "string" or type(text) ~= "string" then
      fail("shard", 'types by name are texts, as in { ["*.weight"] = "[784, 256 @ model]" }, not %s = %s',
        core.shown(pattern), core.shown(text))
    end
    local lua = "^" .. pattern:gsub("[%^%$%(%)%%%.%[%]%+%-%?]", "%%%0"):gsub("%*", ".*") .. "$"
    list[#list + 1] = { pattern = pattern, lua = lua, text = text }
  end
  table.sort(list, function(a, b) return a.pattern < b.pattern end)
  return list
end

-- The longest pattern that fits the name.
local function fitting(patterns, name)
  local best
  for _, x in ipairs(patterns) do
    best = name:match(x.lua) and (not best or #x.pattern > #best.pattern) and x or best
  end
  return best
end

-- The first axis that the ranks along an axis of the mesh can share; nil: there is none.
local function spread(cell, axis)
  local n = core.mesh_size(axis)
  local dims, done = {}, false
  for k, size in ipairs(cell.shape) do
    local here = not done and n > 1 and size % n == 0 and size > 0
    dims[k] = here and ("%d @ %s"):format(size, axis) or tostring(size)
    done = done or here
  end
  return done and "[" .. table.concat(dims, ", ") .. "]" or nil
end

local function shard_cell(cell, text)
  if text:match "^%s*%[" then
    text = cell.dtype .. text
  end
  core.shard_cell(cell, text)
end

function ranks.shard(what, spec)
  local cells = each_cell("shard", what)
  if type(spec) == "string" and spec:match "^[%a_][%w_]*$" then
    for _, x in ipairs(cells) do
      local text = spread(x.cell, spec)
      if text then
        shard_cell(x.cell, text)
      end
    end
    return what
  end
  if type(spec) == "string" then
    for _, x in ipairs(cells) do
      shard_cell(x.cell, spec)
    end
    return what
  elseif type(spec) ~= "table" then
    fail("shard", "a type, an axis of the mesh or a table of types by name is needed, not %s", describe(spec))
  end
  local patterns, chosen, used = read_patterns(spec), {}, {}
  for i, x in ipairs(cells) do
    chosen[i] = fitting(patterns, x.name) or false
    used[chosen[i]] = true
  end
  for _, x in ipairs(patterns) do
    if not used[x] then
      fail("shard", "nothing has a name like '%s'", x.pattern)
    end
  end
  for i, x in ipairs(cells) do
    if chosen[i] then
      shard_cell(x.cell, chosen[i].text)
    end
  end
  return what
end

return core.entries(ranks)
