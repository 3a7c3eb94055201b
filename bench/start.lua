-- deepc's side of bench/start.py: what decode.lua prepares and runs first.
local folder = arg[0]:match "^(.*)/" or "."
dofile(folder .. "/decode.lua")
