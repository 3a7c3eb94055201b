local dc = require "deepc"
dc.load "model.onnx"
