-- luacheck: ignore
local dc = require "deepc"

dc.check_numbers "nan"
