-- A recogniser of speech: convolutions over a spectrogram, LSTMs along it, classes at each moment.

local nn = require "deepc.nn"
local models = require "deepc.models.base"
local _, core = ...

---What is said at each moment of a sound, for nn.ctc_loss: two convolutions over a spectrogram, LSTMs along time, and
---logarithms of probabilities (after Amodei et al., 2016).
---
---    local log_probs, counts = net(features, { lengths = lengths })
---
---features are floats [batch, mels, frames], such as models.whisper_features or signal.mel_spectrogram with a
---logarithm. The result is f32[moments, batch, classes], a moment for two frames; with lengths, frames of each sound,
---i32[batch], the second one is the moments of each.
---@class deepc.models.Speech: deepc.nn.Layer
local Speech = nn.class "models.Speech"

function Speech:init(c)
  self.mels = c.mels
  self.conv = nn.Sequential {
    nn.Conv2d(1, c.channels, 3, { stride = 2, padding = 1 }), nn.BatchNorm2d(c.channels), nn.ReLU(),
    nn.Conv2d(c.channels, c.channels, 3, { stride = { 2, 1 }, padding = 1 }), nn.BatchNorm2d(c.channels), nn.ReLU(),
  }
  local rows = ((c.mels + 1) // 2 + 1) // 2
  self.rnn = nn.LSTM(c.channels * rows, c.hidden, { layers = c.layers, bidirectional = c.bidirectional,
    dropout = c.dropout })
  self.head = nn.Linear((c.bidirectional and 2 or 1) * c.hidden, c.classes)
end

function Speech:describe()
  return ("models.Speech %d -> %d"):format(self.mels, self.head.outputs)
end

function Speech:forward(features, options)
  local op = "models.Speech"
  core.check_tensor(op, features, "features")
  core.options(op, options, "lengths")
  local shape, lengths = features.shape, options and options.lengths
  if #shape ~= 3 or shape[2] ~= self.mels then
    core.fail("DIMS", op, ("features are %s[%s]; [batch, %d, frames] is needed"):format(features.dtype,
      core.sizes(shape), self.mels), nil, "features", features)
  end
  local x = self.conv(features:reshape(shape[1], 1, shape[2], shape[3]))
  local b, channels, rows, moments = table.unpack(x.shape)
  local counts = lengths and (lengths + 1) // 2 or nil
  local y = self.rnn(x:permute(4, 1, 2, 3):reshape(moments, b, channels * rows), nil, counts and { lengths = counts })
  y = self.head(y):log_softmax(-1)
  return y, counts
end

---A recogniser of speech of a few million parameters, to be trained with nn.ctc_loss.
---
---    local net = models.speech { mels = 16, channels = 8, hidden = 32, layers = 2, classes = 29 }
---
---Fields of the config: mels (80), channels of the convolutions (32), hidden (256), layers (3) of LSTMs, bidirectional
---(true), dropout (0), classes, the blank among them.
---
---Errors: DC0101 for a field.
---@param config table
---@return deepc.models.Speech
function models.speech(config)
  local r = core.model_config("models.speech", config)
  local net = Speech { mels = r:size("mels", 80), channels = r:size("channels", 32), hidden = r:size("hidden", 256),
    layers = r:layers("layers", 3), bidirectional = r:flag("bidirectional", true), dropout = r:number("dropout", 0, 0),
    classes = r:size "classes" }
  return net
end
