-- Reads the log of DEEPC_COMPARE=eval on standard input: compared.lua NAME COUNT BOUND. For COUNT calls of
-- the function NAME the scalar result must agree within BOUND, relative.
local name, count, bound = arg[1], tonumber(arg[2]), tonumber(arg[3])
local calls, largest = 0, 0
for line in io.stdin:lines() do
  local who, want, got = line:match "^%[compare%] (%S+) call %d+: result 1 eval (%S+) %S+ (%S+)"
  if who == name and calls < count then
    got, want = assert(tonumber(got)), assert(tonumber(want))
    calls = calls + 1
    largest = math.max(largest, math.abs(got - want) / math.abs(want))
  end
end
print(("%d calls of %s within %.3g"):format(calls, name, largest))
os.exit(calls == count and largest <= bound)
