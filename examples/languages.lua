-- Which language is spoken? An LSTM (Hochreiter and Schmidhuber 1997) listens to two seconds as a mel spectrogram.
--
--   deepc languages.lua
--   deepc languages.lua --checkpoint run.safetensors
--   deepc languages.lua --checkpoint run.safetensors --resume --epochs 30
--
-- Data: the prompts of a telephone exchange in five languages, 2,800 WAV files of Debian's packages
-- asterisk-core-sounds-{en,es,fr,it,ru}-wav. They are split by what is said: a prompt of the test is trained with in no
-- language. There is one speaker for each language, so the network tells speakers apart as well as languages.
-- Result: test accuracy 0.95, after 20 seconds on two cores.

local dc = require "deepc"
local nn, optim, schedules = require "deepc.nn", require "deepc.optim", require "deepc.schedules"
local data, metrics, train = require "deepc.data", require "deepc.metrics", require "deepc.train"
local random, signal = require "deepc.random", require "deepc.signal"

local options = dc.options {
  about = "Learns which of five languages is spoken.",
  { "epochs", nil, "passes over the sounds to train with (15, with --quick 5)", type = "integer", min = 1 },
  { "batch", 64, "sounds in a step", min = 1 },
  { "hidden", 64, "size of the LSTM's state", min = 1 },
  { "lr", 3e-3, "learning rate of the first epoch, which halves every five epochs", min = 0 },
  { "seed", 0, "of the split, the weights and the order of the sounds" },
  { "data", "/usr/share/asterisk/sounds", "where the folders of the languages are", value = "DIR" },
  { "checkpoint", nil, "keeps all that is needed to go on", value = "FILE" },
  { "resume", false, "goes on from the checkpoint, if there is one", needs = "checkpoint" },
  { "quick", false, "a run of a few seconds" },
}
dc.seed(options.seed)

local RATE, MELS = 8000, 40
local FRAMES = options.quick and RATE or 2 * RATE -- of a sound: what is longer is cut off, silence fills up the rest
local languages = { "en", "es", "fr", "it", "ru" }

-- ---- the network ----

local Listener = nn.class "Listener"

function Listener:init(hidden)
  self.norm = nn.BatchNorm1d(MELS)
  self.lstm = nn.LSTM(MELS, hidden)
  self.out = nn.Sequential { nn.Dropout(0.3), nn.Linear(hidden, #languages) }
end

function Listener:forward(sounds) -- f32[n, frames, 1], as data.sounds reads them
  local mel = signal.mel_spectrogram(sounds:reshape(#sounds, -1),
    { sample_rate = RATE, n_fft = 256, hop = 128, mels = MELS })
  local x = self.norm((mel + 1e-6):log()) -- f32[n, mels, time]
  local y = self.lstm(x:permute(3, 1, 2)) -- f32[time, n, hidden]
  return self.out(y:mean(1))
end

local net = Listener(options.hidden)
print(net:summary(("f32[%d, %d, 1]"):format(options.batch, FRAMES))) -- an error in the network is found here

-- ---- the sounds ----

-- By what is said: prompts["digits/1"] has the path of that number in each language. Silence is left out.
local prompts, names = {}, {}
local there, found = pcall(data.files, options.data, "*.wav", { recursive = true })
for _, path in ipairs(there and found or {}) do
  local language, name = path:match "/(%l%l)_[^/]*/(.+)%.wav$"
  if language and not name:find "^silence/" then
    if not prompts[name] then
      prompts[name] = {}
      names[#names + 1] = name
    end
    prompts[name][language] = path
  end
end
for _, language in ipairs(languages) do
  if not (prompts["digits/1"] and prompts["digits/1"][language]) then
    dc.fail(("%s has no '%s'; Debian's package asterisk-core-sounds-%s-wav has it"):format(options.data, language,
      language))
  end
end

table.sort(names)
local order = random.permutation(#names, { seed = options.seed }):totable() -- of the names, from 0

-- A set of what is said under the names from place `first` to `last` of the order, in all languages.
local function set_of(first, last)
  local paths, labels = {}, {}
  for i = first, last do
    local prompt = prompts[names[order[i] + 1]]
    for label, language in ipairs(languages) do
      if prompt[language] then
        paths[#paths + 1], labels[#labels + 1] = prompt[language], label - 1
      end
    end
  end
  return data.set(data.sounds(paths, { frames = FRAMES, rate = RATE }), dc.tensor(labels, "i32"))
end

local tested = #names // 5
local test, training = set_of(1, tested), set_of(tested + 1, options.quick and 2 * tested or #names)
print(("%d sounds to train with, %d to test with"):format(#training, #test))

-- ---- training ----

local run = train.fit {
  model = net, optimizer = optim.AdamW(net:parameters(), { clip_norm = 1 }),
  data = training, batch = options.batch, epochs = options.epochs or (options.quick and 5 or 15),
  loss = function(sounds, labels)
    local logits = net(sounds)
    return nn.cross_entropy(logits, labels), logits
  end,
  schedule = schedules.step { lr = options.lr, every = 5 * (#training // options.batch), factor = 0.5 },
  evaluate = test, metrics = { accuracy = metrics.Accuracy() },
  checkpoint = options.checkpoint, resume = options.resume, on_epoch = train.report,
}
print(("test accuracy %.4f"):format(run.history[run.epoch]["eval.accuracy"]))
