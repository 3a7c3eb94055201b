-- The data of the page of deepc.viz: a table that becomes JSON.
--
--   { format = 1, script, command, error, version, device, cpu, date, seconds, rank, peak = { gflops, gbs },
--     strings = { ... },            texts that others name by their number, from 0
--     sources = { { name, text } }, scripts whose lines are named
--     functions = { { name, where, calls, ns, ..., parts, nodes, commands, kernels, temps } } }
--
-- Nodes are lists of numbers, since there may be thousands:
--
--   { op, class, type, part, { operand, ... }, attributes, { line, path, ... }, label, role, home, bytes, work }
--
-- of which op, class, type, attributes, lines, paths, label and role are strings; home is the command that stores it,
-- or -1. Numbers of nodes, commands, parts and kernels count from 0.

local _, core = ...

local attributes = require "deepc.viz.attributes"
require "deepc.wall"

local FORMS = { "nest", "schedule", "flat", "text" }
local SOURCE_BYTES, SOURCE_KERNELS = 6 << 20, 1000 -- of all texts of kernels; kernels that have them

-- ---- strings ----

local function new_strings()
  local list, number = {}, {}
  local function add(text)
    text = text or ""
    if not number[text] then
      list[#list + 1] = text
      number[text] = #list - 1
    end
    return number[text]
  end
  return list, add
end

local function add_all(add, texts)
  local out = {}
  for i, text in ipairs(texts) do
    out[i] = add(text)
  end
  return out
end

-- ---- functions ----

local function map(list, f, ...)
  local out = {}
  for i, v in ipairs(list) do
    out[i] = f(v, ...)
  end
  return out
end

-- In the page what is numbered counts from 0.
local function from_zero(number)
  return number and number - 1
end

local function node_of(n, add)
  return {
    add(n.op), add(n.class), add(n.type), n.part - 1, map(n.ins, from_zero), add(attributes(n)),
    add_all(add, n.origins), add(n.label), add(n.role), (n.home or 0) - 1, n.bytes, n.work,
  }
end

local function part_of(p)
  return {
    kind = p.kind, parent = from_zero(p.parent), node = from_zero(p.node),
    results = map(p.results, function(r)
      return { role = r.role, node = r.node - 1, cell = from_zero(r.cell) }
    end),
  }
end

local function temp_of(t)
  return {
    offset = t.offset, bytes = t.bytes, first = t.first - 1, last = t.last - 1, node = from_zero(t.node),
    inner = t.inner,
  }
end

local function command_of(c, add)
  return {
    kind = c.kind, label = c.label, kernel = from_zero(c.kernel), grid = c.grid, flops = c.flops, bytes = c.bytes,
    ns = c.ns, runs = c.runs, body = c.body > 0 and c.body or nil, otherwise = c.otherwise > 0 and c.otherwise or nil,
    prologue = c.prologue, bounded = c.bounded, inside = c.inside, lines = add_all(add, c.lines),
    writes = add_all(add, c.writes), reads = add_all(add, c.reads), nodes = map(c.nodes or {}, from_zero),
  }
end

local function kernel_of(k)
  return {
    name = k.name, launches = k.launches, calls = k.calls, ms = k.ms, gflops = k.gflops, gbs = k.gbs, flops = k.flops,
    bytes = k.bytes, lines = k.lines, gain = k.gain,
  }
end

local plain = {
  "name", "where", "device", "lazy", "interpreted", "calls", "prologues", "ns", "launches", "copies", "arena", "least",
  "derived_bytes", "parameters", "results", "derived", "exact",
}

local function function_of(e, add)
  local f = {}
  for _, key in ipairs(plain) do
    f[key] = e[key]
  end
  f.nodes, f.parts, f.temps = map(e.nodes, node_of, add), map(e.parts, part_of), map(e.temps, temp_of)
  f.commands = map(e.commands, command_of, add)
  f.kernels = map(e.kernels, kernel_of)
  return f
end

-- The kernels that took longest, of all functions, have their texts, as far as there is room.
local function add_kernel_texts(functions, executables, add)
  local order, room = {}, SOURCE_BYTES
  for n, f in ipairs(functions) do
    for i, kernel in ipairs(f.kernels) do
      order[#order + 1] = { kernel = kernel, exec = executables[n].exec, i = i, place = #order }
    end
  end
  table.sort(order, function(a, b)
    if a.kernel.ms ~= b.kernel.ms then
      return a.kernel.ms > b.kernel.ms
    end
    return a.place < b.place
  end)
  for place, at in ipairs(order) do
    if place > SOURCE_KERNELS or room <= 0 then
      return
    end
    for _, form in ipairs(FORMS) do
      local text = core.executable_source(at.exec, at.i, form)
      room = room - #text
      at.kernel[form] = add(text)
    end
  end
end

-- ---- sources ----

-- The files that lines name, "train.lua:15".
local function add_files(names, e)
  local function add(where)
    local name = where and where:match "^(.*):%d+$"
    if name then
      names[name] = true
    end
  end
  add(e.where)
  for _, n in ipairs(e.nodes) do
    for i = 1, #n.origins, 2 do
      add(n.origins[i])
    end
  end
  for _, c in ipairs(e.commands) do
    for _, line in ipairs(c.lines) do
      add(line)
    end
  end
end

local function read(path)
  local file = io and io.open(path, "rb")
  local text = file and file:read "a"
  if file then
    file:close()
  end
  return text
end

-- Lua cuts long names of files: "...end/of/a/path.lua". They are those of the script or of what it has required.
local function whole_path(name, script)
  local tail = name:match "^%.%.%.(.+)$"
  if not tail then
    return name
  end
  local list = { script }
  for module in pairs(package and package.loaded or {}) do
    list[#list + 1] = type(module) == "string" and package.searchpath(module, package.path) or nil
  end
  for _, path in ipairs(list) do
    if path:sub(-#tail) == tail then
      return path
    end
  end
  return name
end

local function sources_of(names, script)
  local list, out = {}, {}
  for name in pairs(names) do
    list[#list + 1] = name
  end
  table.sort(list, function(a, b)
    if (a == script) ~= (b == script) then
      return a == script
    end
    return a < b
  end)
  for _, name in ipairs(list) do
    local text = read(whole_path(name, script or name))
    if text and #text < 4 << 20 then
      out[#out + 1] = { name = name, text = text }
    end
  end
  return out
end

-- ---- the whole ----

local function cpu_name()
  local text = read "/proc/cpuinfo" or ""
  return text:match "model name%s*:%s*([^\n]+)"
end

---@param about table script, command, error, seconds, peak; others are added
---@return table
return function(about)
  local strings, add = new_strings()
  local names, functions, executables = {}, {}, core.executables()
  for i, e in ipairs(executables) do
    add_files(names, e)
    functions[i] = function_of(e, add)
  end
  add_kernel_texts(functions, executables, add)
  local machine = core.viz_machine()
  about.format = 1
  about.device, about.rank = machine.device, machine.rank
  about.cpu, about.date = cpu_name(), core.wall_date "%Y-%m-%d %H:%M"
  about.sources = sources_of(names, about.script)
  about.functions, about.strings = functions, strings
  return about
end
