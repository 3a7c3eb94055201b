-- Graph convolution (Kipf and Welling 2017): finds the subject of a paper, one of five, from its words and from the
-- papers that it cites or that cite it. The subjects of 20 papers of each are known.
--
--   deepc graph_convolution.lua
--   deepc graph_convolution.lua --no-graph     # the same network without citations, for comparison
--
-- The papers are made here: citations by a stochastic block model, four in five of them between papers of one subject,
-- and bags of words, a fifth of which are three times as frequent in one subject. Accuracy for 1000 other papers: 0.90
-- to 0.93 with the graph, 0.46 to 0.52 without. It takes two seconds.

local dc = require "deepc"
local nn, optim = require "deepc.nn", require "deepc.optim"

local options = dc.options {
  about = "Classifies the nodes of a graph.",
  { "graph", true, "passes messages along edges; --no-graph for comparison" },
  { "steps", nil, "of training (200, with --quick 60)", type = "integer", min = 1 },
  { "hidden", 16, "features between the two convolutions", min = 1 },
  { "lr", 0.01, "learning rate", min = 0 },
  { "seed", 0, "of the papers and the training" },
  { "quick", false, "fewer steps" },
  { "checkpoint", nil, "written every 20 steps and at the end", value = "FILE" },
  { "resume", false, "goes on from the checkpoint", needs = "checkpoint" },
}

local PAPERS, CITATIONS, WORDS, SUBJECTS, LABELLED = 2500, 5000, 500, 5, 100

-- ---- the network ----

local GraphConv = nn.class "GraphConv"

function GraphConv:init(inputs, outputs)
  self.linear = nn.Linear(inputs, outputs)
end

-- Each node gets a weighted sum of what the nodes with an edge to it have.
function GraphConv:forward(x, edges)
  local messages = self.linear(x):take(edges.from, 1) * edges.weight:reshape(-1, 1)
  return messages:segment_sum(edges.to, #x)
end

local Network = nn.class "Network"

function Network:init(hidden)
  self.first, self.second = GraphConv(WORDS, hidden), GraphConv(hidden, SUBJECTS)
  self.dropout = nn.Dropout(0.5)
end

function Network:forward(x, edges)
  x = self.first(self.dropout(x), edges):relu()
  return self.second(self.dropout(x), edges)
end

dc.seed(options.seed)
local net = Network(options.hidden)
local opt = optim.Adam(net:parameters(), { lr = options.lr, weight_decay = 5e-4 })

local edge_count = PAPERS + (options.graph and 2 * CITATIONS or 0)
local arguments = ("x: f32[%d, %d], edges: { from: i32[%d], to: i32[%d], weight: f32[%d] }, y: i32[%d]"):format(
  PAPERS, WORDS, edge_count, edge_count, edge_count, PAPERS)

-- The first papers have known labels, the last 1000 are to test with.
local step = dc.fn(("step(%s) -> f32[]"):format(arguments), function(x, edges, y)
  local known = { { 1, LABELLED } }
  local loss = nn.cross_entropy(net(x, edges)[known], y[known])
  opt:step(loss)
  return loss
end)

net:eval()
local accuracy = dc.fn(("accuracy(%s) -> f32[]"):format(arguments), function(x, edges, y)
  local test = { { -1000, -1 } }
  return net(x, edges)[test]:argmax(2):eq(y[test]):cast("f32"):mean()
end)
net:train()

-- ---- the papers ----

local paper = dc.iota(PAPERS)
local subject = paper % SUBJECTS

-- Frequencies of words, three times as high for those of the subject; rows that sum to 1.
local function draw_words()
  local special = (dc.iota(WORDS) % SUBJECTS):eq(subject:reshape(-1, 1))
  local words = dc.rand(("f32[%d, %d]"):format(PAPERS, WORDS)):lt(dc.where(special, 0.06, 0.02)):cast "f32"
  return words / words:sum { axis = 2, keep = true }:maximum(1)
end

-- Citations both ways and an edge from each paper to itself. Weights are 1 / sqrt(degree of one end * of the other).
local function draw_edges()
  local function draw() return dc.randint(("i32[%d]"):format(CITATIONS), { high = PAPERS }) end
  local citing, any = draw(), draw()
  local alike = any // SUBJECTS * SUBJECTS + citing % SUBJECTS
  local cited = dc.where(dc.bernoulli(("bool[%d]"):format(CITATIONS), { p = 0.75 }), alike, any)
  local from = options.graph and dc.concat { citing, cited, paper } or paper
  local to = options.graph and dc.concat { cited, citing, paper } or paper
  local scale = dc.ones(("f32[%d]"):format(edge_count)):segment_sum(to, PAPERS):rsqrt()
  return { from = from, to = to, weight = scale:take(from, 1) * scale:take(to, 1) }
end

local words, edges = draw_words(), draw_edges()

-- ---- training ----

local checkpoint = options.checkpoint and dc.checkpoint(options.checkpoint, { model = net, optimizer = opt })
local at = options.resume and checkpoint:load() or { step = 0 }
local steps = options.steps or (options.quick and 60 or 200)
for i = at.step + 1, steps do
  local loss = step(words, edges, subject)
  if i % 20 == 0 then
    print(("step %3d  loss %.4f"):format(i, loss:item()))
  end
  if checkpoint and (i % 20 == 0 or i == steps) then
    checkpoint:save { step = i }
  end
end
net:eval()
print(("test accuracy %.4f"):format(accuracy(words, edges, subject):item()))
