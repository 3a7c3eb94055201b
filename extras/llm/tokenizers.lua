-- Tokenizers: what the files of tokenizers/ put together.

local tokenizers = require "deepc.tokenizers.class"
local _, core = ...

require "deepc.tokenizers.sentencepiece"
require "deepc.tokenizers.sources"
require "deepc.tokenizers.gguf"
require "deepc.tokenizers.chat"

return core.module("deepc.tokenizers", tokenizers)
