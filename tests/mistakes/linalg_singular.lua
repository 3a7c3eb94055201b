local dc = require "deepc"
local linalg = require "deepc.linalg"
local x = dc.tensor { { 1, 2, 3 }, { 2, 4, 6 } }
local gram = x:transpose():matmul(x)

return linalg.inv(gram)
