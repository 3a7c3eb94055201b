#!/bin/sh
# How the program ends: os.exit while functions are being compiled on other threads, at several moments of that; errors
# that are not deepc's own; output that cannot be written.
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

run "$DEEPC" chekc
check "a command that is not one" test "$status" -eq 1
check "the one that may be meant" warns "hint: is 'check' meant? deepc --help lists the commands"
run "$DEEPC" help
check "help is a word, too" says "usage: deepc [options] [FILE [ARGS]]"
for word in --version -v; do
    run "$DEEPC" $word
    check "$word" says "deepc $(sed -n 's/^#define DC_VERSION "\(.*\)"/\1/p' vm/deepc.h), Lua 5.4"
done

cat >"$dir/sizes.lua" <<'EOT'
local dc = require "deepc"
local f = dc.fn("f(x: f32[n]) -> f32[]", function(x) return x:sum() end)
for _, n in ipairs { 10, 100, 12 } do f(dc.ones("f32[" .. n .. "]")) end
EOT
run env -C "$dir" "$DEEPC" sizes.lua
check "a note tells the nearest specialisation and the time" \
    test "$(echo "$err" | sed 's/, [0-9]* ms$/, N ms/')" = "[note] f, sizes.lua:2: specialisation 2: n 10 -> 100, N ms
[note] f, sizes.lua:2: specialisation 3: n 10 -> 12, N ms"

fails() { # fails TEXT LINE: the script of one line fails with the text
    echo 'local dc, nn = require "deepc", require "deepc.nn"' >"$dir/fails.lua"
    echo "$2" >>"$dir/fails.lua"
    run env -C "$dir" "$DEEPC" fails.lua
    check "$2" warns "deepc: $1"
}
fails 'fails.lua:2: mul: a tensor or a number is needed, not nil
    of     f32[2]   made at fails.lua:2
  hint: the global '"'scale'"' is nil' 'local x = dc.ones "f32[2]" * scale'
fails 'fails.lua:2: bad argument #1 to '"'sqrt'"' (number expected, got deepc.tensor)
  hint: t:item() is the number in a tensor of one element' 'print(math.sqrt(dc.ones "f32[]"))'
fails 'fails.lua:2: bad argument #1 to '"'format'"' (number expected, got deepc.tensor)
  hint: t:item() is the number' 'print(("%.3f"):format(dc.ones "f32[]"))'
fails 'fails.lua:2: bad '"'for'"' limit (number expected, got deepc.size)
  hint: the size is known when the function runs; dc.fori and dc.scan are loops up to such a size' \
    'dc.fn("f(x: f32[t <= 8])", function(x) for i = 1, #x do x = x + i end return x end)'
fails 'fails.lua:2: attempt to call a table value (for iterator '"'for iterator'"')
  hint: ipairs goes through a list: for _, p in ipairs(net:parameters()) do' \
    'for p in nn.Linear(2, 1):parameters() do print(p) end'
fails '{ code = 3, message = "no data" }
stack traceback:' 'error { message = "no data", code = 3 }'

# A disk that is full; in the middle of the output, and at its end.
cat >"$dir/print.lua" <<'EOT'
for i = 1, tonumber(arg[1]) do print(i) end
EOT
lost() {
    run sh -c '"$@" >/dev/full' sh "$@"
    check "$*: lost output is an error" test "$status" -eq 1
    check "and told" warns "deepc: stdout: "
}
lost "$DEEPC" "$dir/print.lua" 1
lost "$DEEPC" "$dir/print.lua" 100000
lost "$DEEPC" --options
lost "$DEEPC" explain DC0101
lost "$DEEPC" kernel tests/kernel/softmax.nest
for way in "" "os.exit(0)" "os.exit(true, true)"; do
    lost "$DEEPC" -e "print(1) $way"
done

# What is written at the end, into a folder that is gone by then, is missed in whatever way the script ends.
unwritten() { # unwritten WORDS STATUS LINE ARGUMENTS
    words=$1 status_wanted=$2
    mkdir "$dir/gone"
    echo "$3" >"$dir/gone.lua"
    shift 3
    run "$DEEPC" "$@" "$dir/gone.lua" "$dir/gone"
    check "$* $(cat "$dir/gone.lua"): status $status_wanted" test "$status" -eq "$status_wanted"
    check "and told" warns "$words"
}
for way in "" "os.exit()" "os.exit(0, true)" "os.exit(true)" "coroutine.wrap(os.exit)(0)"; do
    gone="os.execute('rm -r ' .. arg[1]) $way"
    unwritten "gone/x.json: cannot be written" 1 "$gone" --trace "$dir/gone/x.json"
    unwritten "gone/x.html: cannot be written" 1 "$gone" --viz "$dir/gone/x.html"
    unwritten "gone/x.json: cannot be written" 1 "T = require 'deepc'.trace(arg[1] .. '/x.json') $gone"
    unwritten "cannot be written" 1 \
        "T = require 'deepc.tensorboard'.writer(arg[1] .. '/x') T:scalar('a', 1, 1) $gone"
done
unwritten "gone/x.json: cannot be written" 7 "os.execute('rm -r ' .. arg[1]) os.exit(7)" --trace "$dir/gone/x.json"
unwritten "cannot be written" 1 "local function f()
  require 'deepc.tensorboard'.writer(arg[1] .. '/x'):scalar('a', 1, 1)
end
f() os.execute('rm -r ' .. arg[1]) collectgarbage() collectgarbage()"
mkdir "$dir/gone"
run "$DEEPC" --trace "$dir/gone/x.json" -e "require 'deepc.tensorboard'.writer('$dir/gone/y'):scalar('a', 1, 1) os.exit()"
check "else both are there" test "$status" -eq 0 -a -s "$dir/gone/x.json"
closing
