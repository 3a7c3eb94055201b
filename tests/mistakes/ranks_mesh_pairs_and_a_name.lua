local dc = require "deepc"

dc.mesh { { "data", 1 }, model = 2 }
