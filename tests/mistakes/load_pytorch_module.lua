local dc = require "deepc"

dc.load "tests/lua/tensors/torch_module.pt"
