-- deepc.signal: mel scales and filters, round trips, gradients, what is refused. tests/peers/cases/signal.lua has
-- windows and short-time transforms beside PyTorch.
local lu = require "luaunit"
local dc = require "deepc"
local signal = require "deepc.signal"

TestSignal = {}

function TestSignal:test_mel_scales()
  lu.assertAlmostEquals(signal.hz_to_mel(1000), 15, 1e-12)
  lu.assertAlmostEquals(signal.hz_to_mel(440), 6.6, 1e-12)
  lu.assertAlmostEquals(signal.hz_to_mel(6400), 42, 1e-12) -- 27 steps for a factor of 6.4
  lu.assertAlmostEquals(signal.hz_to_mel(700, "htk"), 2595 * math.log(2, 10), 1e-9)
  for _, scale in ipairs { "slaney", "htk" } do
    for _, f in ipairs { 0, 60, 999, 1001, 8000 } do
      lu.assertAlmostEquals(signal.mel_to_hz(signal.hz_to_mel(f, scale), scale), f, 1e-9)
    end
  end
end

-- Between the middles of the first and the last filter triangles add up to 1; each has its area.
function TestSignal:test_mel_filters()
  local w = signal.mel_filters { sample_rate = 16000, n_fft = 512, mels = 20, norm = false }
  lu.assertEquals(w.shape, { 20, 257 })
  local sums = w:sum(1):totable()
  local low, high = signal.mel_to_hz(signal.hz_to_mel(8000) / 21), signal.mel_to_hz(signal.hz_to_mel(8000) * 20 / 21)
  for k = 0, 256 do
    local f = k * 16000 / 512
    if f >= low and f <= high then
      lu.assertAlmostEquals(sums[k + 1], 1, 1e-6)
    end
  end
  local area = signal.mel_filters { sample_rate = 16000, n_fft = 4096, mels = 20, scale = "htk" }:sum(2):totable()
  for i = 1, 20 do
    lu.assertAlmostEquals(area[i] * 16000 / 4096, 1, 2e-3)
  end
end

function TestSignal:test_mel_spectrogram()
  local tone = (dc.iota(1000):cast "f32" * (2 * math.pi * 1000 / 8000)):sin()
  local options = { sample_rate = 8000, n_fft = 128, hop = 32, mels = 16 }
  local f = dc.fn("(x: f32[n]) -> f32[m, t]", function(x) return signal.mel_spectrogram(x, options) end, { m = 16,
    t = 32 })
  local y = f(tone)
  lu.assertEquals(y.shape, { 16, 32 })
  local z = signal.stft(tone, { n_fft = 128, hop = 32, window = signal.hann_window(128), pad_mode = "constant" })
  local want = signal.mel_filters { sample_rate = 8000, n_fft = 128, mels = 16 }:matmul(z:abs():square())
  lu.assertTrue((y - want):abs():max():item() < 1e-4)
  local edge = signal.mel_to_hz(signal.hz_to_mel(4000) * (y:sum(2):argmax(1):item() + 1) / 17)
  lu.assertTrue(math.abs(edge - 1000) < 200)
end

function TestSignal:test_round_trips()
  local x = dc.randn("f32[2, 203]", { seed = 3 })
  for _, hop in ipairs { 8, 7 } do
    local options = { n_fft = 32, hop = hop, win_length = 24, window = signal.hann_window(24) }
    local z = signal.stft(x, options)
    options.length = 203
    local back = signal.istft(z, options)
    local whole = (203 // hop) * hop - 16 -- behind that no frame is whole
    lu.assertTrue((back:split({ whole, 203 - whole }, 2) - x:split({ whole, 203 - whole },
      2)):abs():max():item() < 1e-5, hop)
  end
end

-- The adjoint of a linear map: <stft x, z> = <x, gradient>.
function TestSignal:test_gradients()
  local f = dc.fn("(x: f64[60], y: f64[60]) -> f64[], f64[]", function(x, y)
    local function loss(v)
      return signal.stft(v, { n_fft = 12, hop = 5, window = signal.hann_window(12,
        { dtype = "f64" }) }):abs():square():sum()
    end
    local g = dc.grad(loss(x), x)
    return (g * y):sum(), (loss(x + y * 1e-5) - loss(x - y * 1e-5)) / 2e-5
  end)
  local slope, want = f(dc.randn("f64[60]", { seed = 1 }), dc.randn("f64[60]", { seed = 2 }))
  lu.assertAlmostEquals(slope:item(), want:item(), 1e-6 * math.abs(want:item()))
end

function TestSignal:test_refused()
  local x = dc.ones "f32[40]"
  lu.assertErrorMsgContains("n_fft is a whole number of at least 1, not nil", signal.stft, x)
  lu.assertErrorMsgContains("hop is a whole number of at least 1, not 0", signal.stft, x, { n_fft = 8, hop = 0 })
  lu.assertErrorMsgContains("the window is f32[4], and 8 samples are needed", signal.stft, x,
    { n_fft = 8, window = dc.ones "f32[4]" })
  lu.assertErrorMsgContains("win_length is 9, and n_fft 8 is the most", signal.stft, x, { n_fft = 8, win_length = 9 })
  lu.assertErrorMsgContains("reflection of 32 samples needs more than 20", signal.stft, dc.ones "f32[20]",
    { n_fft = 64 })
  lu.assertErrorMsgContains("a signal of 40 samples is shorter than a frame of 64", signal.stft, x,
    { n_fft = 64, center = false })
  lu.assertErrorMsgContains('pad_mode is "reflect"', signal.stft, x, { n_fft = 8, pad_mode = "wrap" })
  lu.assertErrorMsgContains("complex [..., 5, frames] is needed for n_fft 8, not f32[5, 3]", signal.istft,
    dc.ones "f32[5, 3]",
    { n_fft = 8 })
  lu.assertErrorMsgContains("covers none of the frequencies", signal.mel_filters,
    { sample_rate = 16000, n_fft = 64, mels = 80 })
  lu.assertErrorMsgContains('scale is "slaney" or "htk"', signal.hz_to_mel, 3, "bark")
  lu.assertErrorMsgContains("sample_rate is a number above 0", signal.mel_filters, { n_fft = 64 })
end
