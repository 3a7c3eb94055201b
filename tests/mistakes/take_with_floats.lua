local dc = require "deepc"

local table_of_words = dc.ones "f32[100, 16]"
local ids = dc.tensor { 3, 1, 4 }
print(table_of_words:take(ids, 1))
