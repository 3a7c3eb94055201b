#!/bin/sh
# f:dot() and deepc dot, read by Graphviz's dot where that is installed.
. "$(dirname "$0")/lib.sh"

cat >"$dir/graphs.lua" <<'LUA'
local dc, nn, optim = require "deepc", require "deepc.nn", require "deepc.optim"
local Odd = nn.class "Odd"
function Odd:init()
  self['a"b\\ <&amp;>\n\xff'] = nn.Sequential { nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(),
    nn.Linear(144, 3) }
end
function Odd:forward(x)
  return self['a"b\\ <&amp;>\n\xff'](x)
end
local net = Odd()
local forward = dc.fn("forward(x: f32[2, 1, 8, 8]) -> f32[2, 3]", net)
local opt = optim.Adam(net:parameters())
local step = dc.fn("step(x: f32[2, 1, 8, 8]) -> f32[]", function(x)
  local loss = forward(x):square():mean()
  opt:step(loss)
  return loss
end)
local lstm = nn.LSTM(4, 8)
local loop = dc.fn("loop(x: f32[2, 6, 4]) -> f32[2, 6, 8]", function(x) return (lstm(x)) end)
for name, f in pairs { forward = forward, step = step, loop = loop } do
  f:dot { path = arg[1] .. "/" .. name .. ".layer.dot" }
  f:dot { path = arg[1] .. "/" .. name .. ".group.dot", by = "group" }
  f:dot { path = arg[1] .. "/" .. name .. ".traced.dot", compiled = false }
end
LUA
run "$DEEPC" "$dir/graphs.lua" "$dir"
check "graphs are written" test "$status" -eq 0

run "$DEEPC" dot "$dir/graphs.lua" "$dir"
check "deepc dot ends well" test "$status" -eq 0
check "and prints all functions" test "$(grep -c '^digraph' "$dir/out")" -eq 3
mv "$dir/out" "$dir/all.dot"
run "$DEEPC" dot --by group --function step "$dir/graphs.lua" "$dir"
check "or one" test "$(grep -c '^digraph "step"' "$dir/out")" -eq 1
check "by groups" says "subgraph cluster_1"
run "$DEEPC" dot --function none "$dir/graphs.lua" "$dir"
check "another one is not there" test "$status" -eq 1
check "which is told" warns "no typed function 'none' was traced; there are forward, step, loop"
run "$DEEPC" dot --by kernel "$dir/graphs.lua"
check "options are checked" warns "usage: deepc dot"
echo 'print(1)' >"$dir/none.lua"
run "$DEEPC" dot "$dir/none.lua"
check "a script without functions" warns "the script has traced no typed function"
echo 'error "no"' >"$dir/none.lua"
run "$DEEPC" dot "$dir/none.lua"
check "a script that fails has no graph" test "$status" -eq 1
check "what is wrong is no part of one" test -z "$out"

if ! command -v dot >/dev/null 2>&1; then
    skip "dot is not installed (Debian: graphviz)"
    closing
    exit
fi
for file in "$dir"/*.dot; do
    run dot -Tsvg -o "$dir/picture.svg" "$file"
    check "dot draws $(basename "$file")" test "$status" -eq 0
    check "without a word ($(basename "$file"))" test -z "$err"
done
closing
