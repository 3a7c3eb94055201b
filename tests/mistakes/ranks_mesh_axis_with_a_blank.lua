local dc = require "deepc"

dc.mesh { ["data parallel"] = 1 }
