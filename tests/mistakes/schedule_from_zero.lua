local schedules = require "deepc.schedules"

local rate = schedules.cosine { lr = 1e-3, steps = 100 }
rate(0)
