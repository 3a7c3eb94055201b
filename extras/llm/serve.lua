-- deepc.serve: what the files of serve/ put together.

local serve = require "deepc.serve.server"
require "deepc.serve.masks"
local _, core = ...

return core.module("deepc.serve", serve)
