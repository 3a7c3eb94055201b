local random = require "deepc.random"

random.binomial("i32[4]", { n = 0.25, p = 10 })
