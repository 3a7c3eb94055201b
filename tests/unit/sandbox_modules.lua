-- Each public module inside a sandbox: what it does with nothing but memory, and what it needs a capability for. Run
-- by unit/test_sandbox_modules.c, once for each capability alone and once with all of them.
--
-- t.given, t.made    folders that may be read, written, where the sandbox has that capability
-- t.needs(what, f)   f works where the sandbox has all of "read", "write", "clock" that `what` names; else it fails,
--                    and the text names one that is missing
local dc = require "deepc"

local rows, prepare = {}, {}

-- What a failure says where a capability is missing.
local words = { read = { "read here", "opened here" }, write = { "written here", "opened here", "outside the folders" },
  clock = { "no clock" }, network = { "no network", "opened here", "outside the folders", "read here" } }

local function needs(has, what, f, otherwise)
  local missing = {}
  for word in what:gmatch "%a+" do
    if not has:find(word, 1, true) then
      table.move(words[word], 1, #words[word], #missing + 1, missing)
    end
  end
  local ok, err = pcall(f)
  local text = type(err) == "table" and err.message or tostring(err)
  if #missing == 0 then
    assert(ok or otherwise and text:find(otherwise, 1, true), text)
    return
  end
  assert(not ok, "it went through without " .. what)
  for _, word in ipairs(missing) do
    if text:find(word, 1, true) then
      return
    end
  end
  error(("it needs %s, and says: %s"):format(what, text))
end

local function try(module, has, given, made)
  local t = { given = given, made = made }
  function t.needs(...)
    needs(has, ...)
  end
  assert(rows[module], "no row for " .. module)(t)
end

local X = dc.tensor({ { 0, 0 }, { 0, 1 }, { 1, 0 }, { 1, 1 } }, "f32[4, 2]")
local Y = dc.tensor({ 0, 1, 1, 0 }, "i32[4]")

local function net_of()
  local nn = require "deepc.nn"
  return nn.Sequential { nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 2) }
end

-- ---- the module itself ----

prepare["deepc"] = function(folder)
  dc.save(folder .. "/w.safetensors", { w = dc.ones "f32[2]" }, { of = "a test" })
  dc.checkpoint(folder .. "/c.safetensors", { net = net_of() }):save { step = 1 }
end

rows["deepc"] = function(t)
  local w = dc.param("f32[2]", { 1, 2 })
  local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x) return x * w end)
  assert(f(dc.ones "f32[2]"):sum():item() == 3)
  assert(dc.scan(function(s, x) return s + x, s end, dc.zeros "f32[]", dc.ones "f32[3]"):item() == 3)
  assert(dc.vmap(function(x) return x:sum() end)(X):sum():item() == 4)
  assert(tostring(dc.ones "f32[2]"):find "1" and dc.show and f:explain())
  local values = dc.options { { "rate", 0.5, "a rate" } }
  assert(values.rate == 0.5)
  for _ in dc.progress(3, { show = "lines", every = 0 }) do dc.metric("loss", 1) end
  dc.span "work":close()
  t.needs("write", function() dc.save(t.made .. "/w.safetensors", { w = w }) end)
  t.needs("write", function() f:export(t.made .. "/f.dcfn") end)
  assert(f:dot())
  t.needs("write", function()
    local trace = dc.trace(t.made .. "/trace.json")
    f(dc.ones "f32[2]")
    trace:stop()
  end)
  t.needs("write", function() dc.checkpoint(t.made .. "/c.safetensors", { net = net_of() }):save { step = 1 } end)
  t.needs("read", function() assert(dc.load(t.given .. "/w.safetensors").w:sum():item() == 2) end)
  t.needs("read", function()
    assert(dc.checkpoint(t.given .. "/c.safetensors", { net = net_of() }):load().step == 1)
  end)
end

-- ---- networks and training ----

rows["deepc.nn"] = function()
  local nn = require "deepc.nn"
  local net = nn.Sequential { nn.Embedding(5, 4), nn.Dropout(0.5), nn.LSTM(4, 3) }
  net(dc.zeros "i32[2, 3]")
  assert(nn.cross_entropy(net_of()(X), Y):item() > 0 and tostring(net_of()):find "Linear")
  local Own = nn.class "Own"
  function Own:init() self.part = nn.Linear(2, 2) end
  function Own:forward(x) return self.part(x) end
  assert(Own()(X).shape[1] == 4)
end

rows["deepc.optim"] = function()
  local nn, optim = require "deepc.nn", require "deepc.optim"
  for _, name in ipairs { "SGD", "Adam", "LBFGS" } do
    local net = net_of()
    local opt = optim[name](net:parameters(), { lr = 0.1 })
    local function loss() return nn.cross_entropy(net(X), Y) end
    if name == "LBFGS" then
      opt:step(loss)
    else
      opt:step(loss())
    end
    assert(loss():item() > 0)
  end
end

rows["deepc.schedules"] = function()
  local schedules = require "deepc.schedules"
  assert(schedules.warmup(10, schedules.cosine { lr = 0.1, steps = 100 })(5) > 0)
  assert(schedules.reduce_on_plateau { lr = 1e-3 }:step(0.7))
end

rows["deepc.metrics"] = function()
  local m = require "deepc.metrics".Accuracy()
  m:update(X, Y)
  assert(m:result())
end

rows["deepc.pipeline"] = function()
  local nn, pipeline = require "deepc.nn", require "deepc.pipeline"
  assert(#pipeline.split(nn.Sequential { nn.Linear(2, 2), nn.Linear(2, 2) }, 1) > 0)
  assert(pipeline.Schedule1F1B and pipeline.ScheduleGPipe)
end

rows["deepc.train"] = function(t)
  local nn, optim, data, train = require "deepc.nn", require "deepc.optim", require "deepc.data", require "deepc.train"
  local function fit(more)
    local net = net_of()
    local o = { model = net, optimizer = optim.SGD(net:parameters(), { lr = 0.1 }), data = data.set(X, Y), batch = 2,
      epochs = 1, progress = false, loss = function(x, y) return nn.cross_entropy(net(x), y) end }
    for key, value in pairs(more or {}) do
      o[key] = value
    end
    return train.fit(o)
  end
  assert(fit().epoch == 1)
  assert(fit({ progress = "lines", on_epoch = train.report }).epoch == 1)
  t.needs("write", function() fit { csv = t.made .. "/log.csv", jsonl = t.made .. "/log.jsonl" } end)
  t.needs("write", function()
    fit { checkpoint = t.made .. "/run.safetensors", resume = false, best = t.made .. "/best" }
  end)
  t.needs("write clock", function() fit { tensorboard = t.made .. "/fit", histograms = true } end)
end

rows["deepc.tensorboard"] = function(t)
  local tensorboard = require "deepc.tensorboard"
  t.needs("write clock", function()
    local log <close> = tensorboard.writer(t.made .. "/run")
    log:scalar("loss", 0.5, 1)
    log:hparams({ lr = 0.1 }, { "loss" })
    log:histogram("w", X, 1)
    log:flush()
  end)
end

-- ---- numbers ----

rows["deepc.fft"] = function()
  assert(require "deepc.fft".rfft(dc.ones "f32[8]"):real():sum():item() == 8)
end

local identity = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"

prepare["deepc.stablehlo"] = function(folder)
  local f <close> = assert(io.open(folder .. "/f.mlir", "w"))
  f:write(identity)
end

rows["deepc.stablehlo"] = function(t)
  local stablehlo = require "deepc.stablehlo"
  assert(stablehlo.load(identity) { 1, 2 }:sum():item() == 3)
  t.needs("read", function() stablehlo.load(t.given .. "/f.mlir") end)
  local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x) return x * 2 end)
  assert(stablehlo.load((stablehlo.bytecode(f))) { 1, 2 }:sum():item() == 6)
  t.needs("write", function() f:export(t.made .. "/out.mlir") end)
end

rows["deepc.signal"] = function()
  local signal = require "deepc.signal"
  assert(signal.hann_window(8).shape[1] == 8)
end

rows["deepc.random"] = function()
  local random = require "deepc.random"
  assert(random.gamma("f32[3]", { concentration = 2, seed = 1 }).shape[1] == 3)
end

rows["deepc.linalg"] = function()
  local ok, err = pcall(function()
    return require "deepc.linalg".det(dc.tensor({ { 2, 0 }, { 0, 3 } }, "f32[2, 2]")):item()
  end)
  assert(ok and math.abs(err - 6) < 1e-4 or not ok and tostring(err):find "LAPACK", tostring(err))
end

-- ---- data ----

prepare["deepc.data"] = function(folder)
  local data = require "deepc.data"
  data.write_csv(folder .. "/x.csv", { x = dc.ones "f32[3]" })
  data.write_npy(folder .. "/x.npy", X)
  data.write_npz(folder .. "/x.npz", { x = X })
  data.write_image(folder .. "/x.png", dc.zeros "u8[4, 4, 3]")
  data.write_wav(folder .. "/x.wav", dc.zeros "f32[8]", 8000)
end

rows["deepc.data"] = function(t)
  local data = require "deepc.data"
  for x in data.set(X, Y):batches { size = 2, shuffle = true } do
    assert(x.shape[1] == 2)
  end
  assert(data.Vocabulary "a b a")
  t.needs("read", function() data.read_csv(t.given .. "/x.csv") end)
  t.needs("read", function() data.read_npy(t.given .. "/x.npy") end)
  t.needs("read", function() data.read_npz(t.given .. "/x.npz") end)
  t.needs("read", function() data.read_image(t.given .. "/x.png") end)
  t.needs("read", function() data.read_wav(t.given .. "/x.wav") end)
  t.needs("read", function() data.read_text(t.given .. "/x.csv") end)
  t.needs("read", function() data.read_bytes(t.given .. "/x.csv", "u8") end)
  t.needs("read", function() assert(#data.files(t.given, "*.csv") == 1) end)
  t.needs("read", function() data.images { t.given .. "/x.png" } end)
  t.needs("write", function() data.write_csv(t.made .. "/x.csv", { x = dc.ones "f32[3]" }) end)
  t.needs("write", function() data.write_npy(t.made .. "/x.npy", X) end)
  t.needs("write", function() data.write_npz(t.made .. "/x.npz", { x = X }) end)
  t.needs("write", function() data.write_image(t.made .. "/x.png", dc.zeros "u8[4, 4, 3]") end)
  t.needs("write", function() data.write_wav(t.made .. "/x.wav", dc.zeros "f32[8]", 8000) end)
  t.needs("network", function() data.fetch("https://localhost/none", { cache = t.made }) end)
end

-- ---- language models ----

local function tokenizer()
  return require "deepc.tokenizers".load { vocab = { "[UNK]", "to", "be", "or" }, kind = "bert" }
end

local function model()
  return require "deepc.models".llama { vocab_size = 4, hidden_size = 16, intermediate_size = 16, num_hidden_layers = 2,
    num_attention_heads = 2, num_key_value_heads = 1, initializer_range = 0.3, max_position_embeddings = 128 }
end

prepare["deepc.tokenizers"] = function(folder)
  require "deepc.data".write_csv(folder .. "/vocab.txt", { ["[UNK]"] = dc.iota(2) })
end

rows["deepc.tokenizers"] = function(t)
  local tok = tokenizer()
  assert(tok:decode(tok:encode("to be", { special = false })) == "to be")
  local messages = { { role = "user", content = "to" } }
  assert(tok:chat(messages, { template = "{{ messages[0].content }}" }) == "to")
  t.needs("clock", function() tok:chat(messages, { template = "{{ strftime_now('%Y') }}" }) end)
  t.needs("read", function() require "deepc.tokenizers".load(t.given .. "/vocab.txt") end)
end

prepare["deepc.models"] = function(folder)
  require "deepc.data".write_npy(folder .. "/model.safetensors", X)
end

rows["deepc.models"] = function(t)
  local models = require "deepc.models"
  local net = model():eval()
  local cache = net:cache(32)
  assert(#models.generate(net, { 1, 2 }, { cache = cache, max = 3 }) > 0 and cache:length() > 0)
  models.lora(net, { rank = 2 })
  t.needs("write", function() models.save_lora(t.made, net) end)
  t.needs("read", function()
    local ok, err = pcall(models.load, t.given .. "/none")
    assert(not ok and tostring(err):find "config.json", tostring(err)) -- there is none, which it was told
    error(err)
  end, "config.json")
end

rows["deepc.serve"] = function()
  local server = require "deepc.serve".new(model(), tokenizer(), { slots = 2, tokens = 256, context = 64 })
  local request = server:submit { prompt = "to be", max_tokens = 3 }
  server:run()
  assert(request:text() ~= nil)
end

-- ---- pictures ----

rows["deepc.plot"] = function(t)
  local plot = require "deepc.plot"
  t.needs("write", function() plot.lines(t.made .. "/x.svg", { { y = { 1, 2 } } }) end)
  t.needs("write", function() plot.histogram(t.made .. "/x.png", { { y = { 1, 2, 3 } } }) end)
end

rows["deepc.viz"] = function(t)
  local viz = require "deepc.viz"
  viz.start()
  local f = load("local dc = ... return dc.fn('f(x: f32[2]) -> f32[2]', function(x) return x + 1 end)",
    "=" .. ("a long name "):rep(9))(dc)
  f(dc.ones "f32[2]")
  t.needs("write", function() viz.write(t.made .. "/page.html") end)
end

return { rows = rows, prepare = prepare, try = try }
