local dc = require "deepc"

dc.tensor { 1, 2, "3" }
