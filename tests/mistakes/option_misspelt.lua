local dc = require "deepc"

local options = dc.options({ { "epochs", 5, "passes over the data" } }, { "--epoch", "3" })
return options
