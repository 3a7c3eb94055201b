-- Graphs of typed functions as tables, for pictures of them: read out of the text that dsl/fn/fngraph.c gives.
--
--   core.graph_of(op, f, n, compiled)   { name, specialisation, of, functions = { function ... } }
--
-- A function has name, nodes (in order, operands first), by_ref, results = { { node, label } } and bodies by number.
-- A node has ref, op, type, flops, kind, label, where, path, inputs (nodes), attrs (a text), groups (numbers), bodies
-- (numbers); layer, the path of the layer that it was made in without what describes it, or nil; and title, what to
-- call it.

local _, core = ...

local fields = { "op", "type", "flops", "kind", "label", "where", "path", "inputs", "attrs", "groups", "bodies" }

local function split(line)
  local list = {}
  for text in (line .. "\t"):gmatch "([^\t]*)\t" do
    list[#list + 1] = text
  end
  return list
end

local function integers(text)
  local list = {}
  for digits in text:gmatch "%d+" do
    list[#list + 1] = math.tointeger(tonumber(digits))
  end
  return list
end

-- "net.2 (nn.Linear 784 -> 10)": "net.2", "nn.Linear 784 -> 10".
local function layer_of(path)
  local name, about = path:match "^(.-) %((.*)%)$"
  return name or path, about
end

local function read_node(here, list)
  local node = { ref = math.tointeger(tonumber(list[2])) }
  for i, name in ipairs(fields) do
    node[name] = list[i + 2]
  end
  node.flops = tonumber(node.flops)
  node.groups, node.bodies = integers(node.groups), integers(node.bodies)
  local refs = integers(node.inputs)
  for i, ref in ipairs(refs) do
    refs[i] = here.by_ref[ref]
  end
  node.inputs = refs
  if node.path ~= "" then
    node.layer, node.about = layer_of(node.path)
  end
  if node.op == "param" then
    node.title = node.label ~= "" and node.label or node.kind
  else
    node.title = node.op == "const" and node.attrs or node.op
  end
  here.nodes[#here.nodes + 1], here.by_ref[node.ref] = node, node
end

local function parse(text)
  local graph, main, here = { functions = {} }, nil, nil
  local function new(name)
    here = { name = name, nodes = {}, by_ref = {}, results = {}, bodies = {} }
    return here
  end
  for line in (text .. "\n"):gmatch "([^\n]*)\n" do
    local list = split(line)
    if list[1] == "F" then
      main = new(list[2])
      table.insert(graph.functions, main)
    elseif list[1] == "B" then
      local number_of = math.tointeger(tonumber(list[2]))
      main.bodies[number_of] = new("body " .. list[2])
    elseif list[1] == "N" then
      read_node(here, list)
    elseif list[1] == "R" then
      table.insert(here.results, { node = here.by_ref[math.tointeger(tonumber(list[2]))], label = list[3] })
    end
  end
  graph.name = main.name
  return graph
end

function core.graph_of(op, f, n, compiled)
  local text, number, count = core.function_graph(op, f, n, compiled)
  local graph = parse(text)
  graph.specialisation, graph.of = number, count
  return graph
end

-- Of all specialisations there are, the oldest one first.
function core.all_graphs()
  local texts, list = core.function_graphs(), {}
  for i = #texts, 1, -1 do
    list[#list + 1] = parse(texts[i])
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
