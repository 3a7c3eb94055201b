-- A model of others learns a text: adapters of low rank beside some of its layers are trained, the model itself stays.
--
--     deepc examples/lora.lua SmolLM2-135M-Instruct.Q4_1.gguf /usr/share/common-licenses/GPL-3 --write adapters
--
-- Hu et al., LoRA: Low-Rank Adaptation of Large Language Models, 2021. The model is a .gguf file, or a folder with
-- tokenizer.json. Its weights are held once, in f32: 135 million parameters and what a step needs fit into 1 GB.

local dc = require "deepc"
local nn, optim = require "deepc.nn", require "deepc.optim"
local data, train = require "deepc.data", require "deepc.train"
local models, tokenizers = require "deepc.models", require "deepc.tokenizers"

local options, words = dc.options({
  about = "Trains adapters of low rank on a text.",
  rest = "MODEL [TEXT]",
  { "steps", 40, "of training", min = 1 },
  { "batch", 2, "windows of the text in a step", min = 1 },
  { "context", 128, "tokens in a window", min = 2 },
  { "rank", 8, "of the adapters", min = 1 },
  { "lr", 1e-3, "learning rate", min = 0 },
  { "prompt", "You may", "what is written on, before and after" },
  { "write", nil, "a folder that there is, for the adapters, as PEFT has them", value = "FOLDER" },
  { "seed", 0, "of everything" },
})
local path, file = words[1], words[2] or "/usr/share/common-licenses/GPL-3"
if not path then
  dc.fail("a model is needed: a .gguf file, or a folder with tokenizer.json")
end
dc.seed(options.seed)

-- ---- the text, in windows of tokens ----

local tok
if path:find "%.gguf$" then
  local _, metadata = dc.load(path, nil, { only = {} })
  tok = tokenizers.from_gguf(metadata)
else
  tok = tokenizers.load(path)
end
local source <close> = assert(io.open(file))
local ids = dc.tensor(tok:encode(source:read "a", { special = false }), "i32")
local size = options.context + 1
local rows = #ids // size
if rows < 10 then
  dc.fail(("%s has %d tokens; ten windows need %d"):format(file, #ids, 10 * size))
end
local windows = ids[{ { 1, rows * size } }]:reshape(rows, size)
local split = rows * 9 // 10
local learn = data.set(windows[{ { 1, split } }])

-- ---- the model and its adapters ----

local net = models.load(path)

local function continue()
  local prompt = tok:encode(options.prompt, { special = false })
  print(options.prompt .. tok:decode(models.generate(net, prompt, { max = 40, stop = tok.eos })))
end
continue()
models.lora(net, { rank = options.rank, targets = { "q_proj", "k_proj", "v_proj", "o_proj" } })

-- Each token is told from those before it.
local function loss(window)
  return nn.cross_entropy(net(window[{ {}, { 1, -2 } }]), window[{ {}, { 2, -1 } }])
end

local function unseen()
  local mean = dc.fn(("mean(window: i32[n, %d]) -> f32[]"):format(size), loss)
  return mean(windows[{ { split + 1, -1 } }]):item()
end
local before = unseen()

train.fit {
  model = net, optimizer = optim.AdamW(net:parameters(), { lr = options.lr, clip_norm = 1 }), loss = loss,
  data = learn, batch = options.batch, steps = options.steps, on_epoch = train.report,
}
net:eval()
continue()
if options.write then
  models.save_lora(options.write, net)
end
print(("loss %.3f nats a token of what it has not seen, %.3f before"):format(unseen(), before))
