-- Graphs of typed functions as tables, for pictures of them: the nodes of f:report() (dsl/fn/report.c) by function.
--
--   core.graph_of(op, f, n, compiled)   { name, specialisation, of, functions = { function ... } }
--
-- A function has name, nodes (in order, operands first), results = { { node, label } } and bodies by number.
-- A node has ref, op, type, flops, kind, label, where, path, inputs (nodes), attrs (a text), groups (numbers of the
-- commands that compute it), bodies (numbers); layer, the path of the layer that it was made in without what describes
-- it, or nil; and title, what to call it.

local _, core = ...

local foreign = core.foreign -- names of tables may have any characters in them

-- "net.2 (nn.Linear 784 -> 10)": "net.2", "nn.Linear 784 -> 10".
local function layer_of(path)
  local name, about = path:match "^(.-) %((.*)%)$"
  return name or path, about
end

local kinds = { cell = "parameter", value = "body", carry = "body" }

-- A parameter's name is that of the cell, which the report of a function knows better.
local function label_of(report, n)
  local p = report.parameters[n.parameter]
  local role = p and (p.role == "parameter" or p.role == "state") and p.role or kinds[n.role] or n.role
  return role, p and p.name or n.label or (role == "parameter" or role == "state") and role or ""
end

local function attributes(n)
  local number = n.op == "const" and n.attributes[1]
  if number and number:find "%." then
    return core.number("%.6g", tonumber(number) or 0)
  end
  return table.concat(n.attributes, ",")
end

local function new_node(report, n, ref)
  local node = { ref = ref, op = n.op, type = n.type, flops = n.flops, kind = "", label = "", inputs = {}, groups = {},
    bodies = {}, attrs = attributes(n), where = foreign(n.origins[1] or ""), path = foreign(n.origins[2] or "") }
  if n.op == "param" then
    local kind, label = label_of(report, n)
    node.kind, node.label = kind, foreign(label)
    node.title = node.label ~= "" and node.label or kind
  else
    node.title = n.op == "const" and node.attrs or n.op
  end
  if node.path ~= "" then
    node.layer, node.about = layer_of(node.path)
  end
  return node
end

-- The label of a result: "result", "printed", "derived", a cell that is set, "check"; of a body "".
local function result_label(report, part, result)
  if part.parent then
    return ""
  elseif part.kind == "prologue" then
    return "derived"
  elseif result.role == "set" then
    local cells = 0
    for _, p in ipairs(report.parameters) do
      cells = cells + ((p.role == "cell" or p.role == "parameter" or p.role == "state") and 1 or 0)
    end
    local p = report.parameters[#report.parameters - cells + result.cell]
    return foreign(p.name or (p.role == "state" and "state" or "parameter"))
  end
  return result.role
end

-- A parameter that nothing reads is not shown.
local function drop_unread(f)
  local read, list = {}, {}
  for _, node in ipairs(f.nodes) do
    for _, input in ipairs(node.inputs) do
      read[input] = true
    end
  end
  for _, result in ipairs(f.results) do
    read[result.node] = true
  end
  for _, node in ipairs(f.nodes) do
    if node.op ~= "param" or node.kind == "body" or read[node] then
      list[#list + 1] = node
    end
  end
  f.nodes = list
end

-- The part without a parent that a part is inside of.
local function outermost(parts, number)
  while parts[number].parent do
    number = parts[number].parent
  end
  return number
end

local function graph_from(report)
  local graph, by_part, nodes = { name = report.name, functions = {} }, {}, {}
  for i, part in ipairs(report.parts) do
    local f = { name = part.kind == "prologue" and "prologue" or report.name, nodes = {}, results = {}, bodies = {} }
    by_part[i] = f
    if not part.parent then
      table.insert(graph.functions, f)
    end
  end
  for i, n in ipairs(report.nodes) do
    nodes[i] = new_node(report, n, i)
    table.insert(by_part[n.part].nodes, nodes[i])
  end
  for i, n in ipairs(report.nodes) do
    for k, input in ipairs(n.ins) do
      nodes[i].inputs[k] = nodes[input]
    end
  end
  for i, part in ipairs(report.parts) do
    for k, result in ipairs(part.results) do
      by_part[i].results[k] = { node = nodes[result.node], label = result_label(report, part, result) }
    end
    if part.parent then
      by_part[outermost(report.parts, i)].bodies[i] = by_part[i]
      table.insert(nodes[part.node].bodies, i)
    end
  end
  for number, command in ipairs(report.commands or {}) do
    for _, node in ipairs(command.nodes or {}) do
      table.insert(nodes[node].groups, number)
    end
  end
  for _, f in ipairs(graph.functions) do
    drop_unread(f)
  end
  return graph
end

function core.graph_of(op, f, n, compiled)
  local facts = core.function_report(f)
  if not facts then
    core.fail("ARG", op, "a typed function is needed, not " .. core.describe(f))
  end
  local count = #facts.specialisations
  n = n or count
  if count == 0 then
    core.fail("ARG", op, ("'%s' has not been traced"):format(f.name),
      "call it once, or give its sizes where it is defined: dc.fn(signature, f, { batch = 64 })")
  elseif n < 1 or n > count then
    core.fail("ARG", op, ("no specialisation %d; '%s' has %d"):format(n, f.name, count))
  end
  local report = core.function_report(f, compiled and "compiled" or "traced", n).specialisations[n]
  if report.checked then
    core.fail("ARG", op, ("'%s' has been checked, and not compiled"):format(f.name))
  end
  local graph = graph_from(report)
  graph.specialisation, graph.of = n, count
  return graph
end

-- Of all specialisations there are, the oldest one first.
function core.all_graphs()
  local list = {}
  for i, report in ipairs(core.function_reports "compiled") do
    list[i] = graph_from(report)
  end
  return list
end

-- What describes layers, by path: "nn.Linear 784 -> 10". A node knows of the innermost one alone.
function core.layers_of(nodes)
  local about = {}
  for _, node in ipairs(nodes) do
    if node.layer and node.about then
      about[node.layer] = about[node.layer] or node.about
    end
  end
  return about
end

-- The layer that a parameter belongs to: the longest path among `about` that its name begins with.
function core.layer_above(name, about)
  repeat
    name = name:match "^(.*)%.[^.]*$"
  until not name or about[name]
  return name
end

local CROWD = 8 -- nodes of one line that are put together, where no layer made them

-- Lines that make many nodes outside of layers, as that of opt:step(loss) makes gradients and updates.
function core.crowded_lines(nodes)
  local count, crowded = {}, {}
  for _, node in ipairs(nodes) do
    if not node.layer and node.where ~= "" then
      count[node.where] = (count[node.where] or 0) + 1
      crowded[node.where] = count[node.where] >= CROWD or nil
    end
  end
  return crowded
end

return core.graph_of
