-- Data: what the files of data/ put together.

local data = require "deepc.data.set"
local _, core = ...

require "deepc.data.rows"
require "deepc.data.stream"
require "deepc.data.tables"
require "deepc.data.media"
require "deepc.data.folders"
require "deepc.data.text"
require "deepc.data.fetch"

return core.module("deepc.data", data)
