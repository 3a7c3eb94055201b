-- Layers and losses: what the files of nn/ put together.

local nn = require "deepc.nn.class"
local _, core = ...

require "deepc.nn.layers"
require "deepc.nn.activations"
require "deepc.nn.piecewise"
require "deepc.nn.smooth"
require "deepc.nn.norms"
require "deepc.nn.channel_norms"
require "deepc.nn.conv"
require "deepc.nn.padding"
require "deepc.nn.pool"
require "deepc.nn.unpool"
require "deepc.nn.resample"
require "deepc.nn.patches"
require "deepc.nn.similarity"
require "deepc.nn.cells"
require "deepc.nn.recurrent"
require "deepc.nn.losses"
require "deepc.nn.loss_forms"
require "deepc.nn.ctc"
require "deepc.nn.initial"
require "deepc.nn.attention"
require "deepc.nn.positions"
require "deepc.nn.transformer"
require "deepc.nn.summary"
require "deepc.nn.whole"
require "deepc.nn.containers"
require "deepc.nn.bags"
require "deepc.nn.reparametrise"

return core.module("deepc.nn", nn)
