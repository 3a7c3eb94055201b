#!/bin/sh
# The program as it is built without what stands beside the runtime (-DDEEPC_EXTRAS=OFF), and the same questions to the whole one.
. "$(dirname "$0")/lib.sh"

lacks() {
    ! says "$1"
}

for module in language.server models plot serve signal stablehlo tokenizers viz; do
    run "$DEEPC_ALONE" -e "require 'deepc.$module'"
    check "no deepc.$module" test "$status" -eq 1
    check "which Lua says" warns "module 'deepc.$module' not found"
done
for module in models plot serve signal stablehlo tokenizers viz; do
    run "$DEEPC" -e "assert(require 'deepc.$module')"
    check "deepc.$module beside it" test "$status" -eq 0
done

cat >"$dir/train.lua" <<'LUA'
local dc, nn, optim, data = require "deepc", require "deepc.nn", require "deepc.optim", require "deepc.data"
require "deepc.linalg" require "deepc.fft" require "deepc.random" require "deepc.metrics" require "deepc.train"
dc.seed(1)
local net = nn.Sequential { nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2) }
local opt = optim.Adam(net:parameters(), { lr = 1e-2 })
local step = dc.fn("step(x: f32[4, 2], y: i32[4]) -> f32[]", function(x, y)
  local loss = nn.cross_entropy(net(x), y)
  opt:step(loss)
  return loss
end)
local set = data.set(dc.tensor { { 0, 0 }, { 0, 1 }, { 1, 0 }, { 1, 1 } }, dc.tensor({ 0, 1, 1, 0 }, "i32[4]"))
local loss
for _ = 1, 300 do for x, y in set:batches { size = 4 } do loss = step(x, y):item() end end
assert(loss < 0.1, loss)
dc.save(arg[1] .. "/net.safetensors", net)
print("learnt")
LUA
run "$DEEPC_ALONE" "$dir/train.lua" "$dir"
check "it trains" says learnt
check "and saves" test -s "$dir/net.safetensors"
run "$DEEPC_ALONE" inspect "$dir/net.safetensors"
check "what it can read" says "3.bias"
run "$DEEPC_ALONE" check "$dir/train.lua" "$dir"
check "deepc check passes" test "$status" -eq 0

cat >"$dir/export.lua" <<'LUA'
local dc = require "deepc"
dc.fn("f(x: f32[2]) -> f32[2]", function(x) return x * 2 end):export(arg[1])
LUA
run "$DEEPC_ALONE" "$dir/export.lua" "$dir/f.mlir"
check "what writes StableHLO is missing" warns "is written by the module deepc.stablehlo, which this build of deepc does not have"
check "and no file is there" test ! -e "$dir/f.mlir"
run "$DEEPC" "$dir/export.lua" "$dir/f.mlir"
check "which the whole one writes" test -s "$dir/f.mlir"

run "$DEEPC_ALONE" --help
check "help has no language server" lacks language-server
check "and no --viz" lacks --viz
check "but the rest" says "doctor "
run "$DEEPC_ALONE" --viz "$dir/page.html" "$dir/train.lua"
check "--viz is no option" warns "no option '--viz'"
check "and nothing is written" test ! -e "$dir/page.html"
run "$DEEPC_ALONE" language-server
check "language-server is no command" test "$status" -eq 1
run "$DEEPC_ALONE" -e 'for _, name in ipairs(require "deepc.help".modules()) do print(name) end'
check "help knows what there is" says deepc.linalg
check "and nothing else" lacks tokenizers

closing
