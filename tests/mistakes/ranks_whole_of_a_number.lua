local dc = require "deepc"

dc.mesh { data = 1 }
dc.whole(3)
