#!/bin/sh
# deepc top: a training script watched from outside, as text, as JSON, at a terminal; who may be watched; ranks.
. "$(dirname "$0")/lib.sh"
: "${DEEPC_PTY:?the program that types}"
TERM=xterm LANG=C.UTF-8 DEEPC_MONITOR=$dir/sockets
export TERM LANG DEEPC_MONITOR
case $DEEPC in
/*) ;;
*) DEEPC=$PWD/$DEEPC ;;
esac
here=$PWD
unset NO_COLOR DEEPC_PROGRESS XDG_RUNTIME_DIR LC_ALL LC_CTYPE

cat >"$dir/train.lua" <<'EOT'
local dc, nn, optim = require "deepc", require "deepc.nn", require "deepc.optim"
local data, train, metrics = require "deepc.data", require "deepc.train", require "deepc.metrics"
local net = nn.Sequential { nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2) }
local x = dc.rand("f32[64, 8]", { seed = 1 })
local set = data.set(x, (x:sum(2) * 0.25):floor():clamp(0, 1):cast "i32")
train.fit { model = net, optimizer = optim.Adam(net:parameters(), { lr = 1e-3 }), data = set, batch = 16,
  epochs = 1000000, evaluate = set, progress = false, metrics = { accuracy = metrics.Accuracy() },
  loss = function(a, b) local out = net(a) return nn.cross_entropy(out, b), out end }
EOT
cat >"$dir/long.lua" <<'EOT'
local dc = require "deepc"
local f = dc.fn("endless(x: f32[8]) -> f32[8]", function(x)
  return dc.fori(1000000000, function(_, v) return (v * 1.000001):sin() end, x)
end)
f(dc.ones "f32[8]"):totable()
EOT
cat >"$dir/exits.lua" <<'EOT'
local dc = require "deepc"
io.open(dc.monitor() .. ".seen", "w"):close()
os.exit(3)
EOT

children=
trap 'kill -9 $children 2>/dev/null; rm -rf "$dir"' EXIT
start() { # start VARIABLE COMMAND...: in the background, until it may be watched
    name=$1
    shift
    "$@" >"$dir/$name.out" 2>&1 &
    eval "$name=\$!"
    children="$children $!"
    last=$(($(date +%s) + 60))
    until ls "$DEEPC_MONITOR/$!-"* >/dev/null 2>&1; do
        [ "$(date +%s)" -lt $last ] && kill -0 $! 2>/dev/null || return
        sleep 0.25
    done
}
top() {
    run "$DEEPC" top "$@"
}
# field EXPRESSION: what stands there in the JSON of $out, which is s
cat >"$dir/field.lua" <<'EOT'
local text = io.read "a"
local i = 1
local function skip() i = text:find("%S", i) or #text + 1 end
local value
local function list(close, read)
  local t = {}
  i = i + 1
  skip()
  while text:sub(i, i) ~= close do
    read(t)
    skip()
    if text:sub(i, i) == "," then i = i + 1 skip() end
  end
  i = i + 1
  return t
end
function value()
  skip()
  local c = text:sub(i, i)
  if c == "{" then
    return list("}", function(t) local k = value() skip() assert(text:sub(i, i) == ":") i = i + 1 t[k] = value() end)
  elseif c == "[" then
    return list("]", function(t) t[#t + 1] = value() end)
  elseif c == '"' then
    local s, e = text:match('^"([^"]*)"()', i)
    i = e
    return s
  end
  local w, e = text:match("^([%w%.%+%-]+)()", i)
  i = assert(e, "no JSON at " .. i .. text:sub(i, i + 20))
  if w == "true" or w == "false" then return w == "true" end
  return assert(tonumber(w), w)
end
s = value() -- of the first line
by = function(t, name) for _, x in ipairs(t) do if x.name == name then return x end end error("no " .. name) end
os.exit(assert(load("return " .. arg[1]))() and 0 or 1)
EOT
field() {
    "$DEEPC" "$dir/field.lua" "$1" <"$dir/out"
}

# await EXPRESSION PROCESS: its JSON, as soon as that holds
await() {
    last=$(($(date +%s) + 60))
    while [ "$(date +%s)" -lt $last ] && kill -0 "$2" 2>/dev/null; do
        top --json --once "$2"
        field "$1" 2>/dev/null && return
        sleep 0.5
    done
}

top
check "nobody may be watched: a sentence" test "$status" -eq 1
check "which says how" warns "DEEPC_MONITOR=on"
top 1
check "init may not be watched" warns "process 1 may not be watched"
top 99999999
check "a process that is not there" warns "there is no process 99999999"
for wrong in "-x" "0" "abc" "--sort wrong 1" "-i 0 1" "-i" "1 2"; do
    # shellcheck disable=SC2086
    top $wrong
    check "top $wrong is refused" test "$status" -eq 1
    check "with its usage: $wrong" warns "usage: deepc top"
done
top --help
check "help" says "--no-kernels"
run env DEEPC_MONITOR=sometimes "$DEEPC" top
check "a setting that is none" warns "DEEPC_MONITOR"
run env DEEPC_MONITOR=sometimes "$DEEPC" -e "x = 1"
check "for scripts as well" warns "'on', 'off' or the path of a folder"

run "$DEEPC" "$dir/exits.lua"
check "os.exit ends it with its status" test "$status" -eq 3
check "and leaves no socket" test "$(find "$dir/sockets" -type s | wc -l)" -eq 0
check "which was there" test "$(find "$dir/sockets" -name '*.seen' | wc -l)" -eq 1
run env DEEPC_ALLOW=compute "$DEEPC" -e "print(pcall(require 'deepc'.monitor))"
check "without files there is no socket" says "sockets may not be opened here"
echo "print(require 'deepc'.monitor())" >"$dir/monitor.lua"
run "$DEEPC" sandbox "$dir/monitor.lua"
check "nor in a sandbox" warns "may not be opened"
DEEPC_MONITOR=$dir/none run "$DEEPC" check "$dir/monitor.lua"
check "deepc check opens none" test "$status" -eq 0 -a ! -e "$dir/none"

mkdir -m 700 "$dir/own"
echo "x = 1" >"$dir/own/train.lua"
echo "1.5" >"$dir/own/2024-10"
top "$dir/own/train.lua"
check "a file that is no socket" warns "own/train.lua: is no socket"
run env DEEPC_MONITOR="$dir/own" "$DEEPC" top
check "stays, as those do in the folder" test -s "$dir/own/train.lua" -a -s "$dir/own/2024-10"

start training "$DEEPC" "$dir/train.lua"
start long "$DEEPC" "$dir/long.lua"
last=$(($(date +%s) + 60))
until says "in endless" || [ "$(date +%s)" -ge $last ]; do
    top
done
check "both are listed" test "$(echo "$out" | grep -c "deepc $(printf '%.30s' "$dir")")" -eq 2 # long names are cut
check "with what they are doing" says "in endless"
await "#s.metrics >= 4 and s.kernels_timed and s.counts.rounds > 8" "$training"
check "JSON has the process" field "s.pid == $training and s.device ~= '' and s.ranks == 1"
check "it trains" field "s.counts.rounds > 0 and s.counts.calls > 0"
check "with an epoch" field "#s.loops <= 1 and (s.loops[1] == nil or s.loops[1].title:find 'epoch')"
check "its loss, and the history of it" field "by(s.metrics, 'loss').value > 0 and #by(s.metrics, 'loss').history > 0"
check "metrics" field "by(s.metrics, 'accuracy').value <= 1 and by(s.metrics, 'eval.loss').value > 0"
check "functions" field "by(s.functions, 'step').calls > 0 and by(s.functions, 'step').seconds > 0"
check "kernels with times" field "s.kernels_timed and #s.kernels > 0 and s.kernels[1].launches > 0"
check "memory" field "s.memory.live > 0 and s.memory.peak >= s.memory.live and s.resident_bytes > 1e6"
top --once --no-kernels --sort name "$training"
check "text" says "steps/s"
check "has the loss" says "loss"
check "and no colours" test "$(printf '%s' "$out" | tr -d -c '\033' | wc -c)" -eq 0
await "s.doing.what == 'call' and s.doing.seconds > 0.4" "$long"
check "inside of a long call it is known which, and since when" \
    field "s.doing.what == 'call' and s.doing.name == 'endless' and s.doing.seconds > 0.4"
run timeout 3 "$DEEPC" top -i 0.3 "$training"
check "on no terminal there are lines" test "$(wc -l <"$dir/out")" -ge 3
top --once "$(find "$dir/sockets" -name "$training-1")"
check "by the path of the socket, too" says "steps/s"
cd "$dir/sockets" && top --once "./$training-1"
check "from where it stands, too" says "steps/s"
cd "$here" || exit 1

session() {
    what=$1
    shift
    run "$DEEPC_PTY" "$DEEPC" "$@"
    check "$what" test "$status" -eq 0
}
session "at a terminal: keys, and the screen is given back" top -i 0.2 "$training" <<EOT
raw \e[?1049h
expect deepc top
expect steps/s
expect FUNCTION
expect sort: time
send s
expect sort: rate
send p
expect paused
send p
send k
expect kernels on
send \e[B\e[A\e[6~x
# the last line is cut, or not
size 12 30
raw pause \e[0m\e[H
size 40 120
raw pause  \e[0m\e[1mk
send q
raw \e[?25h\e[?1049l
end 0
EOT
session "Ctrl-C ends it as well" top "$training" <<EOT
expect FUNCTION
send \x03
raw \e[?1049l
end 0
EOT
run env NO_COLOR=1 "$DEEPC_PTY" "$DEEPC" top "$training" <<EOT
expect FUNCTION
absent \e[36m
send q
end 0
EOT
check "without colours" test "$status" -eq 0
(sleep 1; kill -STOP "$training"; sleep 3; kill -CONT "$training") &
session "one that is stopped says nothing, and is watched on" top -i 0.2 "$training" <<EOT
expect FUNCTION
expect does not answer
# then for how long it has been in step, or where it is
expect  ms
send q
end 0
EOT
kill "$long"
(sleep 1; kill -9 "$training") &
session "the end of the process ends it" top -i 0.2 "$training" <<EOT
expect FUNCTION
expect it has ended
end 0
EOT
top
check "what was killed is watched no more" warns "nothing may be watched"
check "and what it left is gone" test "$(find "$dir/sockets" -type s | wc -l)" -eq 0

# Root watches the ranks of another user.
rank_settings
as="setpriv --reuid 65534 --regid 65534 --clear-groups"
DEEPC_MONITOR=$dir/others HOME=$dir/home
export HOME
mkdir -m 700 "$DEEPC_MONITOR" "$HOME"
chmod 711 "$dir"
# shellcheck disable=SC2086
if [ "$(id -u)" -eq 0 ] && $as "$DEEPC" -e "x = 1" >/dev/null 2>&1; then
    chown 65534:65534 "$DEEPC_MONITOR" "$HOME"
else
    as=
    skip "root alone watches others, whom it lets run $DEEPC"
fi
cat >"$dir/ranks.lua" <<'EOT'
local dc = require "deepc"
local world = dc.world()
dc.mesh { data = world.size }
local x = dc.ones "f32[4]"
for step = 1, 1000000 do
  if world.rank == 1 and step == 50 then
    local until_ = dc.clock() + 600
    while dc.clock() < until_ do end
  end
  dc.all_reduce(x):totable()
end
EOT
# shellcheck disable=SC2086
start ranks $as "$DEEPC" --ranks 2 "$dir/ranks.lua"
await "s.waits and s.waits.rank == 1" "$ranks"
top --once "$ranks"
check "ranks have a table" says "RANK"
check "with who waits for whom" says "waits for rank 1 in all_reduce"
top --once --json "$ranks"
check "a line of JSON for each" test "$(wc -l <"$dir/out")" -eq 2
top --once "$(find "$DEEPC_MONITOR" -name "*-1" | head -n 1)"
check "one of them by its path" says " of 2 "
[ $failed -eq 0 ] || cat "$dir/ranks.out"
kill -9 "$ranks"
wait "$ranks" 2>/dev/null
top "$ranks"
check "when they have ended it is told" warns "the process has ended"
top "$ranks"
check "and then there is none" warns "there is no process $ranks"
closing
