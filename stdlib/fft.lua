-- Fourier transforms: what the files of fft/ put together.

local fft = require "deepc.fft.transforms"
local _, core = ...

require "deepc.fft.cosine"

return core.module("deepc.fft", fft)
