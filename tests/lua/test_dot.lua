-- f:dot(): texts in the language of Graphviz, read by a small parser of it, and what stands in them.
-- program/test_dot.sh gives such texts to dot itself.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local check = require "tests.lua.check"

local fails = check.fails

-- The graphs of a text: nodes by name with their attributes, edges, clusters by label with the names in them.
local function parse(text)
  local at, tokens = 1, {}
  while true do
    at = text:find("%S", at)
    if not at then
      break
    end
    local token, stop
    if text:sub(at, at) == '"' then
      stop = at + 1
      while text:sub(stop, stop) ~= '"' do
        lu.assertTrue(stop < #text, "a string without an end")
        stop = stop + (text:sub(stop, stop) == "\\" and 2 or 1)
      end
      token = text:sub(at, stop)
    else
      token = text:match("^%->", at) or text:match("^[%w_.]+", at) or text:match("^[%[%]{}=;,]", at)
      lu.assertNotNil(token, "at " .. text:sub(at, at + 20))
      stop = at + #token - 1
    end
    tokens[#tokens + 1], at = token, stop + 1
  end
  local pos = 0
  local function take(wanted)
    pos = pos + 1
    if wanted then
      lu.assertEquals(tokens[pos], wanted)
    end
    return tokens[pos]
  end
  local function value(token)
    return token:sub(1, 1) == '"' and token:sub(2, -2) or token
  end
  local function attributes()
    local list = {}
    if tokens[pos + 1] == "[" then
      take "["
      while tokens[pos + 1] ~= "]" do
        local name = take()
        take "="
        list[name] = value(take())
        if tokens[pos + 1] == "," then
          take ","
        end
      end
      take "]"
    end
    return list
  end
  local g
  local function statements(cluster)
    take "{"
    while tokens[pos + 1] ~= "}" do
      local name = take()
      if name == "subgraph" then
        local id, inner = take(), { names = {}, within = cluster }
        lu.assertNil(g.ids[id])
        g.ids[id] = true
        statements(inner)
        g.clusters[inner.label] = inner
      elseif tokens[pos + 1] == "->" then
        take "->"
        local to = take()
        g.edges[#g.edges + 1] = { from = name, to = to, label = attributes().label }
        take ";"
      elseif tokens[pos + 1] == "=" then
        take "="
        cluster[name] = value(take())
        take ";"
      else
        local list = attributes()
        if name ~= "graph" and name ~= "node" and name ~= "edge" then
          lu.assertNil(g.nodes[name], name .. " is there twice")
          g.nodes[name] = list
          table.insert(cluster.names, name)
        end
        take ";"
      end
    end
    take "}"
  end
  local graphs = {}
  while pos < #tokens do
    g = { nodes = {}, edges = {}, clusters = {}, ids = {} }
    take "digraph"
    g.name = value(take())
    statements { names = {} }
    for _, e in ipairs(g.edges) do
      lu.assertNotNil(g.nodes[e.from], e.from)
      lu.assertNotNil(g.nodes[e.to], e.to)
    end
    graphs[#graphs + 1] = g
  end
  return graphs[1], graphs
end

local function labels(g, cluster)
  local list = {}
  for _, name in ipairs(cluster.names) do
    list[#list + 1] = g.nodes[name].label:match "^(.-)\\n" or g.nodes[name].label
  end
  return table.concat(list, " ")
end

TestDot = {}

function TestDot:test_layers()
  local net = nn.Sequential { nn.Linear(4, 8), nn.ReLU(), nn.Residual(nn.Linear(8, 8)) }
  local f = dc.fn("f(x: f32[16, 4]) -> f32[16, 8]", function(x) return net(x):exp() end)
  local g = parse(f:dot())
  lu.assertEquals(g.name, "f")
  lu.assertStrContains(labels(g, g.clusters["net.1\\nnn.Linear 4 -> 8"]), "dot")
  lu.assertStrContains(labels(g, g.clusters["net.1\\nnn.Linear 4 -> 8"]), "net.1.weight")
  lu.assertStrContains(labels(g, g.clusters["net.2\\nnn.ReLU"]), #f:kernels() > 0 and "maximum(·, 0)" or "maximum")
  local inner = g.clusters["net.3.layer\\nnn.Linear 8 -> 8"]
  lu.assertEquals(inner.within.label, "net.3\\nnn.Residual")
  local argument, result, types
  for name, node in pairs(g.nodes) do
    argument = node.label == "x\\nf32[16, 4]" and name or argument
    result = node.label == "result 1\\nf32[16, 8]" and name or result
  end
  for _, e in ipairs(g.edges) do
    types = types or e.label == "f32[16, 8]"
    lu.assertNotEquals(e.from, result)
    lu.assertNotEquals(e.to, argument)
  end
  lu.assertTrue(types)
  local traced = parse(f:dot { compiled = false })
  for _, node in pairs(traced.nodes) do
    lu.assertNotStrContains(node.label, "group")
  end
end

-- Each group is a cluster, as many as DEEPC_DEBUG=fuse tells of; what several compute is in each.
function TestDot:test_groups()
  local w = dc.param("f32[8, 8]", dc.ones "f32[8, 8]")
  local f = dc.fn("f(x: f32[8, 8]) -> f32[8, 8], f32[8]", function(x)
    local y = x:matmul(w)
    return y:matmul(w):exp(), (x + 1):sum(1)
  end)
  local g, count = parse(f:dot { by = "group" }), 0
  for label in pairs(g.clusters) do
    count = count + (label:find "^group %d+" and 1 or 0)
  end
  if dc.stats().device == "eval" or #f:kernels() == 0 then
    lu.assertEquals(count, 0)
  else
    lu.assertEquals(count, 3)
    local colours = {}
    for _, cluster in pairs(g.clusters) do
      colours[cluster.fillcolor] = true
    end
    local n = 0
    for _ in pairs(colours) do
      n = n + 1
    end
    lu.assertEquals(n, 3)
  end
end

-- Gradients and updates are in clusters of their lines; states that are set are results.
function TestDot:test_training()
  local net = nn.Sequential { nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2) }
  local opt = optim.Adam(net:parameters(), { lr = 1e-3 })
  local step = dc.fn("step(x: f32[16, 4]) -> f32[]", function(x)
    local loss = net(x):square():mean()
    opt:step(loss)
    return loss
  end)
  local g = parse(step:dot())
  local line
  for label in pairs(g.clusters) do
    line = line or label:match "^[%w_./-]*test_dot%.lua:%d+$"
  end
  lu.assertNotNil(line)
  local set
  for _, node in pairs(g.nodes) do
    set = set or node.label:match "^set net%.1%.weight"
  end
  lu.assertNotNil(set)
  parse(step:dot { by = "group" })
end

-- Constants that are results are nodes with edges, and have all digits.
function TestDot:test_constants()
  local f = dc.fn("f(x: i32[4]) -> i32[4], u64[]", function(x)
    return x + 123456789, dc.full("i64[]", -1):cast "u64"
  end)
  for _, options in ipairs { {}, { by = "group" } } do
    local text = f:dot(options)
    lu.assertStrContains(text, "123456789")
    local g, from = parse(text), {}
    for _, edge in ipairs(g.edges) do
      from[edge[2] or edge.to] = edge[1] or edge.from
    end
    lu.assertEquals(g.nodes[from.r2].label, "18446744073709551615")
  end
end

function TestDot:test_loops()
  local f = dc.fn("f(x: f32[6, 4]) -> f32[4]", function(x)
    local sum = dc.scan(function(c, row) return dc.cond(c:sum():gt(0), function() return c + row end,
      function() return c end), c end, dc.zeros "f32[4]", x)
    return sum
  end)
  for _, options in ipairs { {}, { by = "group" }, { compiled = false } } do
    local g = parse(f:dot(options))
    lu.assertNotNil(g.clusters["body of the loop"])
    lu.assertEquals(g.clusters["if true"].within, g.clusters["body of the loop"])
  end
end

-- Names may have anything in them.
function TestDot:test_escapes()
  local Odd = nn.class "Odd"
  function Odd:init()
    self['a"b\\ <&amp;>\n\xff'] = nn.Linear(2, 2)
    self["ä {|}"] = nn.Linear(2, 2)
  end
  function Odd:forward(x)
    return self['a"b\\ <&amp;>\n\xff'](self["ä {|}"](x))
  end
  local f = dc.fn("f(x: f32[1, 2]) -> f32[1, 2]", Odd())
  local g = parse(f:dot())
  local found, also
  for label in pairs(g.clusters) do
    found = found or label:find('a\\"b\\\\ <&amp;amp;>\\\\n\\\\xff', 1, true)
    also = also or label:find("ä {|}", 1, true)
  end
  lu.assertNotNil(found)
  lu.assertNotNil(also)
end

function TestDot:test_specialisations()
  local f = dc.fn("f(x: f32[n]) -> f32[n]", function(x) return x + 1 end)
  fails("dot: 'f' has not been traced", f.dot, f)
  f(dc.ones "f32[2]")
  f(dc.ones "f32[3]")
  lu.assertStrContains(f:dot(), "f32[3]")
  lu.assertStrContains(f:dot { specialisation = 1 }, "specialisation 1 of 2")
  fails("dot: no specialisation 3; 'f' has 2", f.dot, f, { specialisation = 3 })
  fails('dot: by is "layer" or "group", not \'kernel\'', f.dot, f, { by = "kernel" })
  fails("dot: groups are made when a function is compiled", f.dot, f, { by = "group", compiled = false })
  fails("dot: compiled is true or false, not 1", f.dot, f, { compiled = 1 })
  fails("dot: path is the name of a file, not the number 1", f.dot, f, { path = 1 })
  fails("/none/there.dot", f.dot, f, { path = "/none/there.dot" })
  local path = os.tmpname()
  local text = f:dot { path = path }
  lu.assertEquals(check.read(path), text)
  os.remove(path)
end
