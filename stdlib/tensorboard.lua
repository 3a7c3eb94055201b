-- TensorBoard: what the files of tensorboard/ put together.

local tensorboard = require "deepc.tensorboard.writer"
local _, core = ...

require "deepc.tensorboard.graph"
require "deepc.tensorboard.hparams"

core.entries(core.tensorboard.Writer)

return core.module("deepc.tensorboard", tensorboard)
