local dc = require "deepc"

dc.save("/tmp/net.gguf", { weight = dc.ones "f32[4, 32]" / 0 }, nil, { type = "q8_0" })
