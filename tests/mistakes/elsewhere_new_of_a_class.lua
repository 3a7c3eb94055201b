local nn = require "deepc.nn"
local Net = nn.class "Net"
function Net:init() self.a = nn.Linear(2, 2) end
return Net:new()
