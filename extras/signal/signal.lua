-- Signals in short pieces: windows, the short-time Fourier transform and its inverse, mel filters.

local dc = require "deepc"
local fft = require "deepc.fft"
local _, core = ...

---Signals: windows, short-time Fourier transforms, mel spectrograms.
---
---    local signal = require "deepc.signal"
---@class deepc.signal
local signal = {}

-- ---- arguments ----

local function check_count(op, what, n, least)
  if math.type(n) ~= "integer" or n < least then
    core.fail("ARG", op, ("%s is a whole number of at least %d, not %s"):format(what, least, core.shown(n)))
  end
  return n
end

local function check_boolean(op, what, v, default)
  if v == nil then
    return default
  elseif type(v) ~= "boolean" then
    core.fail("ARG", op, ("%s is true or false, not %s"):format(what, core.shown(v)))
  end
  return v
end

local function check_number(op, what, v, default)
  if v == nil then
    return default
  elseif type(v) ~= "number" then
    core.fail("ARG", op, ("%s is a number, not %s"):format(what, core.shown(v)))
  end
  return v
end

local function check_tensor(op, x)
  if not core.kind(x) then
    core.fail("ARG", op, "a tensor is needed, not " .. core.describe(x))
  elseif #x.shape == 0 then
    core.fail("ARG", op, "a signal has a last axis, of samples", nil, "of", x)
  elseif math.type(x.shape[#x.shape]) ~= "integer" then
    core.fail("EXTENT_TEXT", op, "the axis of samples has a size known at run time, and a fixed size is needed", nil,
      "of", x)
  end
end

-- ---- windows ----

-- sum of c[i] cos(2 pi i k / m), m = n, or n - 1 where the window is symmetric.
local function cosines(op, n, options, c)
  check_count(op, "n", n, 1)
  core.options(op, options, "periodic", "dtype")
  local periodic = check_boolean(op, "periodic", options and options.periodic, true)
  local dtype = options and options.dtype or "f32"
  if dtype ~= "f32" and dtype ~= "f64" then
    core.fail("ARG", op, ('dtype is "f32" or "f64", not %s'):format(core.shown(dtype)))
  elseif n == 1 then
    return dc.ones(dtype .. "[1]")
  end
  local m = periodic and n or n - 1
  local list = {}
  for k = 0, n - 1 do
    list[k + 1] = 0
    for i, factor in ipairs(c) do
      list[k + 1] = list[k + 1] + factor * math.cos(2 * math.pi * (i - 1) * k / m)
    end
  end
  return (core.anywhere(dc.tensor(list, dtype)))
end

---The Hann window of n samples (torch.hann_window): 0.5 - 0.5 cos(2 pi k / n).
---
---    signal.hann_window(8)
---
---Errors: DC0101 where n is no whole number of at least 1.
---@param n integer
---@param options? { periodic?: boolean, dtype?: "f32"|"f64" } periodic without: of n + 1 symmetric samples the first n
---@return deepc.Tensor # f32[n]
function signal.hann_window(n, options)
  local w = cosines("hann_window", n, options, { 0.5, -0.5 })
  return w
end

---The Hamming window of n samples (torch.hamming_window): 0.54 - 0.46 cos(2 pi k / n).
---
---    signal.hamming_window(8)
---
---Errors: as signal.hann_window.
---@param n integer
---@param options? { periodic?: boolean, dtype?: "f32"|"f64" }
---@return deepc.Tensor # f32[n]
function signal.hamming_window(n, options)
  local w = cosines("hamming_window", n, options, { 0.54, -0.46 })
  return w
end

---The Blackman window of n samples (torch.blackman_window): 0.42 - 0.5 cos(2 pi k / n) + 0.08 cos(4 pi k / n).
---
---    signal.blackman_window(8)
---
---Errors: as signal.hann_window.
---@param n integer
---@param options? { periodic?: boolean, dtype?: "f32"|"f64" }
---@return deepc.Tensor # f32[n]
function signal.blackman_window(n, options)
  local w = cosines("blackman_window", n, options, { 0.42, -0.5, 0.08 })
  return w
end

-- ---- short-time transforms ----

local pads = { reflect = true, constant = true, replicate = true }

-- `side` elements before and behind the last axis, as torch.nn.functional.pad makes them.
local function padded(op, x, side, mode)
  local axis, n = #x.shape, x.shape[#x.shape]
  if side == 0 then
    return x
  elseif mode == "constant" then
    return x:pad { [axis] = { side, side } }
  elseif mode == "replicate" then
    local shape = {}
    for k, size in ipairs(x.shape) do
      shape[k] = k == axis and side or size
    end
    local first, last = x:split({ 1, n - 1 }, axis), select(2, x:split({ n - 1, 1 }, axis))
    return dc.concat({ first:expand(shape), x, last:expand(shape) }, axis)
  elseif side >= n then
    core.fail("ARG", op, ("reflection of %d samples needs more than %d"):format(side, n),
      'pad_mode = "constant", or center = false', "of", x)
  end
  local _, before = x:split({ 1, side, n - 1 - side }, axis)
  local _, behind = x:split({ n - 1 - side, side, 1 }, axis)
  return dc.concat({ before:flip(axis), x, behind:flip(axis) }, axis)
end

-- The samples that frames are multiplied by, or nil: a window of win_length in the middle of n_fft.
local function window_of(op, options, n_fft, dtype)
  local w, length = options.window, options.win_length or n_fft
  check_count(op, "win_length", length, 1)
  if length > n_fft then
    core.fail("ARG", op, ("win_length is %d, and n_fft %d is the most"):format(length, n_fft))
  end
  if w == nil then
    if length == n_fft then
      return nil
    end
    w = dc.ones(("%s[%d]"):format(dtype, length))
  elseif not core.kind(w) or #w.shape ~= 1 or w.shape[1] ~= length then
    core.fail("ARG", op, ("the window is %s, and %d samples are needed"):format(core.describe(w), length),
      ("signal.hann_window(%d)"):format(length))
  end
  if w.dtype ~= dtype then
    w = w:cast(dtype)
  end
  local before = (n_fft - length) // 2
  return length == n_fft and w or w:pad { { before, n_fft - length - before } }
end

local function read_options(op, options, ...)
  core.options(op, options, "n_fft", "hop", "win_length", "window", "center", "normalized", "onesided", ...)
  options = options or {}
  local n_fft = check_count(op, "n_fft", options.n_fft, 1)
  return options, {
    n_fft = n_fft,
    hop = check_count(op, "hop", options.hop or math.max(n_fft // 4, 1), 1),
    center = check_boolean(op, "center", options.center, true),
    normalized = check_boolean(op, "normalized", options.normalized, false),
    onesided = check_boolean(op, "onesided", options.onesided, true),
  }
end

-- [..., n] as [..., frames, n_fft]: each frame begins a hop after the one before. Where the hop divides n_fft, frames
-- are blocks of a hop, several of which stand side by side; else their samples are gathered.
local function frames_of(x, n_fft, hop)
  local axis, n = #x.shape, x.shape[#x.shape]
  local count = (n - n_fft) // hop + 1
  if n_fft % hop ~= 0 then
    local at = dc.iota(("i32[%d, 1]"):format(count), 1) * hop + dc.iota(("i32[1, %d]"):format(n_fft), 2)
    return x:take(at, axis)
  end
  local parts, blocks = n_fft // hop, count + n_fft // hop - 1
  local shape = table.move(x.shape, 1, axis - 1, 1, {})
  shape[axis], shape[axis + 1] = blocks, hop
  local used = blocks * hop
  local cut = used < n and x:split({ used, n - used }, axis) or x
  local rows, list = cut:reshape(shape), {}
  for i = 1, parts do
    local _, middle = rows:split({ i - 1, count, blocks - count - i + 1 }, axis)
    list[i] = middle
  end
  return parts == 1 and list[1] or dc.concat(list, axis + 1)
end

local function exchanged(x)
  return x:transpose()
end

---The short-time Fourier transform of real signals (torch.stft): the transforms of frames of n_fft samples, each a hop
---behind the one before, times a window. [..., n] becomes complex [..., frequencies, frames].
---
---    signal.stft(dc.randn "f32[400]", { n_fft = 64, hop = 16, window = signal.hann_window(64) })
---
---Options: `n_fft`; `hop`, a quarter of it without; `win_length` and `window`, in the middle of a frame; `center`, true
---without: frame t is about sample t hop, and the signal goes on by `pad_mode`, "reflect", "constant" or "replicate";
---`normalized` divides by the root of n_fft; `onesided`, true without: n_fft // 2 + 1 frequencies.
---
---Errors: DC0101 for other options, for a window of another size, for signals shorter than a frame; DC0311 for an axis
---of samples whose size is known at run time.
---@param x deepc.Tensor of real numbers; samples along the last axis
---@param options { n_fft: integer, hop?: integer, window?: deepc.Tensor, center?: boolean } and others
---@return deepc.Tensor
function signal.stft(x, options)
  check_tensor("stft", x)
  local given, o = read_options("stft", options, "pad_mode")
  local mode = given.pad_mode or "reflect"
  if not pads[mode] then
    core.fail("ARG", "stft", ('pad_mode is "reflect", "constant" or "replicate", not %s'):format(core.shown(mode)))
  end
  if x.dtype ~= "f32" and x.dtype ~= "f64" then
    x = x:cast "f32"
  end
  local window = window_of("stft", given, o.n_fft, x.dtype)
  if o.center then
    x = padded("stft", x, o.n_fft // 2, mode)
  end
  local n = x.shape[#x.shape]
  if n < o.n_fft then
    core.fail("ARG", "stft", ("a signal of %d samples is shorter than a frame of %d"):format(n, o.n_fft), nil, "of", x)
  end
  local frames = frames_of(x, o.n_fft, o.hop)
  frames = window and frames * window or frames
  local norm = { norm = o.normalized and "ortho" or "backward" }
  local y = exchanged(o.onesided and fft.rfft(frames, norm) or fft.fft(frames, norm))
  return y
end

-- [..., frames, n_fft] added up where frames overlap: [..., n_fft + hop (frames - 1)].
local function overlapped(y, hop)
  local axis = #y.shape - 1
  local count, n_fft = y.shape[axis], y.shape[axis + 1]
  local blocks = (n_fft + hop - 1) // hop
  local all = count + blocks - 1
  y = blocks * hop > n_fft and y:pad { [axis + 1] = { 0, blocks * hop - n_fft } } or y
  local parts, sum = { y:split(blocks, axis + 1) }, nil
  for i, part in ipairs(parts) do
    local moved = part:pad { [axis] = { i - 1, blocks - i } }
    sum = sum and sum + moved or moved
  end
  local shape = table.move(y.shape, 1, axis - 1, 1, {})
  shape[axis] = all * hop
  local n = n_fft + hop * (count - 1)
  local flat = sum:reshape(shape)
  return n < all * hop and (flat:split({ n, all * hop - n }, axis)) or flat
end

---The inverse of stft (torch.istft): frames are transformed back, multiplied by the window, added up, and divided by
---the sum of the squares of the windows, where that is not 0 (Griffin and Lim, 1984). The options are those that
---stft had.
---
---    signal.istft(signal.stft(dc.ones "f32[400]", { n_fft = 64 }), { n_fft = 64, length = 400 })
---
---Errors: as signal.stft; DC0101 where the number of frequencies does not fit n_fft.
---@param z deepc.Tensor complex [..., frequencies, frames]
---@param options { n_fft: integer, hop?: integer, window?: deepc.Tensor, length?: integer } and others
---@return deepc.Tensor # [..., n]
function signal.istft(z, options)
  check_tensor("istft", z)
  local given, o = read_options("istft", options, "length")
  local wanted = o.onesided and o.n_fft // 2 + 1 or o.n_fft
  if z.dtype ~= "c64" and z.dtype ~= "c128" or #z.shape < 2 or z.shape[#z.shape - 1] ~= wanted then
    core.fail("ARG", "istft", ("complex [..., %d, frames] is needed for n_fft %d, not %s"):format(wanted, o.n_fft,
      core.describe(z)), nil, "of", z)
  end
  local dtype = z.dtype == "c128" and "f64" or "f32"
  local window = window_of("istft", given, o.n_fft, dtype)
  local norm = { norm = o.normalized and "ortho" or "backward", n = o.n_fft }
  z = exchanged(z)
  local frames = o.onesided and fft.irfft(z, norm) or fft.ifft(z, norm):real()
  local count = frames.shape[#frames.shape - 1]
  local squares = window and window * window or dc.ones(("%s[%d]"):format(dtype, o.n_fft))
  local y = overlapped(window and frames * window or frames, o.hop)
  local weight = overlapped(squares:reshape(1, o.n_fft):expand { count, o.n_fft }, o.hop)
  local axis, n = #y.shape, y.shape[#y.shape]
  local first = o.center and o.n_fft // 2 or 0
  local length = check_count("istft", "length", given.length or n - 2 * first, 1)
  local take = math.min(length, n - first)
  local rest = n - first - take
  weight = select(2, weight:split({ first, take, rest }, 1))
  y = select(2, y:split({ first, take, rest }, axis)) / dc.where(weight:lt(1e-10), 1, weight)
  return take < length and y:pad { [axis] = { 0, length - take } } or y
end

-- ---- mel scales ----

-- Slaney's: linear to 1000 Hz, logarithmic above; HTK's: 2595 log10(1 + f / 700).
local function to_mel(f, htk)
  if htk then
    return 2595 * math.log(1 + f / 700, 10)
  end
  return f < 1000 and f * 3 / 200 or 15 + math.log(f / 1000) * 27 / math.log(6.4)
end

local function from_mel(m, htk)
  if htk then
    return 700 * (10 ^ (m / 2595) - 1)
  end
  return m < 15 and m * 200 / 3 or 1000 * math.exp((m - 15) * math.log(6.4) / 27)
end

local scales = { slaney = false, htk = true }

local function check_scale(op, scale)
  if scale ~= nil and scales[scale] == nil then
    core.fail("ARG", op, ('scale is "slaney" or "htk", not %s'):format(core.shown(scale)))
  end
  return scales[scale or "slaney"]
end

---A frequency in Hz on the mel scale: Slaney's (librosa.hz_to_mel), or HTK's (O'Shaughnessy, 1987).
---
---    signal.hz_to_mel(440)
---
---Errors: DC0101 for another scale.
---@param f number
---@param scale? "slaney"|"htk"
---@return number
function signal.hz_to_mel(f, scale)
  check_number("hz_to_mel", "f", f)
  return to_mel(f, check_scale("hz_to_mel", scale))
end

---The reverse of hz_to_mel (librosa.mel_to_hz).
---
---    signal.mel_to_hz(10)
---
---Errors: as signal.hz_to_mel.
---@param m number
---@param scale? "slaney"|"htk"
---@return number
function signal.mel_to_hz(m, scale)
  check_number("mel_to_hz", "m", m)
  return from_mel(m, check_scale("mel_to_hz", scale))
end

---Triangular filters that lie evenly on the mel scale, as a matrix [mels, n_fft // 2 + 1] for powers of rfft
---(librosa.filters.mel; torchaudio.functional.melscale_fbanks is its transpose).
---
---    signal.mel_filters { sample_rate = 16000, n_fft = 400, mels = 40 }
---
---Options: `sample_rate`, `n_fft`, `mels`, 128 without; `low` and `high` frequency, 0 and half of the rate; `scale`,
---"slaney" or "htk"; `norm`, "slaney" or false: each filter divided by half of its width in Hz.
---
---Errors: DC0101 for other options, and where a filter covers no frequency, which more of them, n_fft, changes.
---@param options { sample_rate: number, n_fft: integer, mels?: integer, scale?: "slaney"|"htk" } and others
---@return deepc.Tensor # f32[mels, n_fft // 2 + 1]
function signal.mel_filters(options)
  local op = "mel_filters"
  core.options(op, options, "sample_rate", "n_fft", "mels", "low", "high", "scale", "norm")
  options = options or {}
  local rate = check_number(op, "sample_rate", options.sample_rate)
  if not rate or rate <= 0 then
    core.fail("ARG", op, ("sample_rate is a number above 0, not %s"):format(core.shown(rate)))
  end
  local n_fft, mels = check_count(op, "n_fft", options.n_fft, 1), check_count(op, "mels", options.mels or 128, 1)
  local low, high = check_number(op, "low", options.low, 0), check_number(op, "high", options.high, rate / 2)
  if low < 0 or high <= low then
    core.fail("ARG", op, ("frequencies from %s to %s"):format(core.shown(low), core.shown(high)))
  end
  if options.norm ~= nil and options.norm ~= false and options.norm ~= "slaney" then
    core.fail("ARG", op, ('norm is "slaney" or false, not %s'):format(core.shown(options.norm)))
  end
  local htk = check_scale(op, options.scale)
  local first, last, edge = to_mel(low, htk), to_mel(high, htk), {}
  for i = 0, mels + 1 do
    edge[i] = from_mel(first + (last - first) * i / (mels + 1), htk)
  end
  local rows = {}
  for i = 1, mels do
    local row, any = {}, false
    for k = 0, n_fft // 2 do
      local f = k * rate / n_fft
      local v = math.max(0, math.min((f - edge[i - 1]) / (edge[i] - edge[i - 1]), (edge[i + 1] - f) /
        (edge[i + 1] - edge[i])))
      any = any or v > 0
      row[k + 1] = options.norm ~= false and v * 2 / (edge[i + 1] - edge[i - 1]) or v
    end
    if not any then
      core.fail("ARG", op, ("filter %d, from %.1f to %.1f Hz, covers none of the frequencies, %.1f Hz apart"):format(i,
        edge[i - 1], edge[i + 1], rate / n_fft), "fewer mels, or a larger n_fft")
    end
    rows[i] = row
  end
  return (core.anywhere(dc.tensor(rows)))
end

---A mel spectrogram (librosa.feature.melspectrogram): filters times the powers of stft. [..., n] becomes
---[..., mels, frames].
---
---    signal.mel_spectrogram(dc.randn "f32[4000]", { sample_rate = 16000, n_fft = 400, hop = 160, mels = 40 })
---
---Options: those of stft and of mel_filters; a Hann window without `window`; `power`, 2 without. What is left out is
---as in librosa: `pad_mode` is "constant", zeros, and not "reflect" as of stft; `scale` and `norm` are "slaney". With
---`pad_mode = "reflect", scale = "htk", norm = false`, and `hop` half of the window, it is what
---torchaudio.transforms.MelSpectrogram does by itself.
---
---Errors: as signal.stft and signal.mel_filters.
---@param x deepc.Tensor of real numbers; samples along the last axis
---@param options { sample_rate: number, n_fft: integer, hop?: integer, mels?: integer, power?: number } and others
---@return deepc.Tensor
function signal.mel_spectrogram(x, options)
  local op = "mel_spectrogram"
  check_tensor(op, x)
  core.options(op, options, "sample_rate", "n_fft", "hop", "win_length", "window", "center", "pad_mode", "normalized",
    "mels", "low", "high", "scale", "norm", "power")
  options = options or {}
  local power = check_number(op, "power", options.power, 2)
  local n_fft = check_count(op, "n_fft", options.n_fft, 1)
  local z = signal.stft(x, { n_fft = n_fft, hop = options.hop, win_length = options.win_length,
    window = options.window or signal.hann_window(options.win_length or n_fft), center = options.center,
    pad_mode = options.pad_mode or "constant", normalized = options.normalized })
  local filters = signal.mel_filters { sample_rate = options.sample_rate, n_fft = n_fft, mels = options.mels,
    low = options.low, high = options.high, scale = options.scale, norm = options.norm }
  local re, im = z:real(), z:imag()
  local powers = power == 2 and re * re + im * im or z:abs() ^ power
  local y = (powers.dtype == "f64" and filters:cast "f64" or filters):matmul(powers)
  return y
end

return core.module("deepc.signal", signal)
