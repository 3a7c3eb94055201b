-- run: deepc check
local dc = require "deepc"

local labels = dc.tensor({ 1, 0, 1 }, "i32")
local accuracy = labels:eq(1):mean()
if accuracy == 1 then
  print "all of them"
end
while labels:eq(1):mean() ~= 1 do
  break
end
