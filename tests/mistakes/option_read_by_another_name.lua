local dc = require "deepc"

local options = dc.options({ { "batch-size", 64, "rows of a batch" } }, {})
return options.batch
