-- Training loops: what the files of train/ put together.

require "deepc.nn"
local train = require "deepc.train.class"
local _, core = ...

require "deepc.train.fit"

return core.module("deepc.train", train)
