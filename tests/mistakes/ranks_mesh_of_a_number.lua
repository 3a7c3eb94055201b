local dc = require "deepc"

dc.mesh(dc.world().size)
