-- Linear algebra: what the files of linalg/ put together.

local linalg = require "deepc.linalg.base"
local _, core = ...

require "deepc.linalg.factors"
require "deepc.linalg.solve"
require "deepc.linalg.values"
require "deepc.linalg.norms"
require "deepc.linalg.products"

return core.module("deepc.linalg", linalg)
