-- Models of others: what the files of models/ put together.

local models = require "deepc.models.base"
local _, core = ...

require "deepc.models.bert"
require "deepc.models.llama"
require "deepc.models.generate"
require "deepc.models.load"

return core.module("deepc.models", models)
