-- deepc's side of bench/fft.py.
local dc = require "deepc"
local fft = require "deepc.fft"
local signal = require "deepc.signal"
local frame = dofile((arg[0]:match "^(.*)/" or ".") .. "/frame.lua")

local lines = {
  fft = { "f(x: c64[M, N])", function(x) return fft.fft(x) end },
  rfft = { "f(x: f32[M, N])", function(x) return fft.rfft(x) end },
  irfft = { "f(x: c64[M, H])", function(x, case) return fft.irfft(x, { n = case.n }) end },
  fft2 = { "f(x: c64[M, N])", function(x) return fft.fft2(x) end },
  columns = { "f(x: c64[M, N])", function(x) return fft.fft(x, { axis = 1 }) end },
  gradient = { "f(x: f32[M, N])", function(x) return dc.grad(fft.rfft(x):abs():square():sum(), x) end },
  stft = { "f(x: f32[M, N])",
    function(x) return signal.stft(x, { n_fft = 400, hop = 160, window = signal.hann_window(400) }) end },
}

-- What brings results to the size of the inputs.
local function scale(case)
  return case.line == "irfft" and 1 or (case.line == "fft2" or case.line == "gradient") and case.n or 32
end

frame.serve(function(case, inputs)
  local text, body = table.unpack(lines[case.line])
  text = text:gsub("%f[%w][NMH]%f[%W]", { N = case.n, M = case.m, H = case.n // 2 + 1 })
  local f = dc.fn(text, function(x) return body(x, case) end)
  local x = inputs.y and dc.complex(inputs.x, inputs.y):clone() or inputs.x
  return function(n)
    local y
    for _ = 1, n do
      y = f(x)
    end
    y = (y.dtype == "c64" and y:view_as_real() or y) / scale(case)
    return { y = y }
  end
end)
