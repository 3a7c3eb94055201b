-- Names of PyTorch that layers, losses, optimisers, schedules and batches here have beside them
-- (scripts/names.lua), one a line: what scripts/peers defaults asks PyTorch for the defaults of.
package.path = "./?.lua;" .. package.path
local names = require "tests.peers.defaults".peers()
print(table.concat(names, "\n"))
