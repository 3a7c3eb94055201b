local dc = require "deepc"
local linalg = require "deepc.linalg"
local covariance = dc.tensor { { 1, 2 }, { 2, 1 } }

return linalg.cholesky(covariance)
