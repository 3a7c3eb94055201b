-- run: deepc check
local n = 0
for i = 1, 3 do n += i end
