#!/bin/sh
# examples/hosts/game without a screen: paddles learn while the game runs, in slices.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_embed.sh"
need_built game
export SDL_VIDEODRIVER=dummy SDL_AUDIODRIVER=dummy

value() { # value PATTERN: the number that is \1 in it
    sed -n "s/$1/\1/p" "$dir/out"
}
run "$host" --script examples/hosts/game/learner.lua --fast --frames 6000 --until 0.85 --bmp "$dir/screen.bmp"
check "it runs" test "$status" -eq 0
echo "$out"
frames=$(value '.*ms, \([0-9]*\) frames')
slices=$(value '.* in \([0-9]*\) slices.*')
calls=$(value '.* \([0-9]*\) calls, each with a deadline.*')
steps=$(value '^\([0-9]*\) steps of training.*')
check "the paddles have learned" test "$(value '.* \([0-9]*\) % of the last 256$')" -ge 85
check "what they could not before" test "$(value '.*balls: \([0-9]*\) % of the first 64 .*')" -le 70
check "training went on in every frame" test "$slices" -ge $((frames - 1))
check "a step of it takes more than one" test "$steps" -lt "$slices"
check "every call of the script is counted" test "$calls" -ge $((frames + slices + steps))
check "a picture" test "$(head -c 2 "$dir/screen.bmp")" = BM
run "$host" --script "$dir/nothing.lua" --frames 1
check "a script that is not there" warns "nothing.lua"
check "is a failure" test "$status" -eq 1
echo 'print(...)' >"$dir/wrong.lua"
run "$host" --script "$dir/wrong.lua" --frames 1
check "a script that gives no functions" warns "wrong.lua returned no table of functions"
check "is a failure, too" test "$status" -eq 1
acts() { # acts TYPE: a script that gives actions of this type
    echo "local dc = require 'deepc'
        return { prepare = function() end, act = function() return dc.zeros '$1' end }" >"$dir/wrong.lua"
    run "$host" --script "$dir/wrong.lua" --frames 1
}
acts 'i32[3]'
check "too few actions" warns "learner.act has to give i32["
acts 'i64[16]'
check "actions of another type" warns "learner.act has to give i32["
run "$host" --budget 0
check "options are checked" warns "game [--frames N]"
closing
