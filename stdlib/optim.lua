-- Optimisers: what the files of optim/ put together.

local optim = require "deepc.optim.class"
local _, core = ...

require "deepc.optim.step"
require "deepc.optim.clip"
require "deepc.optim.sgd"
require "deepc.optim.adam"
require "deepc.optim.large"
require "deepc.optim.groups"
require "deepc.optim.wolfe"
require "deepc.optim.lbfgs"
require "deepc.optim.average"
require "deepc.optim.scaler"

return core.module("deepc.optim", optim)
