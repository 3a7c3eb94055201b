local data = require "deepc.data"

local train, test = data.fashion_mnist { dir = "/nonexistent" }
