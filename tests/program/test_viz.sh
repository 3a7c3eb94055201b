#!/bin/sh
# deepc --viz in a browser: the page is opened by Chromium without a window, and used by tests/program/viz_click.js, which
# is appended to it. Chromium says what is in the document then (--dump-dom).
. "$(dirname "$0")/lib.sh"
keep_kernels
unset DEEPC_DEVICE
here=$(dirname "$0")

browser=
for name in chromium-headless-shell chromium google-chrome; do
    [ -n "$browser" ] || browser=$(command -v $name)
done
if [ -z "$browser" ]; then
    skip "no Chromium is installed (Debian: chromium-headless-shell)"
    closing
    exit
fi

# Its sockets stand there, whose names may not be long.
profile=$(TMPDIR=/tmp mktemp -d)
trap 'rm -rf "$dir" "$profile"' EXIT

# uses PAGE SCRIPT: a check for each line that the script writes
uses() {
    sed '/<head>/a <script>window.complaints=[];window.onerror=(m,s,l)=>complaints.push(m+" "+l);for(const k of["error","warn"])console[k]=(...a)=>complaints.push(a.join(" "));</script>' "$1" |
        sed '/^<\/body>/d; /^<\/html>/d' >"$dir/used.html"
    { echo "<script>" && cat "$2" && echo "</script></body></html>"; } >>"$dir/used.html"
    run env TMPDIR="$profile" timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$profile" \
        --window-size=1400,900 --dump-dom "file://$dir/used.html"
    echo "$out" | sed 's/<[^>]*>//g' | grep -E '^(ok|not so:) ' >"$dir/lines"
    check "the browser says something" test -s "$dir/lines"
    while read -r line; do
        case $line in
        ok*) passed=$((passed + 1)) ;;
        *)
            failed=$((failed + 1))
            echo "$line"
            ;;
        esac
    done <"$dir/lines"
}

# The cache is warm afterwards, so that times are of a run and not of compilations.
cat >"$dir/step.lua" <<'EOT'
local dc, nn, optim = require "deepc", require "deepc.nn", require "deepc.optim"
local net = nn.Sequential { nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4) }
local opt = optim.Adam(net:parameters(), { lr = 1e-2 })
local step = dc.fn("viz_step(x: f32[16, 8], y: i32[16]) -> f32[]", function(x, y)
  local loss = nn.cross_entropy(net(x), y)
  opt:step(loss)
  return loss
end)
local text = "</script><b>not bold</b> \xff" -- what would end the data
for _ = 1, 20 do step(dc.ones "f32[16, 8]", dc.zeros "i32[16]") end
local least = dc.fn("viz_bounded(x: f32[n <= 4096, 64], w: f32[64, 64]) -> f32[]", function(x, w)
  local y = x:matmul(w):sum()
  return dc.loop(function(s) return s:lt(1e6) end, function(s) return s * 2 + 1 end, y)
end)
least(dc.ones "f32[2, 64]", dc.ones "f32[64, 64]")
print(#text)
EOT
run "$DEEPC" --viz "$dir/page.html" "$dir/step.lua"
check "the script runs as without the option" test "$out" = "26" -a "$status" -eq 0
check "a page is written" test -s "$dir/page.html"
uses "$dir/page.html" "$here/viz_click.js"

cat >"$dir/large.lua" <<'EOT'
local dc, nn, optim = require "deepc", require "deepc.nn", require "deepc.optim"
local layers = {}
for i = 1, 180 do layers[i] = i % 2 == 1 and nn.Linear(16, 16) or nn.LayerNorm(16) end
local net = nn.Sequential(layers)
local opt = optim.Adam(net:parameters(), { lr = 1e-3 })
local step = dc.fn("step(x: f32[8, 16]) -> f32[]", function(x)
  local loss = (net(x) ^ 2):mean()
  opt:step(loss)
  return loss
end)
step(dc.ones "f32[8, 16]")
EOT
run "$DEEPC" --viz "$dir/large.html" "$dir/large.lua"
check "a large function has a page" test "$status" -eq 0 -a -s "$dir/large.html"
uses "$dir/large.html" "$here/viz_large.js"
cat "$dir/lines"
closing
