-- Models of others: what the files of models/ put together.

local models = require "deepc.models.base"
local _, core = ...

require "deepc.models.bert"
require "deepc.models.llama"
require "deepc.models.gpt2"
require "deepc.models.mamba"
require "deepc.models.whisper"
require "deepc.models.vision"
require "deepc.models.vit"
require "deepc.models.unet"
require "deepc.models.speech"
require "deepc.models.generate"
require "deepc.models.lora"
require "deepc.models.load"

return core.module("deepc.models", models)
