-- Annotations of the public names (stdlib/api/ and the modules of stdlib/): every name has one and
-- every one has a name; their examples run; what is made of them is up to date.
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
local lapack = require "tests.lua.lapack"
local signal = require "deepc.signal"
local stablehlo = require "deepc.stablehlo"
local tokenizers = require "deepc.tokenizers"
local models = require "deepc.models"
local serve = require "deepc.serve"
local pipeline = require "deepc.pipeline"
local help = require "deepc.help"

-- Documented functions and classes, as "owner.name".
local documented = {}
for _, e in ipairs(help.entries()) do
  if e.kind == "function" then
    documented[e.owner .. "." .. e.name] = e
    for _, a in ipairs(e.also) do
      documented[a.owner .. "." .. a.name] = e
    end
  elseif e.kind == "class" then
    documented[e.name] = e
  end
end

-- What Lua sees of a tensor's methods: the second upvalue of __index.
local function tensor_methods()
  local _, methods = debug.getupvalue(debug.getmetatable(dc.zeros "f32[]").__index, 2)
  return methods
end

-- Not public, although a script could reach them.
local internal = { init = true, update = true }

local function names(t)
  local list = {}
  for name, value in next, t do
    local public = type(name) == "string" and name:sub(1, 1) ~= "_" and not internal[name]
    if public and (type(value) == "function" or type(value) == "table") then
      list[#list + 1] = name
    end
  end
  table.sort(list)
  return list
end

local function check_all(owner, t, inherited)
  for _, name in ipairs(names(t)) do
    local there = documented[owner .. "." .. name] or inherited and documented[inherited .. "." .. name]
    lu.assertNotNil(there, ("%s.%s has no annotation; stdlib/README.md tells where it belongs"):format(owner, name))
  end
end

TestAnnotations = {}

function TestAnnotations:test_every_function_of_the_module()
  check_all("dc", dc)
end

function TestAnnotations:test_every_method_of_tensors()
  local methods = {}
  for name, value in next, tensor_methods() do
    methods[name] = name ~= "shape" and value or nil -- a field, whose metatable is found there
  end
  check_all("Tensor", methods)
end

function TestAnnotations:test_every_layer_and_loss()
  check_all("nn", nn)
  local count = 0
  for name, class in next, nn do
    if type(class) == "table" and name ~= "init" then
      count = count + 1
      check_all("nn." .. name, class, "nn.Layer")
      check_all("nn.Layer", getmetatable(class).__index)
    end
  end
  lu.assertTrue(count >= 4)
end

function TestAnnotations:test_every_optimiser()
  check_all("optim", optim)
  for name, class in next, optim do
    if type(class) == "table" then
      check_all("optim." .. name, class, "optim.Optimizer")
      if getmetatable(class).__index then
        check_all("optim.Optimizer", getmetatable(class).__index)
      end
    end
  end
end

function TestAnnotations:test_every_function_of_training()
  check_all("train", train)
end

function TestAnnotations:test_every_metric()
  check_all("metrics", metrics)
  for name, class in next, metrics do
    if type(class) == "table" then
      check_all("metrics." .. name, class, "metrics.Metric")
      check_all("metrics.Metric", getmetatable(class).__index)
    end
  end
end

function TestAnnotations:test_every_initialiser_and_schedule()
  check_all("nn.init", nn.init)
  check_all("schedules", schedules)
  check_all("random", random)
  check_all("fft", fft)
  check_all("linalg", linalg)
  check_all("models", models)
  check_all("signal", signal)
  check_all("stablehlo", stablehlo)
  check_all("serve", serve)
  local tokenizer = tokenizers.load { vocab = { "[UNK]" }, kind = "bert" }
  check_all("tokenizers", tokenizers)
  check_all("tokenizers.Tokenizer", getmetatable(tokenizer).__index)
  check_all("tokenizers.Stream", getmetatable(tokenizer:stream()).__index)
end

-- A pipeline of one stage.
local function stages()
  dc.mesh { data = 1 }
  return pipeline.Schedule1F1B { stage = nn.Linear(4, 2), over = "data", micro = 2, loss = nn.mse_loss }
end

function TestAnnotations:test_every_function_about_pipelines()
  check_all("pipeline", pipeline)
  check_all("pipeline.Schedule", getmetatable(stages()).__index)
end

function TestAnnotations:test_every_function_about_data()
  check_all("data", data)
  check_all("plot", plot)
  check_all("viz", viz)
  check_all("data.Set", getmetatable(data.set(dc.iota(2), dc.iota(2))).__index)
  check_all("data.Vocabulary", getmetatable(data.Vocabulary "a").__index)
  check_all("data.Stream", getmetatable(data.stream(print)).__index)
  check_all("data.Rows", { row = data.ragged({ { 1 } }).row, lengths = data.ragged({ { 1 } }).lengths })
end

local TINY = { vocab_size = 4, hidden_size = 4, intermediate_size = 4, num_hidden_layers = 1, num_attention_heads = 1 }

function TestAnnotations:test_every_annotated_name_exists()
  local decoder = models.llama(TINY)
  local server = serve.new(decoder, nil, { tokens = 16 })
  local folder = os.tmpname()
  os.remove(folder)
  local log = tensorboard.writer(folder)
  os.remove(log.path)
  os.remove(folder)
  local set = data.set(dc.iota(2), dc.iota(2))
  local layer = nn.ReLU()
  local of = {
    dc = dc, nn = nn, optim = optim, data = data, plot = plot, schedules = schedules, metrics = metrics, train = train,
    random = random, fft = fft, linalg = linalg, signal = signal, stablehlo = stablehlo,
    tokenizers = tokenizers, models = models,
    pipeline = pipeline, ["pipeline.Schedule"] = stages(), viz = viz,
    serve = serve, ["serve.Server"] = server, ["serve.Request"] = server:submit { prompt = { 1 } },
    ["serve.Grammar"] = serve.regex(tokenizers.load { vocab = { "[UNK]" }, kind = "bert" }, "a"),
    ["tokenizers.Tokenizer"] = tokenizers.load { vocab = { "[UNK]" }, kind = "bert" },
    ["tokenizers.Stream"] = tokenizers.load({ vocab = { "[UNK]" }, kind = "bert" }):stream(),
    ["nn.init"] = nn.init,
    Tensor = tensor_methods(),
    Scope = dc.scope(),
    Checkpoint = dc.checkpoint("/tmp/none", {}),
    Function = dc.fn("f(x: f32[1]) -> f32[1]", function(x) return x end),
    Job = dc.fn("f(x: f32[1]) -> f32[1]", function(x) return x end):start { 1 },
    ["nn.Layer"] = layer,
    ["optim.Optimizer"] = optim.SGD { dc.param "f32[1]" },
    ["metrics.Metric"] = metrics.Mean(), ["metrics.ConfusionMatrix"] = metrics.ConfusionMatrix(2),
    ["metrics.AUC"] = metrics.AUC(), ["schedules.Plateau"] = schedules.reduce_on_plateau { lr = 1 },
    ["tensorboard.Writer"] = log, tensorboard = tensorboard, ["optim.GradScaler"] = optim.GradScaler(),
    ["optim.LBFGS"] = optim.LBFGS { dc.param "f32[1]" }, ["optim.Average"] = optim.EMA { dc.param "f32[1]" },
    ["data.Set"] = getmetatable(set).__index, ["data.Vocabulary"] = data.Vocabulary "a",
    ["data.Stream"] = getmetatable(data.stream(print)).__index,
    ["data.Rows"] = data.ragged { { 1 } },
    ["models.Decoder"] = decoder, ["models.Cache"] = decoder:cache(4), ["models.Bert"] = models.bert(TINY),
    ["nn.QuantizedLinear"] = nn.QuantizedLinear(nn.Linear(32, 1), "q8_0"),
    ["nn.QuantizedEmbedding"] = nn.QuantizedEmbedding(nn.Embedding(1, 32), "q8_0"),
    ["models.Whisper"] = models.whisper { d_model = 4, encoder_attention_heads = 1, decoder_attention_heads = 1 },
  }
  for name, e in pairs(documented) do
    local owner, key = name:match "^(.*)%.([%w_]+)$"
    if e.kind == "function" or e.exported then
      local t = of[owner]
      lu.assertNotNil(t, "this test knows no " .. tostring(owner))
      local ok, value = pcall(function() return t[key] end)
      lu.assertTrue(ok and value ~= nil, name .. " is annotated and does not exist")
    end
  end
  of.Scope:close()
end

function TestAnnotations:test_parameters_are_those_of_the_code()
  for name, e in pairs(documented) do
    if e.kind == "function" then
      local list = {}
      for i, p in ipairs(e.params) do
        list[i] = p.name
        lu.assertNotEquals(p.type, "", name .. ": the parameter " .. p.name .. " has no type")
      end
      lu.assertEquals(table.concat(list, ", "), e.written, name)
    end
    lu.assertTrue(#e.doc > 0, name .. " says nothing")
  end
end

function TestAnnotations:test_error_codes_have_a_page()
  for _, e in ipairs(help.entries()) do
    for code in table.concat(e.doc, "\n"):gmatch "DC%d%d%d%d" do
      local f = io.open(("docs/errors/%s.md"):format(code))
      lu.assertNotNil(f, code)
      f:close()
    end
  end
end

TestExamples = {}

-- The blocks of indented lines.
local function examples(e)
  local list, block = {}, {}
  for _, line in ipairs(e.doc) do
    local text = line:match "^    (.*)$"
    if text then
      block[#block + 1] = text
    elseif #block > 0 then
      list[#list + 1], block = block, {}
    end
  end
  list[#list + 1] = #block > 0 and block or nil
  return list
end

-- Chunks of a block: all of it, or else what its lines hold, apart by blanks.
local function chunks(block)
  local list = { (load(table.concat(block, "\n"))) }
  if #list > 0 then
    return { table.concat(block, "\n") }
  end
  for _, line in ipairs(block) do
    for part in (line .. "   "):gmatch "(.-)%s%s%s+" do
      list[#list + 1] = part
    end
  end
  return list
end

-- These need more around them than an example has, or print.
local needs_more = {
  ['dc.print("x is", x)'] = true, ['dc.show(dc.iota("f32[8, 8]", 2), { width = 40, mode = "ascii" })'] = true,
  ["opt:step(loss, { lr = lr })"] = true,
  ["opt:step(function() return nn.mse_loss(net(x), y) end)"] = true,
  ['local f = opt:objective("f(x: f32[n, 2]) -> f32[]", function(x) return net(x):square():mean() end)'] = true,
  ["local schedule = pipeline.ScheduleGPipe(options)"] = true,
  ["print(schedule:evaluate(x, y))"] = true,
  ['local step = dc.fn("step(x: f32[8, 4], y: i32[8]) -> f32[]", function(x, y)\n' ..
    "  local loss, gradients = schedule:step(x, y)\n  opt:apply(gradients)\n  return loss\nend)"] = true,
  ["opt.lr = plateau:step(loss)"] = true, ["plateau:restore(plateau:state())"] = true,
  ["accuracy:update(net(x), labels)"] = true, ["print(accuracy:result())"] = true, ["accuracy:reset()"] = true,
  ["for _, named in ipairs(accuracy:named_cells()) do print(named[1], named[2].dtype) end"] = true,
  ["scaler:step(opt, loss)"] = true,
  ['dc.checkpoint("run.safetensors", { model = net, optimizer = opt, scaler = scaler })'] = true,
  ['log:scalar("loss", loss, step)'] = true, ['log:histogram("weight", net.weight, step)'] = true,
  ['log:image("input", dc.rand "f32[8, 8, 3]", step)'] = true, ['log:text("settings", "lr = 1e-3", 0)'] = true,
  ['log:scalars("loss", { train = 0.5, test = 0.7 }, step)'] = true, ["log:graph(step)"] = true,
  ['log:hparams({ lr = 1e-3, optimizer = "AdamW" }, { "loss" })'] = true,
  ["train.fit { model = net, optimizer = opt, loss = loss, data = set, batch = 64, epochs = 5 }"] = true,
  ['local log = tensorboard.writer(os.tmpname() .. ".run")\nlog:scalar("loss", 0.5, 1)\nlog:close()'] = true,
  ['local tensorboard = require "deepc.tensorboard"\nlocal log = tensorboard.writer(os.tmpname() .. ".run")\n' ..
    'log:scalar("loss", 0.5, 1)\nlog:close()'] = true,
  ["train.report { epoch = 1, step = 10, history = { { epoch = 1, step = 10, loss = 0.5 } } }"] = true,
  ["log:flush()"] = true, ["log:close()"] = true,
  ['accuracy:to "eval"'] = true, ['ema:to "eval"'] = true, ['scaler:to "eval"'] = true,
  ["ema:update()"] = true, ["ema:swap_in()"] = true, ["ema:swap_out()"] = true,
  ["local accuracy = ema:averaged(function() return evaluate(net) end)"] = true,
  ['dc.checkpoint("run.safetensors", { model = net, optimizer = opt, average = ema })'] = true,
  ["opt:apply(dc.grad(loss, opt.params))"] = true,
  ['local cache = net:cache(2048)\nlocal small = net:cache(2048, { dtype = "i8" })'] = true,
  ["cache:length()"] = true, ["cache:keep(0)"] = true,
  ["local logits = net:step({ 3, 1, 4 }, cache)\nlogits = net:step({ logits[1]:argmax(1):item() }, cache)"] = true,
  ["local a = net:embed(ids, { mask = mask })          -- f32[batch, hidden_size]"] = true,
  ["local memory = net:encode(features)"] = true,
  ["local logits = net:decode(ids, { cache = cache, last = true })"] = true,
  ["net:listen(features, cache)\nlocal tokens = models.generate(net, { 50258, 50259 }, { cache = cache })"] = true,
  ['models.save_lora("adapters", net)'] = true, ['models.load_lora("adapters", net)'] = true,
  ['local net = models.load(os.getenv "HOME" .. "/all-MiniLM-L6-v2")'] = true,
  ['data.idx "train-images-idx3-ubyte.gz"'] = true,
  ["local train, test = data.fashion_mnist()"] = true,
}

-- Readers and writers of files.
local function wants_file(text)
  for _, name in ipairs { "read_", "write_", "rows", "image", "sounds", "fetch%(", "cifar10", "mnist", "files%(",
    "class_files" } do
    if text:find("data%." .. name) then
      return true
    end
  end
end

function TestExamples:test_all_run()
  local net = nn.Linear(2, 2)
  local env = setmetatable({
    dc = dc, nn = nn, optim = optim, data = data, plot = plot, viz = viz, schedules = schedules, metrics = metrics,
    pipeline = pipeline,
    random = random, fft = fft, linalg = linalg, signal = signal, stablehlo = stablehlo, net = net,
    tokenizers = tokenizers, models = models,
    serve = serve, server = serve.new(models.llama(TINY), tokenizers.load { vocab = { "[UNK]", "to", "be", "or" },
      kind = "bert" }, { tokens = 64 }),
    opt = optim.SGD(net:parameters()), print = function() end,
    set = data.set(dc.iota(130), dc.iota(130)),
    f = dc.fn("f(x: f32[1]) -> f32[1]", function(x) return x end),
  }, { __index = _G })
  local count = 0
  for _, e in ipairs(help.entries()) do
    for _, block in ipairs(e.kind == "function" and examples(e) or {}) do
      for _, text in ipairs(chunks(block)) do
        env.x, env.y, env.s = dc.tensor { 1, -1 }, dc.ones "f32[2]", dc.scope()
        local chunk = load("return " .. text, "=example", "t", env) or load(text, "=example", "t", env)
        lu.assertNotNil(chunk, text)
        if not needs_more[text] and not wants_file(text) and not (lapack.missing and text:find "linalg%.") then
          local ok, err = pcall(chunk)
          lu.assertTrue(ok, text .. ": " .. tostring(err))
        end
        env.s:close()
        count = count + 1
      end
    end
  end
  lu.assertTrue(count > 80)
end

function TestExamples:test_every_function_in_C_has_one()
  for _, e in ipairs(help.entries()) do
    if e.module == "deepc" and e.kind == "function" then
      lu.assertTrue(#examples(e) > 0, ("%s.%s has no example"):format(e.owner, e.name))
    end
  end
end

TestHelp = {}

function TestHelp:test_finds_names_in_every_form()
  local text = help "sum"
  for _, name in ipairs { "dc.sum", "x:sum", "Tensor:sum", "Tensor.sum", " sum() ", ":sum", "deepc.dc.sum" } do
    lu.assertEquals(help(name), text, name)
  end
  lu.assertEquals(help "nn.Linear", help "Linear")
  lu.assertEquals(help "deepc.nn.Linear", help "Linear")
  lu.assertStrContains(help "deepc.nn", "Layers and losses.")
  lu.assertNil(help "nope")
  lu.assertNil(help "")
end

function TestHelp:test_one_text()
  lu.assertEquals(help "dc.full", [=[
dc.full(type, value)
  One value everywhere.

      dc.full("f32[3]", 0.5)

  Errors: as dc.zeros; DC0203 for a value that the dtype does not hold.

  type     Type|Tensor, a tensor stands for its type
  value    number|boolean
  returns  Tensor]=])
end

function TestHelp:test_several_meanings()
  lu.assertStrContains(help "close", "x:close()")
  lu.assertStrContains(help "close", "s:close(...)")
end

TestFiles = {}

function TestFiles:test_are_up_to_date()
  local texts = assert(loadfile "scripts/reference.lua")("texts")
  local count = 0
  for path, text in pairs(texts) do
    local f = io.open(path, "rb")
    lu.assertNotNil(f, path .. " is missing; ./scripts/reference writes it")
    local there = f:read "a"
    f:close()
    lu.assertTrue(there == text, path .. " is not what ./scripts/reference writes")
    count = count + 1
  end
  lu.assertEquals(count, 20)
end
