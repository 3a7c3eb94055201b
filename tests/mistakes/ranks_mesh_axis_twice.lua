local dc = require "deepc"

dc.mesh { { "data", 1 }, { "data", 1 } }
