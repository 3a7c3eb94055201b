local dc = require "deepc"

dc.mesh {}
