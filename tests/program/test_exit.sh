#!/bin/sh
# os.exit while functions are being compiled on other threads, at several moments of that.
. "$(dirname "$0")/lib.sh"

cat >"$dir/exit.lua" <<'EOT'
local dc = require "deepc"
for i = 1, 4 do
  dc.fn(("f(x: f32[64, %d]) -> f32[64]"):format(100 + i), function(x) return (x * x + i):exp():sum(2) end)
end
local t = os.clock()
while os.clock() - t < tonumber(arg[1]) do end
os.exit(7)
EOT
for wait in 0 0.01 0.02 0.03 0.04 0.06 0.08 0.1; do
    run "$DEEPC" "$dir/exit.lua" $wait
    check "after $wait s the status is the script's" test "$status" -eq 7
done
closing
