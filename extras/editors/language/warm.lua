-- What a process that checks scripts loads before there is one (extras/editors/language_check.c): everything that a
-- script may require, and what the library itself loads when one of its functions is first called.

local help = require "deepc.help"

for _, name in ipairs(help.modules()) do
  require(name)
end
for _, name in ipairs { "arrange", "associative", "autocast", "cells", "control", "counting", "distances", "divisors",
  "files", "indexing", "load", "operands", "options", "order", "progress", "ranges", "search", "vmap" } do
  require("deepc." .. name)
end

return true
