-- Compares two loss logs: losses.lua A B COUNT BOUND. The first COUNT losses must agree within BOUND,
-- relative; prints the largest difference of them and, without a bound, of all.
local count, bound = tonumber(arg[3]), tonumber(arg[4])

local function read(name)
  local t = {}
  for line in io.lines(name) do
    t[#t + 1] = assert(tonumber(line), name .. ": not a number: " .. line)
  end
  return t
end

local a, b = read(arg[1]), read(arg[2])
assert(#a >= count and #a == #b, ("%d and %d losses"):format(#a, #b))
local first, all = 0, 0
for i = 1, #a do
  local d = math.abs(a[i] - b[i]) / math.abs(b[i])
  all = math.max(all, d)
  if i <= count then first = math.max(first, d) end
end
print(("first %d losses within %.3g, all %d within %.3g"):format(count, first, #a, all))
os.exit(first <= bound)
