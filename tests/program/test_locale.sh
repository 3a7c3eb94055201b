#!/bin/sh
# A host, or a script, that sets a locale with decimal commas: what is written is the same, and is read everywhere.
. "$(dirname "$0")/lib.sh"

mkdir "$dir/locales"
if ! command -v localedef >/dev/null ||
    ! localedef -i de_DE -f UTF-8 "$dir/locales/de_DE.UTF-8" 2>/dev/null; then
    skip "no locale with decimal commas: localedef makes none here"
    closing
    exit
fi
export LOCPATH="$dir/locales"

cat >"$dir/write.lua" <<'EOT'
local dc, nn, plot = require "deepc", require "deepc.nn", require "deepc.plot"
local name, out = arg[1], arg[2]
assert(os.setlocale(name), "no such locale")
assert((("%.1f"):format(1.5) == "1,5") == (name ~= "C"), "it has no comma")
local net = nn.Sequential { nn.Linear(2, 2), nn.Dropout(0.25), nn.LeakyReLU(0.125) }
net[1].weight:set { { 1.5, 2.5 }, { 3.25, -0.5 } }
net[1].bias:set { 0.5, 1e-3 }
net:eval()
local f = dc.fn("f(x: f32[1, 2]) -> f32[1, 2]", function(x) return net(x) * 1.125 end)
dc.checkpoint(out .. ".checkpoint", { model = net }):save { best = 0.1, small = 1e-300, step = 3 }
plot.lines(out .. ".svg", { { x = { 0, 0.5, 1 }, y = { 0.25, 1.75, 1e-7 }, name = "loss" } })
f:export(out .. ".function")
print(f { { 0.5, 1.5 } }, net[2], net[3], net)
print((f:explain():gsub("[%d.]+ MFLOP", "")))
print(select(2, pcall(dc.rand, "f32[2]", { low = 1.5, high = 0.5 })))
EOT
cat >"$dir/read.lua" <<'EOT'
local dc, nn = require "deepc", require "deepc.nn"
assert(os.setlocale(arg[1]))
local net = nn.Sequential { nn.Linear(2, 2), nn.Dropout(0.25), nn.LeakyReLU(0.125) }
local values = dc.checkpoint(arg[2] .. ".checkpoint", { model = net }):load()
assert(values.best == 0.1 and values.small == 1e-300 and values.step == 3, "other values")
assert(net[1].weight[1][1]:item() == 1.5)
print "read"
EOT

run "$DEEPC" "$dir/write.lua" C "$dir/plain"
plain=$out
check "without a locale" test "$status" -eq 0
run "$DEEPC" "$dir/write.lua" de_DE.UTF-8 "$dir/comma"
check "with one" test "$status" -eq 0
check "the same is printed" test "$out" = "$plain"
for kind in checkpoint svg function; do
    check "the same $kind is written" cmp "$dir/plain.$kind" "$dir/comma.$kind"
done
run "$DEEPC" "$dir/read.lua" de_DE.UTF-8 "$dir/plain"
check "what is written without is read with it" says "read"
run "$DEEPC" "$dir/read.lua" C "$dir/comma"
check "what is written with is read without it" says "read"
printf '%s\n' 'assert(os.setlocale "de_DE.UTF-8")' ':time 1 + 1' 'dc.tensor { 1.5 }' |
    "$DEEPC" -i >"$dir/prompt" 2>&1
check "the prompt's times have a point" grep -Eq '[0-9][.][0-9]+ [um]s' "$dir/prompt"
check "and no comma" sh -c "! grep -Eq '[0-9],[0-9]' '$dir/prompt'"
closing
