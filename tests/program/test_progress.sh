#!/bin/sh
# dc.progress in front of a person: at a terminal, on a pipe, interrupted; dc.options on the command line.
. "$(dirname "$0")/lib.sh"
: "${DEEPC_PTY:?the program that types}"
HOME=$dir TERM=xterm
export HOME TERM
unset DEEPC_PROGRESS XDG_STATE_HOME DEEPC_HISTORY NO_COLOR
ASAN_OPTIONS=${ASAN_OPTIONS:-}:fast_unwind_on_malloc=0 # to see the frames of libedit
export ASAN_OPTIONS
case $DEEPC in
/*) ;;
*) DEEPC=$PWD/$DEEPC ;;
esac

session() { # session SENTENCE ARGS... <STEPS
    what=$1
    shift
    run "$DEEPC_PTY" "$DEEPC" "$@"
    check "$what" test "$status" -eq 0
}

cat >"$dir/loop.lua" <<'EOT'
local dc = require "deepc"
local o = dc.options { { "n", 3, "how often", min = 1 }, { "stop", false, "ends in an error" } }
local shown = {}
for i in dc.progress(o.n, { title = "steps", metrics = shown, every = 0 }) do
  shown.loss = dc.tensor(1 / i)
  if o.stop and i == 2 then
    error("no further", 0)
  end
end
print "done"
EOT
cat >"$dir/endless.lua" <<'EOT'
local dc = require "deepc"
for _ in dc.progress(function() return true end, { title = "for ever", every = 0.01 }) do end
EOT

session "a bar at a terminal, which ends its line" "$dir/loop.lua" --n 4 <<'EOT'
raw \x0dsteps  2/4   50%  [
raw loss 0.25
raw \x0d\x0adone
end 0
EOT

session "an error ends the line first" "$dir/loop.lua" --n 4 --stop <<'EOT'
raw \x0dsteps  1/4   25%  [
raw \x0d\x0adeepc: no further
end 1
EOT

session "Ctrl-C leaves the loop and ends the line" "$dir/endless.lua" <<'EOT'
raw \x0dfor ever  
send \x03
raw \x0d\x0adeepc: 
raw interrupted
end 1
EOT

session "at the prompt" <<'EOT'
expect Ctrl-D to leave
prompt >
line for i in dc.progress(3, { title = "steps", every = 0 }) do end
raw steps  3/3  100%  [
prompt >
line for i in dc.progress(function() return 1 end, { title = "again" }) do end
raw \x0dagain
send \x03
expect interrupted
prompt >
line 6 * 7
expect 42
prompt >
send \x04
end 0
EOT

session "told to be silent" -e 'for _ in require "deepc".progress(3, { show = "off", every = 0 }) do end print "end"' <<'EOT'
expect end
absent 3/3
end 0
EOT

run "$DEEPC" "$dir/loop.lua" --n=2
check "on a pipe, lines on stderr" warns "steps  2/2  100%"
check "without returns" sh -c "! tr -d '\n' <'$dir/err' | grep -q '$(printf '\r')'"
check "and nothing on stdout" test "$out" = done

run env DEEPC_PROGRESS=off "$DEEPC" "$dir/loop.lua"
check "the setting makes it silent" test -z "$err"
run env DEEPC_PROGRESS=bar "$DEEPC" "$dir/loop.lua"
check "or draws a bar where no terminal is" warns "3/3  100%  ["

run "$DEEPC" check "$dir/loop.lua"
check "deepc check shows none" test -z "$err$out"
check "and finds nothing" test "$status" -eq 0

run "$DEEPC" "$dir/loop.lua" --help
check "--help is printed" says "usage: deepc loop.lua [options]
  --n N   how often (3)"
check "and ends well" test "$status" -eq 0
run "$DEEPC" "$dir/loop.lua" --count 3
check "an option that is not known" warns "unknown option '--count'"
check "is a failure" test "$status" -eq 1
closing
