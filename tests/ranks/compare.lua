-- deepc tests/ranks/compare.lua FILE FILE LIMIT: are the numbers in two files of tests/ranks/train.lua equal, within a
-- limit relative to the larger of 1 and their size? Exit status 1 and the worst line if not.
local limit = tonumber(arg[3])
local one, two = assert(io.open(arg[1])), assert(io.open(arg[2]))
local worst, where, n = 0, "", 0

for line in one:lines() do
  local other = two:read "l" or ""
  local a, b = {}, {}
  for word in line:gmatch "%S+" do a[#a + 1] = word end
  for word in other:gmatch "%S+" do b[#b + 1] = word end
  assert(a[1] == b[1] and #a == #b, ("'%s' against '%s'"):format(line, other))
  for i = 2, #a do
    local x, y = tonumber(a[i]), tonumber(b[i])
    local distance = x == y and 0 or math.abs(x - y) / math.max(1, math.abs(x))
    n = n + 1
    if distance > worst or distance ~= distance then
      worst, where = distance, line .. " against " .. other
    end
  end
end
assert(two:read "l" == nil and n > 0, "one file is longer")
print(("%d numbers, at most %.2g apart"):format(n, worst))
if worst > limit or worst ~= worst then
  print(where)
  os.exit(1)
end
