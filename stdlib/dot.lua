-- f:dot(): the graph of a typed function in the language of Graphviz. Clusters are layers, colours the groups that
-- become kernels; or clusters are these groups.

local _, core = ...
require "deepc.operands"
require "deepc.graphs"

local dot = {}

-- ---- text ----

-- A string of the language: a backslash says what comes behind it, & begins a character of HTML.
local function quoted(text)
  if not utf8.len(text) then
    text = text:gsub("[\x80-\xff]", "?")
  end
  return '"' .. text:gsub("&", "&amp;"):gsub("[\\\"]", "\\%0"):gsub("\n", "\\n") .. '"'
end

-- Colours that are told apart and on which text can be read: hues a golden section apart.
local function colour_of(number)
  return ('"%s 0.28 0.97"'):format(core.number("%.3f", number * 0.618034 % 1))
end

local shapes = { argument = "invhouse", captured = "invhouse", size = "invhouse", parameter = "cylinder",
  state = "cylinder", derived = "cylinder", body = "invhouse" }

local Writer = {}
Writer.__index = Writer

function Writer:line(format, ...)
  self.out[#self.out + 1] = ("  "):rep(self.depth) .. format:format(...)
end

function Writer:open(label, attributes)
  self.clusters = self.clusters + 1
  self:line("subgraph cluster_%d {", self.clusters)
  self.depth = self.depth + 1
  self:line("label=%s; %s", quoted(label), attributes or 'style="rounded"; color=gray60; fontcolor=gray30;')
end

function Writer:close()
  self.depth = self.depth - 1
  self:line "}"
end

-- "add", "maximum(., 0)" where an operand is a constant.
local function title_of(node)
  local list, any = {}, false
  for i, input in ipairs(node.inputs) do
    list[i] = input.op == "const" and input.title or "·"
    any = any or input.op == "const"
  end
  return node.title .. (any and #list <= 4 and "(" .. table.concat(list, ", ") .. ")" or "")
end

local function groups_text(groups)
  return #groups == 0 and "" or ("\n%s %s"):format(#groups == 1 and "group" or "groups", table.concat(groups, ", "))
end

function Writer:node(id, node)
  local label = { title_of(node), node.type }
  if node.where ~= "" then
    label[#label + 1] = node.where
  end
  local text = table.concat(label, "\n")
  if node.op == "const" then
    self:line("%s [label=%s, shape=plaintext, style=\"\"];", id, quoted(node.title))
  elseif shapes[node.kind] then
    self:line("%s [label=%s, shape=%s, style=filled, fillcolor=gray93];", id, quoted(text), shapes[node.kind])
  else
    local group = node.groups[1]
    self:line("%s [label=%s%s];", id, quoted(text .. (self.by == "group" and "" or groups_text(node.groups))),
      group and ", fillcolor=" .. colour_of(group) or "")
  end
end

-- An edge carries the type of what goes along it; that of a parameter or a constant stands there already.
function Writer:edge(from, to, node, attributes)
  local label = node and node.op ~= "param" and node.op ~= "const" and ("label=%s"):format(quoted(node.type)) or nil
  local list = table.concat({ label or attributes, label and attributes }, ", ")
  self.edges[#self.edges + 1] = ("%s -> %s%s;"):format(from, to, list ~= "" and " [" .. list .. "]" or "")
end

-- ---- nodes ----

local function put_bodies(self, f, node, id)
  for i, number in ipairs(node.bodies) do
    local body = f.bodies[number]
    local label = node.op == "loop" and "body of the loop" or i == 1 and "if true" or "if false"
    self:open(label, 'style="dashed,rounded"; color=gray50;')
    local inner = ("%s_%d"):format(id, i)
    self:nodes(body, f, inner)
    self:close()
    for _, result in ipairs(body.results) do
      self:edge(self.ids[result.node], id, result.node, "style=dashed")
    end
  end
end

function Writer:put(whole, node, prefix)
  local id = ("%sn%d"):format(prefix, node.ref)
  self.ids[node] = id
  self:node(id, node)
  put_bodies(self, whole, node, id)
end

function Writer:inputs(node, id)
  for _, input in ipairs(node.inputs) do
    if input.op ~= "const" then -- which stands in the label
      self:edge(self.ids[input], id, input)
    end
  end
end

local function is_result(f, node)
  for _, result in ipairs(f.results) do
    if result.node == node then
      return true
    end
  end
end

-- Of a body: nodes in their order, without clusters.
function Writer:nodes(f, whole, prefix)
  for _, node in ipairs(f.nodes) do
    if node.op ~= "const" or is_result(f, node) then
      self:put(whole, node, prefix)
      self:inputs(node, self.ids[node])
    end
  end
end

-- ---- clusters of layers ----

-- What compilation adds, such as changes of layout, is shown with what reads it.
local function adopt_layers(f)
  for i = #f.nodes, 1, -1 do
    local node = f.nodes[i]
    for _, input in ipairs(node.inputs) do
      if not input.layer and input.where == "" and input.op ~= "param" then
        input.layer = node.layer
      end
    end
  end
end

-- A tree of layers, and of lines that make many nodes outside of them: { children, nodes, title }.
local function layer_tree(f, about)
  adopt_layers(f)
  local lines = core.crowded_lines(f.nodes)
  local root = { children = {}, nodes = {} }
  local by_path = {}
  local function find(path)
    if path == nil then
      return root
    elseif by_path[path] then
      return by_path[path]
    end
    local line = path:match "^\n(.*)$"
    local above = not line and path:match "^(.*)%.[^.]*$" or nil
    local entry = { children = {}, nodes = {}, title = line or path .. (about[path] and "\n" .. about[path] or "") }
    by_path[path] = entry
    table.insert(find(above).children, entry)
    return entry
  end
  for _, node in ipairs(f.nodes) do
    if node.op ~= "const" or is_result(f, node) then
      local layer = node.layer or lines[node.where] and "\n" .. node.where or nil
      if node.op == "param" and (node.kind == "parameter" or node.kind == "state") then
        layer = core.layer_above(node.label, about)
      end
      table.insert(find(layer).nodes, node)
    end
  end
  return root
end

local function put_layer(self, f, layer, prefix)
  for _, node in ipairs(layer.nodes) do
    self:put(f, node, prefix)
  end
  for _, child in ipairs(layer.children) do
    self:open(child.title)
    put_layer(self, f, child, prefix)
    self:close()
  end
end

local function by_layer(self, f, prefix)
  put_layer(self, f, layer_tree(f, core.layers_of(f.nodes)), prefix)
  for _, node in ipairs(f.nodes) do
    if self.ids[node] then
      self:inputs(node, self.ids[node])
    end
  end
end

-- ---- clusters of groups ----

-- A node that several groups compute is in each of them; what another group reads is in one.
local function by_group(self, f, prefix)
  local members, numbers = {}, {}
  for _, node in ipairs(f.nodes) do
    for _, number in ipairs(node.groups) do
      if not members[number] then
        members[number], numbers[#numbers + 1] = {}, number
      end
      table.insert(members[number], node)
    end
    if #node.groups == 0 and (node.op ~= "const" or is_result(f, node)) then
      self:put(f, node, prefix)
      self:inputs(node, self.ids[node])
    end
  end
  table.sort(numbers)
  local copies = {}
  for _, number in ipairs(numbers) do
    local layers, named = {}, {}
    for _, node in ipairs(members[number]) do
      if node.layer and not named[node.layer] then
        named[node.layer], layers[#layers + 1] = true, node.layer
      end
    end
    local some = table.concat(layers, ", ", 1, math.min(#layers, 4)) .. (#layers > 4 and " ..." or "")
    self:open(("group %d%s"):format(number, some ~= "" and "\n" .. some or ""),
      ('style="filled,rounded"; color=gray50; fillcolor=%s;'):format(colour_of(number)))
    copies[number] = {}
    for _, node in ipairs(members[number]) do
      if node.op ~= "const" or is_result(f, node) and not self.ids[node] then
        local id = ("%sn%d_g%d"):format(prefix, node.ref, number)
        copies[number][node], self.ids[node] = id, id
        self:node(id, node)
        put_bodies(self, f, node, id)
      end
    end
    self:close()
  end
  for _, number in ipairs(numbers) do
    for _, node in ipairs(members[number]) do
      if copies[number][node] then
        local ids = self.ids
        self.ids = setmetatable({}, { __index = function(_, input) return copies[number][input] or ids[input] end })
        self:inputs(node, copies[number][node])
        self.ids = ids
      end
    end
  end
end

-- ---- the whole ----

local function results(self, f, prefix)
  local count = 0
  for i, result in ipairs(f.results) do
    if result.label ~= "check" then
      local id, label = ("%sr%d"):format(prefix, i), result.label
      if label == "result" or label == "printed" then
        count = count + 1
        label = ("%s %d"):format(label, count)
      elseif label == "derived" then
        label = ("derived %d"):format(i)
      else
        label = "set " .. label
      end
      self:line("%s [label=%s, shape=house, style=filled, fillcolor=gray93];", id,
        quoted(label .. "\n" .. result.node.type))
      if self.ids[result.node] then
        self:edge(self.ids[result.node], id)
      end
    end
  end
end

function dot.text(graph, by)
  local self = setmetatable({ out = {}, edges = {}, ids = {}, depth = 1, clusters = 0, by = by }, Writer)
  self.out[1] = "digraph " .. quoted(graph.name) .. " {"
  local several = (graph.of or 1) > 1
  local title = graph.name .. (several and (", specialisation %d of %d"):format(graph.specialisation, graph.of) or "")
  -- newrank: the other way of Graphviz fails on clusters that values leave and come back to, as gradients do
  self:line('graph [newrank=true, label=%s, labelloc=t, fontname="Helvetica", fontsize=12, ranksep=0.3];',
    quoted(title))
  self:line('node [shape=box, style="filled,rounded", fillcolor=white, fontname="Helvetica", fontsize=9, '
    .. 'margin="0.08,0.04", height=0.2];')
  self:line 'edge [fontname="Helvetica", fontsize=7, fontcolor=gray40, color=gray40, arrowsize=0.6];'
  for i, f in ipairs(graph.functions) do
    local prefix = i < #graph.functions and "p" or ""
    if prefix ~= "" then
      self:open("prologue: computed when what it is made of has changed", 'style="dotted,rounded"; color=black;')
    end
    if by == "group" then
      by_group(self, f, prefix)
    else
      by_layer(self, f, prefix)
    end
    results(self, f, prefix)
    if prefix ~= "" then
      self:close()
    end
  end
  for _, edge in ipairs(self.edges) do
    self:line("%s", edge)
  end
  self.out[#self.out + 1] = "}\n"
  return table.concat(self.out, "\n")
end

local known = { layer = true, group = true }

function dot.dot(f, options)
  local op = "dot"
  core.refuse_tracing(op)
  core.options(op, options, "by", "compiled", "specialisation", "path")
  options = options or {}
  local by = options.by or "layer"
  if not known[by] then
    core.fail("ARG", op, ('by is "layer" or "group", not %s'):format(core.shown(by)))
  elseif options.compiled ~= nil and type(options.compiled) ~= "boolean" then
    core.fail("ARG", op, ("compiled is true or false, not %s"):format(core.shown(options.compiled)))
  elseif options.compiled == false and by == "group" then
    core.fail("ARG", op, "groups are made when a function is compiled", 'compiled = false goes with by = "layer"')
  elseif options.specialisation ~= nil then
    core.check_size(op, "specialisation", options.specialisation)
  end
  if options.path ~= nil and type(options.path) ~= "string" then
    core.fail("ARG", op, ("path is the name of a file, not %s"):format(core.describe(options.path)))
  end
  local text = dot.text(core.graph_of(op, f, options.specialisation, options.compiled ~= false), by)
  if options.path then
    core.write_file(op, options.path, text)
  end
  return text
end

-- For `deepc dot`: all functions, or those of a name; then the names that there are.
function dot.all(name, by)
  local parts, names = {}, {}
  for _, graph in ipairs(core.all_graphs()) do
    names[#names + 1] = graph.name
    if not name or graph.name == name then
      parts[#parts + 1] = dot.text(graph, by)
    end
  end
  return table.concat(parts), table.concat(names, ", ")
end

return dot
