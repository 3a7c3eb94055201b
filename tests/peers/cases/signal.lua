-- Short-time transforms and windows beside PyTorch.
local signal = require "deepc.signal"

local torch_stft = "torch.stft(x, 16, hop_length=%s, window=torch.hann_window(16, dtype=x.dtype), center=%s, " ..
  "pad_mode='%s', normalized=%s, onesided=%s, return_complex=True)"
local function stft(name, options, peer, args)
  return { name, run = function(a)
    options.n_fft, options.window = 16, signal.hann_window(16, { dtype = a.x.dtype })
    return signal.stft(a.x, options)
  end, peer = peer, args = args or { { x = "T[60]" }, { x = "T[2, 41]" } } }
end

return {
  { "windows", run = function()
    return { signal.hann_window(7), signal.hann_window(8, { periodic = false }), signal.hamming_window(7),
      signal.hamming_window(8, { periodic = false }), signal.blackman_window(7), signal.blackman_window(8,
        { periodic = false }),
      signal.hann_window(1) }
  end, peer = [[(torch.hann_window(7), torch.hann_window(8, periodic=False), torch.hamming_window(7),
    torch.hamming_window(8, periodic=False), torch.blackman_window(7), torch.blackman_window(8, periodic=False),
    torch.hann_window(1))]], dtypes = { "f32" }, lazy_only = true },
  stft("stft", { hop = 4 }, torch_stft:format("4", "True", "reflect", "False", "True")),
  stft("stft, any hop", { hop = 5 }, torch_stft:format("5", "True", "reflect", "False", "True")),
  stft("stft, not centred", { hop = 4, center = false, normalized = true },
    torch_stft:format("4", "False", "reflect", "True", "True")),
  stft("stft, both sides", { pad_mode = "constant", onesided = false },
    torch_stft:format("None", "True", "constant", "False", "False")),
  { "stft without a window", run = function(a) return signal.stft(a.x, { n_fft = 12, win_length = 7, hop = 3 }) end,
    peer = "torch.stft(x, 12, hop_length=3, win_length=7, return_complex=True)", args = { { x = "T[30]" } } },
  { "istft", run = function(a)
    return signal.istft(a.x, { n_fft = 16, hop = 4, window = signal.hamming_window(16, { dtype = a.x:real().dtype }) })
  end, peer = "torch.istft(x, 16, hop_length=4, window=torch.hamming_window(16, dtype=x.real.dtype))",
    args = { { x = "Z[9, 12]" }, { x = "Z[2, 9, 7]" } } },
  { "istft, length", run = function(a) return signal.istft(a.x, { n_fft = 16, hop = 8, length = 50,
    normalized = true }) end,
    peer = "torch.istft(x, 16, hop_length=8, length=50, normalized=True)", args = { { x = "Z[9, 7]" } } },
  { "mel_spectrogram", run = function(a)
    return signal.mel_spectrogram(a.x, { sample_rate = 16000, n_fft = 128, mels = 12 })
  end, peer = [[
import librosa
result = torch.from_numpy(librosa.feature.melspectrogram(y=x.numpy(), sr=16000, n_fft=128, hop_length=32, n_mels=12))
]], args = { { x = "T[500]" }, { x = "T[2, 201]" } }, grad = false, dtypes = { "f32" }, normwise = true },
  { "mel_spectrogram, as torchaudio", run = function(a)
    return signal.mel_spectrogram(a.x, { sample_rate = 16000, n_fft = 128, hop = 64, mels = 12, pad_mode = "reflect",
      scale = "htk", norm = false })
  end, peer = [[
import torchaudio
result = torchaudio.transforms.MelSpectrogram(16000, 128, n_mels=12)(x)
]], args = { { x = "T[500]" }, { x = "T[2, 201]" } }, dtypes = { "f32" }, normwise = true,
    tol = { f32 = 4e-6 } }, -- torchaudio computes the filters in f32: they are off by 1e-6 of their largest one
}
