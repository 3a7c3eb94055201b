local dc = require "deepc"

dc.mesh { data = dc.world().size / 2 }
