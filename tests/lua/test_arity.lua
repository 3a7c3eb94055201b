-- One argument more than a function takes is an error, of every public name: the annotations of stdlib/
-- (tests/lua/test_reference.lua holds them to the code) tell how many there are.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local data = require "deepc.data"
local plot = require "deepc.plot"
local viz = require "deepc.viz"
local schedules = require "deepc.schedules"
local metrics = require "deepc.metrics"
local train = require "deepc.train"
local tensorboard = require "deepc.tensorboard"
local random = require "deepc.random"
local fft = require "deepc.fft"
local linalg = require "deepc.linalg"
local signal = require "deepc.signal"
local stablehlo = require "deepc.stablehlo"
local tokenizers = require "deepc.tokenizers"
local models = require "deepc.models"
local serve = require "deepc.serve"
local pipeline = require "deepc.pipeline"
local help = require "deepc.help"

-- These take any number; what is said of each call with too many, or what is wrong with it.
local any = {
  ["Tensor.reshape"] = { { { 2 }, 1 }, "a size must be an integer" },
  ["Tensor.expand"] = { { { 2 }, 1 }, "a size must be an integer" },
  ["Tensor.permute"] = { { { 1 }, 1 }, "an axis is needed" },
  ["Tensor.tile"] = { { { 2 }, 1 }, "a number of times is an integer" },
  ["dc.tile"] = { { dc.ones "f32[2]", { 2 }, 1 }, "a number of times is an integer" },
  ["dc.einsum"] = { { "i -> i", dc.ones "f32[2]", dc.ones "f32[2]" }, "is for 1 tensor, 2 given" },
  ["dc.progress"] = { { { 1 }, {}, 1 }, "arguments" },
  ["dc.trace"] = { { 1, 2, 3 }, "a tensor is needed" }, -- of a matrix, too
  ["Function.start"] = { { { 1 }, 2 }, "arguments: 2 given" },
  ["Function.ready"] = { { { 1 }, 2 }, "arguments: 2 given" },
  ["nn.Layer.summary"] = {}, -- types, one for each argument
  ["nn.Layer.forward"] = {}, -- that of a class, which test_of_every_layer_called calls
  ["Function.export"] = {}, -- sizes to compile for
  ["dc.cond"] = {}, ["dc.switch"] = {}, -- what the functions are called with
  ["optim.LBFGS.step"] = {}, ["optim.Average.averaged"] = {}, -- what the function is called with
  ["data.set"] = {}, -- values of rows
  ["dc.print"] = {}, ["dc.scope"] = {}, ["Scope.keep"] = {}, ["Scope.close"] = {}, -- values of any kind
}

local folder = os.tmpname()
os.remove(folder)
local log = tensorboard.writer(folder)
os.remove(log.path)
os.remove(folder)
local set = data.set(dc.iota(2), dc.iota(2))
local f = dc.fn("f(x: f32[1]) -> f32[1]", function(x) return x end)
local receivers = {
  Tensor = dc.ones "f32[2]", Cell = dc.param "f32[2]", Scope = dc.scope(), Checkpoint = dc.checkpoint("/tmp/none", {}),
  Function = f, Job = f:start { 1 }, ["nn.Layer"] = nn.ReLU(), ["optim.Optimizer"] = optim.SGD { dc.param "f32[1]" },
  ["metrics.Metric"] = metrics.Mean(), ["metrics.ConfusionMatrix"] = metrics.ConfusionMatrix(2),
  ["metrics.AUC"] = metrics.AUC(), ["schedules.Plateau"] = schedules.reduce_on_plateau { lr = 1 },
  ["tensorboard.Writer"] = log, ["optim.GradScaler"] = optim.GradScaler(),
  ["optim.LBFGS"] = optim.LBFGS { dc.param "f32[1]" }, ["optim.Average"] = optim.EMA { dc.param "f32[1]" },
  ["data.Set"] = set, ["data.Rows"] = data.ragged { { 1 } },
  ["data.Vocabulary"] = data.Vocabulary "a",
  ["data.Stream"] = data.stream(function() return function() end end),
}
receivers["tokenizers.Tokenizer"] = tokenizers.load { vocab = { "[UNK]", "to" }, kind = "bert" }
receivers["tokenizers.Stream"] = receivers["tokenizers.Tokenizer"]:stream()
receivers.Scope:close()
local decoder = models.llama { vocab_size = 4, hidden_size = 4, intermediate_size = 4, num_hidden_layers = 1,
  num_attention_heads = 1 }
receivers["models.Decoder"], receivers["models.Cache"] = decoder, decoder:cache(4)
receivers["nn.QuantizedLinear"] = nn.QuantizedLinear(nn.Linear(32, 1), "q8_0")
receivers["nn.QuantizedEmbedding"] = nn.QuantizedEmbedding(nn.Embedding(1, 32), "q8_0")
receivers["serve.Server"] = serve.new(decoder, nil, { tokens = 16 })
receivers["serve.Request"] = receivers["serve.Server"]:submit { prompt = { 1 } }
receivers["serve.Grammar"] = serve.regex(receivers["tokenizers.Tokenizer"], "to")
receivers["models.Whisper"] = models.whisper { vocab_size = 4, d_model = 4, encoder_layers = 1, decoder_layers = 1,
  encoder_attention_heads = 1, decoder_attention_heads = 1 }
receivers["models.Bert"] = models.bert { vocab_size = 4, hidden_size = 4, intermediate_size = 4, num_hidden_layers = 1,
  num_attention_heads = 1 }
dc.mesh { data = 1 }
receivers["pipeline.Schedule"] = pipeline.Schedule1F1B { stage = nn.Linear(4, 2), over = "data", micro = 2,
  loss = nn.mse_loss }
local modules = {
  dc = dc, nn = nn, optim = optim, data = data, plot = plot, schedules = schedules, metrics = metrics, train = train,
  tensorboard = tensorboard,
  random = random, fft = fft, linalg = linalg, signal = signal, stablehlo = stablehlo,
  tokenizers = tokenizers, models = models,
  serve = serve, pipeline = pipeline,
  ["nn.init"] = nn.init, viz = viz,
}

local function code_of(fn, ...)
  local ok, err = pcall(fn, ...)
  return not ok and type(err) == "table" and err.code or nil, tostring(err)
end

local function several(n)
  local list = {}
  for i = 1, n do
    list[i] = 1
  end
  return table.unpack(list)
end

-- What is called of an entry, and what comes before its parameters.
local function callee(owner, name)
  local receiver = receivers[owner]
  if receiver then
    return receiver[name], receiver
  end
  return modules[owner][name]
end

local function check(owner, name, e)
  local at = owner .. "." .. name
  local fn, self = callee(owner, name)
  local last = e.params[#e.params]
  if any[at] then
    return any[at]
  end
  lu.assertFalse(last ~= nil and last.name == "...", at .. " takes any number; this test has to know")
  -- a method that is a function of the module, too, has its operand first
  local n = #e.params + (not self and e.is_method and 1 or 0)
  local code, text
  if self then
    code, text = code_of(fn, self, several(n + 1))
  else
    code, text = code_of(fn, several(n + 1))
  end
  lu.assertEquals(code, "DC0403", at .. ": " .. text)
end

TestArity = {}

function TestArity:test_of_every_public_function()
  local count = 0
  for _, e in ipairs(help.entries()) do
    if e.kind == "function" then
      check(e.owner, e.name, e)
      for _, a in ipairs(e.also) do
        check(a.owner, a.name, e)
      end
      count = count + 1 + #e.also
    end
  end
  lu.assertTrue(count > 250, count)
end

function TestArity:test_of_every_class()
  local count = 0
  for _, e in ipairs(help.entries()) do
    if e.kind == "class" and e.exported and not modules[e.name] then
      local owner, name = e.name:match "^(.*)%.([%w_]+)$"
      local n = #(e.params[1] and e.params or e.overload or {})
      local code, text = code_of(modules[owner][name], several(n + 1))
      lu.assertEquals(code, "DC0403", e.name .. ": " .. text)
      lu.assertStrContains(text, ("%s: %d argument"):format(e.name, n + 1))
      count = count + 1
    end
  end
  lu.assertTrue(count > 20, count)
end

function TestArity:test_of_every_layer_called()
  local count = 0
  for name, class in next, nn do
    local forward = type(class) == "table" and rawget(class, "forward")
    if forward then
      local code, text = code_of(forward, nn.ReLU(), several(12))
      lu.assertEquals(code, "DC0403", name .. ": " .. text)
      count = count + 1
    end
  end
  lu.assertTrue(count > 15, count)
end

function TestArity:test_functions_of_any_number()
  for at, case in pairs(any) do
    local owner, name = at:match "^(.*)%.([%w_]+)$"
    local fn, receiver = callee(owner, name)
    if case[1] then
      local ok, err
      if receiver then
        ok, err = pcall(fn, receiver, table.unpack(case[1]))
      else
        ok, err = pcall(fn, table.unpack(case[1]))
      end
      lu.assertFalse(ok, at)
      lu.assertStrContains(tostring(err), case[2], false, at)
    end
  end
end

function TestArity:test_nil_at_the_end_is_not_given()
  local x = dc.ones "f32[2, 3]"
  lu.assertEquals(x:sum(1, nil):totable(), { 2, 2, 2 })
  lu.assertEquals(#nn.Linear(2, 3, nil, nil):parameters(), 2)
end

local function message(fn)
  local ok, err = pcall(fn)
  lu.assertFalse(ok)
  return (tostring(err):gsub("^[^:]*:%d+: ", ""):gsub("\n    of [^\n]*", ""):gsub("\n  %[DC0403[^\n]*$", ""))
end

function TestArity:test_what_was_meant()
  local x = dc.ones "f32[2, 3]"
  local cases = {
    { function() return x:sum(1, 2) end,
      "sum: 2 arguments given, at most 1 is taken\n  hint: several axes are a list: x:sum { 1, 2 }" },
    { function() return dc.sum(x, 1, 2) end,
      "sum: 3 arguments given, at most 2 are taken\n  hint: several axes are a list: x:sum { 1, 2 }" },
    { function() return x:mean(1, true) end,
      "mean: 2 arguments given, at most 1 is taken\n  hint: x:mean { axis = 1, keep = true }" },
    { function() return x:softmax(1, 2) end,
      "softmax: 2 arguments given, at most 1 is taken\n  hint: one axis; x:flatten(1, 2) makes one of two" },
    { function() return dc.zeros("f32[2]", 5) end,
      "zeros: 2 arguments given, at most 1 is taken\n  hint: dc.full(type, value) has another value" },
    { function() return dc.zeros(2, 3) end,
      'zeros: 2 arguments given, at most 1 is taken\n  hint: a type is one text: dc.zeros "f32[2, 3]"' },
    { function() return dc:zeros "f32[2]" end,
      "zeros: 2 arguments given, at most 1 is taken\n  hint: with a dot, not a colon: .zeros(...)" },
    { function() return x:exp(2) end, "exp: 1 argument given, none is taken" },
    { function() return nn.ReLU()(x, 2) end,
      "nn.ReLU: 2 arguments given, at most 1 is taken\n    in     ReLU (nn.ReLU)" },
    { function() return dc.concat(x, x, 1) end,
      "concat: 3 arguments given, at most 2 are taken\n  hint: tensors are in a list: dc.concat({ a, b }, axis)" },
  }
  for i, case in ipairs(cases) do
    lu.assertEquals(message(case[1]), case[2], i)
  end
end

function TestArity:test_train_takes_a_boolean()
  local net = nn.Sequential { nn.Dropout(0.5) }
  lu.assertFalse(net:train(false).training)
  lu.assertFalse(net[1].training)
  lu.assertTrue(net:train(true).training)
  net:eval()
  lu.assertTrue(net:train().training)
  lu.assertStrContains(message(function() net:train(0) end), "train: true or false is taken, not the number 0")
end

-- The body of a typed function; one that it does not use may be called _.
function TestArity:test_bodies()
  local sig = "f(x: f32[1], y: f32[1], z: f32[1]) -> f32[1]"
  lu.assertEquals(dc.fn(sig, function(_, y, _) return y end)({ 1 }, { 2 }, { 3 }):item(), 2)
  lu.assertStrContains(message(function() dc.fn(sig, function(x) return x end) end),
    "f: the function takes 1 parameter, its signature has 3: 'y' is missing\n"
    .. "  hint: one that is not used may be called _")
  lu.assertStrContains(message(function() dc.fn("f()", function(_, _) end) end),
    "f: the function takes 2 parameters, its signature has 0")
  lu.assertStrContains(message(function() dc.fn(sig, function(x, z, y) return x + y + z end) end),
    "f: parameter 2 is 'y' in the signature and 'z' in the function")
end

function TestArity:test_operators_and_iterators_are_not_counted()
  local x = dc.tensor { 1, -2 }
  lu.assertEquals((-x):totable(), { -1, 2 })
  lu.assertEquals((~dc.tensor({ 1 }, "i32")):totable(), { -2 })
  local n = 0
  for _ in dc.progress(set:batches { size = 1 }, { show = "off" }) do
    n = n + 1
  end
  lu.assertEquals(n, 2)
end
