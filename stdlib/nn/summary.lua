-- net:summary: what a network is made of, by tracing it: every layer in the order in which it is called,
-- with the types it returns, its own parameters and states, and sums over all. Nothing is computed.

local dc = require "deepc"
local nn = require "deepc.nn.class"
local _, core = ...

local Layer = core.Layer

-- ---- summary ----

local function type_of(t)
  return ("%s[%s]"):format(t.dtype, table.concat(t.shape, ", "))
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

local function count_of(cell)
  local n = 1
  for _, size in ipairs(cell.shape) do
    n = n * size
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

-- Calls run() while each layer notes its calls in rows: the layer and its caller.
local function observe(list, rows, run)
  local depth, within = 0, nil
  for _, entry in ipairs(list) do
    local forward = entry.layer.forward
    rawset(entry.layer, "forward", function(self, ...)
      local row = { entry = entry, depth = depth, within = within }
      rows[#rows + 1] = row
      depth, within = depth + 1, entry
      local results = table.pack(forward(self, ...))
      depth, within = row.depth, row.within
      row.output = types_of(results)
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

-- Traces root for inputs of these types. A static parameter keeps the function from being compiled: it is
-- traced when it is checked.
local function trace(root, types)
  local params, forward = {}, root.forward
  for i, text in ipairs(types) do
    params[i] = ("x%d: %s"):format(i, text)
  end
  params[#params + 1] = "nothing"
  rawset(root, "forward", function(self, ...)
    local inputs = table.pack(...)
    forward(self, table.unpack(inputs, 1, #types))
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

-- Columns: name, output, parameters, bytes. Cells are counted where they are met first.
local function table_of(rows, list)
  local lines, seen = { { "layer", "output", "parameters", "bytes" } }, {}
  local function add(entry, depth, output, within)
    local count, bytes = 0, 0
    for _, cell in ipairs(entry.cells) do
      count = count + (seen[cell] and 0 or count_of(cell))
      bytes = bytes + (seen[cell] and 0 or bytes_of(cell))
      seen[cell] = true
    end
    local name, above = entry.path, within and within.path .. "." or ""
    if name:sub(1, #above) == above then
      name = name:sub(#above + 1)
    end
    lines[#lines + 1] = { ("  "):rep(depth) .. (name ~= "" and name .. "  " or "") .. entry.layer:describe(),
      output or "not called", count > 0 and grouped(count) or "", bytes > 0 and grouped(bytes) or "" }
    entry.called = true
  end
  for _, row in ipairs(rows) do
    add(row.entry, row.depth, row.output, row.within)
  end
  for _, entry in ipairs(list) do
    if not entry.called then
      add(entry, 1)
    end
  end
  return lines
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

-- Lines of equally many columns, of which the first `left` are aligned to the left. (The widths of string.format end at
-- 99, and are bytes.)
local function lay_out(lines, left)
  local width, out = {}, {}
  for i = 1, #lines[1] do
    width[i] = 0
    for _, line in ipairs(lines) do
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

---A table of the layers in the order in which they are called for inputs of these types, with what they
---return and how many parameters and states of their own they have; below it the sums, each cell once. The
---network is traced; nothing is computed and no cell changes.
---
---    print(nn.Sequential({ nn.Linear(4, 8), nn.ReLU() }):summary "f32[2, 4]")
---
---Errors: whatever a call with such inputs would raise.
---@param ... deepc.Type of the inputs
---@return string
function Layer:summary(...)
  core.check_layer("summary", self)
  local types = table.pack(...)
  if types.n == 0 then
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
  local list, rows = list_layers(self), {}
  core.refuse_inside(self, "summary()")
  observe(list, rows, function() trace(self, types) end)
  return lay_out(table_of(rows, list), 2) .. "\n" .. sums(self)
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
    return self:describe()
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
