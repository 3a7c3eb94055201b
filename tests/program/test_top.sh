#!/bin/sh
# DEEPC_LOG and deepc top: what scripts append to a file, and who follows it, as text, as lines, at a terminal.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_ranks.sh"
: "${DEEPC_PTY:?the program that types}"
TERM=xterm LANG=C.UTF-8
export TERM LANG
unset NO_COLOR DEEPC_PROGRESS DEEPC_LOG LC_ALL LC_CTYPE
case $DEEPC in
/*) ;;
*) DEEPC=$PWD/$DEEPC ;;
esac
cd "$dir" || exit 1

cat >"train.lua" <<'EOT'
local dc, nn, optim = require "deepc", require "deepc.nn", require "deepc.optim"
local data, train, metrics = require "deepc.data", require "deepc.train", require "deepc.metrics"
local net = nn.Sequential { nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2) }
local x = dc.rand("f32[64, 8]", { seed = 1 })
local set = data.set(x, (x:sum(2) * 0.25):floor():clamp(0, 1):cast "i32")
train.fit { model = net, optimizer = optim.Adam(net:parameters(), { lr = 1e-3 }), data = set, batch = 16,
  epochs = 2, evaluate = set, progress = false, metrics = { accuracy = metrics.Accuracy() },
  loss = function(a, b) local out = net(a) return nn.cross_entropy(out, b), out end }
print "trained"
EOT
cat >"endless.lua" <<'EOT'
local dc = require "deepc"
for i in dc.progress(1000000000, { show = "off", title = "steps", metrics = { half = 0.5 } }) do
  dc.metric("round", i)
end
EOT

children=
trap 'kill -9 $children 2>/dev/null; rm -rf "$dir"' EXIT
start() { # start FILE COMMAND...: in the background, until there is FILE
    file=$1
    shift
    "$@" >child.out 2>&1 &
    child=$!
    children="$children $child"
    last=$(($(date +%s) + 60))
    until [ -s "$file" ] || [ "$(date +%s)" -ge $last ]; do
        sleep 0.1
    done
}
top() {
    run "$DEEPC" top "$@"
}
lines() { # lines N WORDS...: so many lines of the log have them
    n=$1
    shift
    test "$(grep -c -F -- "$*" log)" -eq "$n"
}

# ---- what is written ----

run env DEEPC_LOG=log "$DEEPC" train.lua
check "training writes a log" test "$status" -eq 0 -a -s log
check "which has the run" lines 1 '"run":"train.lua"'
check "a loop that shows nothing, and its end" lines 2 '"title":"epoch 1/2","total":4}'
check "which says so" test "$(grep -c '"ended":true.*"title":"epoch 1/2"' log)" -eq 1
check "the first epoch" lines 1 '"epoch":1,'
check "the second, with its numbers" test "$(grep -c '"epoch":2,.*"accuracy":.*"eval.loss":.*"step":8' log)" -eq 1
top --once log
check "deepc top shows it" says "deepc top  train.lua  cpu"
check "with epochs" says "epoch 2 done, step 8"
check "and numbers" says "eval.accuracy            0."
check "and no colours" test "$(printf '%s' "$out" | tr -d -c '\033' | wc -c)" -eq 0
size=$(wc -c <log)
run env DEEPC_LOG=log "$DEEPC" -e 'local dc = require "deepc"
for i = 1, 20 do dc.metric("loss", dc.tensor(1 / i)) end
dc.metric("bad", -math.huge)
dc.metric("x\27[31my", 1)
dc.metric("z\xff\u{202e}", 1)'
check "another run is appended" test "$(wc -c <log)" -gt "$size"
check "a metric once in a second" test "$(grep -c '"metrics":{"loss"' log)" -le 3
check "and the last one at the end" test "$(tail -n 1 log | grep -c '"loss":0.05')" -eq 1
top --once log
check "the run that began last is shown" test "$(printf '%s' "$out" | grep -c epoch)" -eq 0
check "numbers that are none are words" says "-inf"
check "names cannot steer the terminal" says 'x\x1b[31my '
check "nor its directions" says '\u{202e}'

cat >wrong.lua <<'EOT'
local dc = require "deepc"
for i in dc.progress(3, { show = "off", title = 7, metrics = function() error "wrong" end }) do
  for j in dc.progress(2, { show = "off", title = "inner", metrics = { [true] = dc.tensor(i), t = {} } }) do end
end
local ok = pcall(function() for _ in dc.progress(3, { show = "off" }) do error "out" end end)
print(ok, "ran")
EOT
run env DEEPC_LOG=log.wrong "$DEEPC" wrong.lua
check "metrics that are none end nothing because of a log" says "false	ran"
top --once log.wrong
check "and loops inside it are shown where there is time" says "loop  3/3  100%"
run "$DEEPC" -e 'require "deepc".metric("loss", 1)'
check "without the setting nothing is written" test "$status" -eq 0 -a -z "$err"
run env DEEPC_LOG=none/log "$DEEPC" train.lua
check "a log that cannot be written ends nothing" says "trained"
check "a note says so" warns "DEEPC_LOG: nothing is written any more: "
check "once" test "$(printf '%s\n' "$err" | wc -l)" -eq 1
mkdir folder
run env DEEPC_LOG=folder "$DEEPC" train.lua
check "nor does a folder" says "trained"
run env DEEPC_LOG=allowed DEEPC_ALLOW=compute "$DEEPC" train.lua
check "without files there is none" test "$status" -eq 0 -a ! -e allowed
echo 'require "deepc".metric("loss", 1) print "ran"' >metric.lua
run env DEEPC_LOG="$dir/boxed" "$DEEPC" sandbox metric.lua
check "nor in a sandbox that may write nothing" test "$status" -eq 0 -a ! -e boxed
check "which runs on" says "ran"
mkdir made
run env DEEPC_LOG="$dir/made/log" "$DEEPC" sandbox --write="$dir/made" metric.lua
check "in one that may write there it is a file like others" grep -q '"loss":1' made/log
run env DEEPC_LOG=checked "$DEEPC" check train.lua
check "deepc check writes none" test "$status" -eq 0 -a ! -e checked
run env DEEPC_LOG=planned "$DEEPC" plan --mesh data=2 metric.lua
check "nor does deepc plan" test ! -e planned
cat >ranks.lua <<'EOT'
local dc = require "deepc"
local world = dc.world()
dc.metric("rank" .. world.rank, 1)
dc.all_reduce(dc.ones "f32[4]"):totable()
EOT
rank_settings
run env DEEPC_LOG=log.ranks "$DEEPC" --ranks 2 ranks.lua
check "of several ranks the first one writes" test "$(grep -c rank0 log.ranks)" -eq 1 -a "$(grep -c rank1 log.ranks)" -eq 0

# ---- files of others ----

top --once nothing
check "a file that is not there" test "$status" -eq 1
check "is a sentence" warns "top: nothing: No such file"
top --once folder
check "a folder" warns "no file that can be followed"
top
check "no file at all" warns "one file is needed"
DEEPC_LOG=log run "$DEEPC" top --once
check "the setting's" says "deepc top"
for wrong in "--wrong log" "log log" "--every 0 log"; do
    # shellcheck disable=SC2086
    top --once $wrong
    check "$wrong is refused" test "$status" -eq 1
done
{
    printf '{"run":"a\\u001b[2Jb.lua","device":[],"time":"x"}\nno JSON\033[31m\n\n[1]\n7\n{"loop":{},"done":1}\n'
    printf '{"loop":1,"title":{"a":1},"done":-5,"total":1e300,"rate":"fast","left":-1,"metrics":[1,{}]}\n'
    printf '{"loop":2,"title":"a\\nb","done":1e14,"total":3,"seconds":1e300,"metrics":{"m":{"n":1},"k":null}}\n'
    printf '{"epoch":"x","metrics":"x"}\n{"metrics":{"last":2}}\n{"metrics":{"half":'
} >hostile
top --once hostile
check "lines that are no JSON are counted" says '2 lines are no JSON, the last one: 7'
check "others are read" test "$status" -eq 0
check "what is no number is none" says "loop  0"
check "no line breaks" says 'a\nb  100000000000000/3'
check "nothing steers the terminal" test "$(printf '%s' "$out" | tr -d -c '\033' | wc -c)" -eq 0
check "the last line counts when it is whole" test "$(printf '%s' "$out" | grep -c half)" -eq 0
head -c 3000000 /dev/zero >zeros
top --once zeros
check "a long line without an end does not take long" test "$status" -eq 0
"$DEEPC" -e 'for i = 1, 100000 do print(("{\"metrics\":{\"m%d\":%d}}"):format(i % 1000, i)) end' >long
top --once long
check "of a long file the end is read" test "$status" -eq 0 -a "$(printf '%s\n' "$out" | wc -l)" -le 70

# ---- following ----

cat >follow.lua <<'EOT'
-- Follows a file that changes, and prints the last line of each look.
local p = assert(io.popen("echo $$; exec " .. arg[1] .. " top --every 0.1 followed"))
local pid = p:read "l"
local function put(mode, text)
  local f <close> = assert(io.open("followed", mode))
  f:write(text)
end
local function await(text)
  for line in p:lines() do
    if line:find(text, 1, true) then print(text) return end
  end
end
put("w", '{"run":"first"}\n{"metrics":{"a":1}}\n')
await "a 1"
put("a", '{"metrics":{"a":')
put("a", '2}}\n')
await "a 2"
put("w", '{"metrics":{"b":3}}\n') -- cut
await "b 3"
os.remove "followed"
put("w", '{"run":"second"}\n{"metrics":{"a":4}}\n{"metrics":{"c":5}}\n{"metrics":{"d":6}}\n') -- another one
await "a 4  c 5  d 6"
put("a", ("\0"):rep(3000000)) -- a line that does not end
put("a", '\n{"metrics":{"e":7}}\n')
await "d 6  e 7"
os.execute("kill " .. pid)
EOT
run timeout 60 "$DEEPC" follow.lua "$DEEPC"
check "lines, a line in two parts, a file that is cut, another file" says "a 1
a 2
b 3
a 4  c 5  d 6
d 6  e 7"

start live env DEEPC_LOG=live "$DEEPC" endless.lua
session() {
    what=$1
    shift
    run "$DEEPC_PTY" "$DEEPC" "$@"
    check "$what" test "$status" -eq 0
}
session "at a terminal it is drawn in place, until Ctrl-C" top --every 0.2 live <<'EOT'
expect deepc top  endless.lua
expect steps
expect it/s
expect half                     0.5
raw \e[4A
send \x03
end 0
EOT
kill "$child"
(
    sleep 1
    cp log late
) &
session "a file that is not there yet is waited for" top --every 0.2 late <<'EOT'
expect No such file
expect loss
send \x03
end 0
EOT
closing
