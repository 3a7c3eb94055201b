-- Graphs of typed functions as GraphDefs (tensorflow/core/framework/graph.proto, node_def.proto, attr_value.proto).
-- Layers are name scopes, which TensorBoard folds: net/2[Linear]/dot.

local _, core = ...
require "deepc.graphs"
local wire = require "deepc.tensorboard.wire"

local int, bytes, entry = wire.int, wire.bytes, wire.entry
local Writer, check, add = core.tensorboard.Writer, core.tensorboard.check, core.tensorboard.add

-- ---- names ----

-- "/" is between scopes, ":" and "^" mean something in the names of inputs.
local function clean(text)
  return (text:gsub("[^%w_%-%[%]>.]", "_"))
end

-- The scope of a layer: a step for each part of its path, with its class where that is known.
local function scope_of(path, about)
  local steps, at = {}, ""
  for part in path:gmatch "[^.]+" do
    at = at == "" and part or at .. "." .. part
    local class = about[at] and about[at]:match "^[%w_.]+"
    steps[#steps + 1] = clean(part) .. (class and "[" .. clean(class:match "[%w_]+$") .. "]" or "")
  end
  return table.concat(steps, "/")
end

-- A name in a scope that no other node has.
local function free_name(self, scope, title)
  local wish = (scope ~= "" and scope .. "/" or "") .. (clean(title):gsub("^[^%w.]", "_%0"))
  local name, n = wish, self.numbers[wish] or 0
  while self.taken[name] do
    n = n + 1
    name = ("%s_%d"):format(wish, n)
  end
  self.taken[name], self.numbers[wish] = true, n
  return name
end

local function node_scope(self, node)
  if node.layer then
    return scope_of(node.layer, self.about)
  end
  local line = node.where
  return self.lines[line] and clean(line:match "[^/]*$") or ""
end

-- The scope of a node, and what to call it there.
local function where_of(self, node, users)
  if node.kind == "parameter" or node.kind == "state" then
    local above = core.layer_above(node.label, self.about)
    if above then
      return scope_of(above, self.about), node.label:sub(#above + 2)
    end
    local first, rest = node.label:match "^([^.]+)%.(.+)$" -- of an optimiser: adam.m.net.1.weight
    return first and clean(first) or "", rest or node.label
  elseif (node.op == "const" or node.op == "iota") and users[node] then -- beside what reads it
    return node_scope(self, users[node]), node.op
  end
  return node_scope(self, node), node.title
end

-- ---- messages ----

local types = { f32 = 1, f64 = 2, i32 = 3, u8 = 4, i16 = 5, i8 = 6, c64 = 8, i64 = 9, bool = 10, bf16 = 14, u16 = 17,
  c128 = 18, f16 = 19, u32 = 22, u64 = 23 }

-- AttrValue of _output_shapes: a list with one TensorShapeProto.
local function output_shapes(text)
  local dims = {}
  for size in text:match "%[(.*)%]":gmatch "%d+" do
    dims[#dims + 1] = bytes(2, int(1, math.tointeger(tonumber(size))))
  end
  return bytes(1, bytes(7, table.concat(dims)))
end

local op_names = { param = { argument = "Placeholder", parameter = "Variable", state = "Variable",
  captured = "Captured", size = "Size", body = "Placeholder" }, const = "Const" }

local function op_name(node)
  local of = op_names[node.op]
  return type(of) == "table" and of[node.kind] or of or node.op
end

local function node_def(node, name, inputs)
  local parts = { bytes(1, name), bytes(2, op_name(node)) }
  for _, input in ipairs(inputs) do
    parts[#parts + 1] = bytes(3, input)
  end
  local dtype = types[node.type:match "^%w+"]
  parts[#parts + 1] = entry(5, "T", int(6, dtype or 1))
  parts[#parts + 1] = entry(5, "_output_shapes", output_shapes(node.type))
  parts[#parts + 1] = entry(5, "type", bytes(2, node.type))
  for _, key in ipairs { "where", "about", "attrs", "label" } do
    if node[key] and node[key] ~= "" then
      parts[#parts + 1] = entry(5, key == "about" and "layer" or key, bytes(2, node[key]))
    end
  end
  if node.flops > 0 then
    parts[#parts + 1] = entry(5, "operations", bytes(2, ("%.0f"):format(node.flops)))
  end
  return bytes(1, table.concat(parts))
end

-- ---- graphs ----

local Drawing = {}
Drawing.__index = Drawing

local function users_of(nodes)
  local users = {}
  for _, node in ipairs(nodes) do
    for _, input in ipairs(node.inputs) do
      users[input] = users[input] or node
    end
  end
  return users
end

-- A scope, inside that of a body whose loop is in the scope `base`.
local function inside_body(scope, base, where)
  if where == base then
    return scope
  elseif base ~= "" and where:sub(1, #base + 1) == base .. "/" then
    where = where:sub(#base + 2)
  end
  return where == "" and scope or scope .. "/" .. where
end

-- Nodes of a function, or of a body, whose parameters read what the loop does.
function Drawing:nodes(f, scope, base, operands)
  local users = users_of(f.nodes)
  for _, node in ipairs(f.nodes) do
    local where, title = where_of(self, node, users)
    local own = where
    if scope ~= "" then
      where = inside_body(scope, base, where)
    end
    local name = free_name(self, where, title)
    local inputs, behind = {}, {}
    for i, input in ipairs(node.inputs) do
      inputs[i] = self.names[input]
    end
    for i, number in ipairs(node.bodies) do
      local body = self.bodies[number]
      local inside = ("%s_%s"):format(name, #node.bodies == 1 and "body" or i == 1 and "true" or "false")
      self.taken[inside] = true
      self:nodes(body, inside, own, inputs)
      for _, result in ipairs(body.results) do
        behind[#behind + 1] = self.names[result.node]
      end
    end
    if node.kind == "body" then
      for _, operand in ipairs(operands) do
        inputs[#inputs + 1] = "^" .. operand -- which of them it is, is not told
      end
    end
    table.move(behind, 1, #behind, #inputs + 1, inputs)
    self.names[node] = name
    self.out[#self.out + 1] = node_def(node, name, inputs)
  end
end

local function result_nodes(self, f)
  local count = 0
  for _, result in ipairs(f.results) do
    if result.label ~= "check" then
      count = count + 1
      local wanted = (result.label == "result" or result.label == "printed") and ("%s_%d"):format(result.label, count)
        or "set " .. result.label
      local title = free_name(self, "results", wanted)
      self.out[#self.out + 1] = node_def({ op = "Result", type = result.node.type, flops = 0 }, title,
        { self.names[result.node] })
    end
  end
end

local function graph_def(graph)
  local f = graph.functions[1]
  local all = table.move(f.nodes, 1, #f.nodes, 1, {})
  for _, body in pairs(f.bodies) do
    table.move(body.nodes, 1, #body.nodes, #all + 1, all)
  end
  local self = setmetatable({ about = core.layers_of(all), lines = core.crowded_lines(all), bodies = f.bodies,
    taken = {}, numbers = {}, names = {}, out = {} }, Drawing)
  self:nodes(f, "", "", {})
  result_nodes(self, f)
  return table.concat(self.out) .. bytes(4, int(1, 22)) -- versions { producer }
end

---The graph of a typed function, as it was traced: TensorBoard shows layers folded, and what is known of a node, its
---type, its line, its operations. Of several specialisations it is the last one, or that of the number which
---f:explain() shows. A run has one graph.
---
---    log:graph(step)
---
---Errors: DC0101 for what is no typed function, and for one that has not been traced.
---@param f deepc.Function
---@param options? { specialisation?: integer }
function Writer:graph(f, options)
  local op = "graph"
  check(op, self, false)
  core.options(op, options, "specialisation")
  local n = options and options.specialisation
  if n ~= nil then
    core.check_size(op, "specialisation", n)
  end
  add(self, bytes(4, graph_def(core.graph_of(op, f, n, false))))
  core.tensorboard.flush(self)
end

return core.tensorboard
