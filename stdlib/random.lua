-- Draws from distributions: what the files of random/ put together.

local random = require "deepc.random.continuous"
local _, core = ...

require "deepc.random.discrete"

return core.module("deepc.random", random)
