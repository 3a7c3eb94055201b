-- net:summary: what a network is made of, by tracing it: a tree of the layers in the order in which they are called,
-- with the types they return, their own parameters and states, what they compute and return, and sums over all.
-- Nothing is computed.

local dc = require "deepc"
local nn = require "deepc.nn.class"
local _, core = ...

local Layer = core.Layer

-- ---- summary ----

local function type_of(t)
  return ("%s[%s]"):format(t.dtype, core.sizes(t.shape))
end

-- "f32[64, 10]", "f32[4, 8], f32[8]"
local function types_of(values)
  local list = {}
  for i = 1, values.n do
    local v = values[i]
    list[i] = core.kind(v) and type_of(v) or type(v) == "table" and "{...}" or tostring(v)
  end
  return table.concat(list, ", ")
end

-- At most, where it depends on a state that grows.
local function most_of(size)
  if not core.is_size(size) then
    return size
  end
  local _, most = core.size_range(size)
  return most
end

local function count_of(cell)
  local n = 1
  for _, size in ipairs(cell.shape) do
    n = n * most_of(size)
  end
  return n
end

local function bytes_of(cell)
  return count_of(cell) * ((tonumber(cell.dtype:match "%d+") or 8) // 8)
end

-- The layers below, this one included, each with its path and the cells that are its own, not those of a
-- layer in it.
local function list_layers(root)
  local list, by_path = { { layer = root, path = "", cells = {} } }, {}
  by_path[""] = list[1]
  core.walk(root, "", function(part, path)
    path = path:sub(2)
    if core.is_layer(part) then
      local entry = { layer = part, path = path, cells = {} }
      list[#list + 1], by_path[path] = entry, entry
    else
      local owner = path
      repeat
        owner = owner:match "^(.*)%.[^.]*$" or ""
      until by_path[owner]
      table.insert(by_path[owner].cells, part)
    end
  end, { [root] = true })
  return list
end

-- Bytes of the tensors among values, tables of them included, each once.
local function bytes_returned(values, seen)
  local bytes = 0
  for _, v in pairs(values) do
    if core.kind(v) and not seen[v] then
      seen[v] = true
      bytes = bytes + bytes_of(v)
    elseif type(v) == "table" and not getmetatable(v) and not seen[v] then
      seen[v] = true
      bytes = bytes + bytes_returned(v, seen)
    end
  end
  return bytes
end

-- Calls run() while each layer notes its calls in trace.rows: the layer, its caller, and what it returned.
-- trace.marks are lengths of the graph, from each of which on what is computed belongs to the call in trace.owners.
local function observe(list, trace, run)
  local within
  local function mark(row)
    local n = #trace.marks + 1
    trace.marks[n], trace.owners[n] = core.trace_length(), row
  end
  for _, entry in ipairs(list) do
    local forward = entry.layer.forward
    rawset(entry.layer, "forward", function(self, ...)
      local row = { entry = entry, depth = within and within.depth + 1 or 0, within = within, work = 0 }
      trace.rows[#trace.rows + 1] = row
      local outside = within
      within = row
      mark(row)
      local results = table.pack(forward(self, ...))
      within = outside
      mark(outside)
      row.output, row.returned = types_of(results), bytes_returned(results, trace.seen)
      return table.unpack(results, 1, results.n)
    end)
  end
  local ok, err = pcall(run)
  for _, entry in ipairs(list) do
    rawset(entry.layer, "forward", nil)
  end
  if not ok then
    error(err, 0)
  end
end

local function tensors_of(values, list, seen)
  for _, v in pairs(values) do
    if core.kind(v) then
      list[#list + 1] = v
    elseif type(v) == "table" and not getmetatable(v) and not seen[v] then
      seen[v] = true
      tensors_of(v, list, seen)
    end
  end
  return list
end

-- Traces root for inputs of these types. A static parameter keeps the function from being compiled: it is
-- traced when it is checked.
local function trace_call(root, types, trace)
  local params, forward = {}, root.forward
  for i, text in ipairs(types) do
    params[i] = ("x%d: %s"):format(i, text)
  end
  params[#params + 1] = "nothing"
  rawset(root, "forward", function(self, ...)
    local inputs = table.pack(...)
    local results = table.pack(forward(self, table.unpack(inputs, 1, #types)))
    local work = core.trace_work(trace.marks, table.unpack(tensors_of(results, {}, {})))
    for i, row in pairs(trace.owners) do
      row.work = row.work + work[i]
    end
  end)
  dc.fn(("summary(%s) -> ()"):format(table.concat(params, ", ")), root):check { nothing = 0 }
end

local function grouped(n)
  local text = tostring(n)
  repeat
    local more
    text, more = text:gsub("^(%d+)(%d%d%d)", "%1,%2")
  until more == 0
  return text
end

-- Gives each row the parameters and states of its layer that no row before it has; layers that were not called get
-- rows.
local function count_cells(rows, list)
  local seen = {}
  local function count(row)
    row.count, row.bytes = 0, 0
    for _, cell in ipairs(row.entry.cells) do
      row.count = row.count + (seen[cell] and 0 or count_of(cell))
      row.bytes = row.bytes + (seen[cell] and 0 or bytes_of(cell))
      seen[cell] = true
    end
    row.entry.called = true
  end
  for _, row in ipairs(rows) do
    count(row)
  end
  for _, entry in ipairs(list) do
    if not entry.called then
      rows[#rows + 1] = { entry = entry, depth = 1, within = rows[1], work = 0, returned = 0 }
      count(rows[#rows])
    end
  end
end

-- The rows down to a depth; those below are added to the one that they are in.
local function fold(rows, most)
  local shown = {}
  for _, row in ipairs(rows) do
    local to = row
    while to.depth > most do
      to = to.within
    end
    if to == row then
      shown[#shown + 1] = row
    else
      to.count, to.bytes, to.work = to.count + row.count, to.bytes + row.bytes, to.work + row.work
      to.returned, to.folded = to.returned + row.returned, true
    end
  end
  return shown
end

-- What stands before the names of rows: the lines of the tree.
local function tree_lines(rows)
  local lines, open = {}, {}
  for i = #rows, 1, -1 do -- from below: open[d] is whether another row of depth d follows in the same one
    local depth, parts = rows[i].depth, {}
    for d = 1, depth - 1 do
      parts[d] = open[d] and "│  " or "   "
    end
    parts[depth] = depth > 0 and (open[depth] and "├─ " or "└─ ") or nil
    lines[i] = table.concat(parts)
    open[depth] = true
    for d in pairs(open) do
      if d > depth then
        open[d] = nil
      end
    end
  end
  return lines
end

local function shown_number(n)
  return n > 0 and grouped(("%.0f"):format(n)) or ""
end

local function table_of(rows)
  local lines, tree = { { "layer", "output", "parameters", "bytes", "operations", "activations" } }, tree_lines(rows)
  for i, row in ipairs(rows) do
    local name, above = row.entry.path, row.within and row.within.entry.path .. "." or ""
    if name:sub(1, #above) == above then
      name = name:sub(#above + 1)
    end
    lines[i + 1] = { tree[i] .. (name ~= "" and name .. "  " or "") .. row.entry.layer:describe()
      .. (row.folded and " ..." or ""), row.output or "not called", shown_number(row.count), shown_number(row.bytes),
      shown_number(row.work), shown_number(row.returned) }
  end
  return lines
end

local function totals(rows)
  local work, returned = 0, 0
  for _, row in ipairs(rows) do
    work, returned = work + row.work, returned + row.returned
  end
  return ("%s operations, activations of %s bytes"):format(grouped(("%.0f"):format(work)), grouped(returned))
end

local function sums(root)
  local trained, count, bytes = 0, 0, 0
  for _, named in ipairs(root:named_cells()) do
    count = count + count_of(named[2])
    bytes = bytes + bytes_of(named[2])
    trained = trained + (core.kind(named[2]) == "param" and count_of(named[2]) or 0)
  end
  local rest = count > trained and (", %s not"):format(grouped(count - trained)) or ""
  return ("%s trained%s, %s bytes"):format(grouped(trained), rest, grouped(bytes))
end

local function length(text)
  return utf8.len(text) or #text
end

-- Lines of equally many columns, of which the first `left` are aligned to the left. (The widths of string.format end
-- at 99, and are bytes.) Names of layers and classes may have any characters.
local function lay_out(lines, left)
  local width, out = {}, {}
  for i = 1, #lines[1] do
    width[i] = 0
    for _, line in ipairs(lines) do
      line[i] = core.foreign(line[i])
      width[i] = math.max(width[i], length(line[i]))
    end
  end
  for k, line in ipairs(lines) do
    local cells = {}
    for i, text in ipairs(line) do
      local spaces = (" "):rep(width[i] - length(text))
      cells[i] = i <= left and text .. spaces or spaces .. text
    end
    out[k] = table.concat(cells, "  "):gsub("%s+$", "")
  end
  return table.concat(out, "\n")
end

-- Types of inputs, and options behind them.
local function read_arguments(...)
  local types = table.pack(...)
  local options = types[types.n]
  if type(options) == "table" and not core.kind(options) then
    types[types.n], types.n = nil, types.n - 1
  else
    options = nil
  end
  core.options("summary", options, "depth")
  local depth = options and options.depth
  if depth ~= nil and (math.type(depth) ~= "integer" or depth < 0) then
    core.fail("ARG", "summary", ("depth is an integer from 0, not %s"):format(core.shown(depth)))
  elseif types.n == 0 then
    core.fail("ARG", "summary", "the type of an input is needed", 'net:summary "f32[64, 784]"')
  end
  for i = 1, types.n do
    if type(types[i]) ~= "string" and not core.kind(types[i]) then
      core.fail("ARG", "summary", ("input %d is a %s, not a type"):format(i, type(types[i])),
        'net:summary "f32[64, 784]"')
    end
    types[i] = core.kind(types[i]) and type_of(types[i]) or types[i]
    local _ = dc.zeros(types[i]) -- raises where it is no type with sizes
  end
  return types, depth or math.huge
end

---A tree of the layers in the order in which they are called for inputs of these types: what they return, how many
---parameters and states of their own they have, with the bytes of these, the operations that they compute (2 for each
---product of a contraction or convolution, 1 for each element of other operations) and the bytes of what they
---return. Each cell and each value counts once, where it is met first, so columns add up to the sums below. What is
---below a depth is added to the layer that it is in. The network is traced; nothing is computed and no cell changes.
---
---    print(nn.Sequential({ nn.Linear(4, 8), nn.ReLU() }):summary("f32[2, 4]", { depth = 1 }))
---
---Errors: whatever a call with such inputs would raise.
---@param ... deepc.Type|{ depth?: integer } types of the inputs, then options
---@return string
function Layer:summary(...)
  core.check_layer("summary", self)
  local types, depth = read_arguments(...)
  local list, trace = list_layers(self), { rows = {}, marks = {}, owners = {}, seen = {} }
  core.refuse_inside(self, "summary()")
  observe(list, trace, function() trace_call(self, types, trace) end)
  count_cells(trace.rows, list)
  local rows = fold(trace.rows, depth)
  return lay_out(table_of(rows), 2) .. "\n" .. sums(self) .. "\n" .. totals(rows)
end

-- How deep a layer is, counted in layers; and its path below the nearest one above.
local function place_of(path, by_path)
  local above, depth, name = path, 0, path
  while above ~= "" do
    above = above:match "^(.*)%.[^.]*$" or ""
    if by_path[above] then
      name = depth == 0 and above ~= "" and path:sub(#above + 2) or name
      depth = depth + 1
    end
  end
  return depth, name
end

-- What print shows of a layer: with layers below it a tree of them with the numbers of their own parameters and
-- states, each cell once.
function Layer:__tostring()
  local list, by_path, seen, lines = list_layers(self), {}, {}, {}
  if #list == 1 then
    return core.foreign(self:describe())
  end
  for i, entry in ipairs(list) do
    by_path[entry.path] = entry
    local depth, name = place_of(entry.path, by_path)
    local count = 0
    for _, cell in ipairs(entry.cells) do
      count = count + (seen[cell] and 0 or count_of(cell))
      seen[cell] = true
    end
    lines[i] = { ("  "):rep(depth) .. (name ~= "" and name .. "  " or "") .. entry.layer:describe(),
      count > 0 and grouped(count) or "" }
  end
  return lay_out(lines, 1) .. "\n" .. sums(self)
end

return nn
