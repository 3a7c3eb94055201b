local dc = require "deepc"

local train
for x in dc.progress(train) do
  x:sum()
end
