local data = require "deepc.data"

local images = data.idx "data/train-images-idx3-ubyte"
