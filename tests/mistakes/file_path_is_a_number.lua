local data = require "deepc.data"

local images = data.idx(3)
