local dc = require "deepc"

dc.mesh { data = 2, model = 2 }
