#!/bin/sh
# `deepc sandbox`: a script of others with what the options name, and nothing else.
. "$(dirname "$0")/lib.sh"

mkdir "$dir/data" "$dir/made" "$dir/lib"
cat >"$dir/script.lua" <<'END'
local dc = require "deepc"
print(io, debug, os and os.time() > 0, arg[1], dc.ones("f32[3]"):sum())
END
run "$DEEPC" sandbox "$dir/script.lua" word
check "it computes and prints" test "$out" = "nil	nil	nil	word	3.0"
run "$DEEPC" sandbox --clock --memory=64 "$dir/script.lua" word
check "with a clock" test "$out" = "nil	nil	true	word	3.0"

echo 'local dc = require "deepc" dc.save(arg[1], { w = dc.ones "f32[3]" }) print "saved"' >"$dir/save.lua"
run "$DEEPC" sandbox "$dir/save.lua" "$dir/made/w"
check "it writes nothing" test $status -eq 1 -a ! -e "$dir/made/w"
check "and says so" warns "files may not be opened here"
run "$DEEPC" sandbox --write="$dir/made" --read="$dir/data" "$dir/save.lua" "$dir/made/w"
check "but beneath a folder" test "$out" = saved -a -s "$dir/made/w"
run "$DEEPC" sandbox --write="$dir/made" "$dir/save.lua" "$dir/made/../w"
check "and no other" test $status -eq 1 -a ! -e "$dir/w"
echo 'print(require "deepc".load(arg[1]).w:sum())' >"$dir/load.lua"
run "$DEEPC" sandbox --read="$dir/made" "$dir/load.lua" "$dir/made/w"
check "it reads there" test "$out" = 3.0

echo 'return "from a module"' >"$dir/lib/words.lua"
echo 'print(require "lib.words", pcall(require, "lib/words"), pcall(require, "io"))' >"$dir/mod.lua"
run "$DEEPC" sandbox "$dir/mod.lua"
check "modules stand beside it" says "from a module"
check "and nowhere else" says "module 'io' not found"

echo 'local t = {} for i = 1, 1e9 do t[i] = i end' >"$dir/memory.lua"
run "$DEEPC" sandbox --memory=16 "$dir/memory.lua"
check "its memory ends" warns "not enough memory"
echo 'while true do pcall(error) end' >"$dir/loop.lua"
run "$DEEPC" sandbox --seconds=1 "$dir/loop.lua"
check "its time, too" warns "1000 ms"
run "$DEEPC" sandbox "$dir/none.lua"
check "a file that is missing is told" warns "none.lua: No such file"
run "$DEEPC" sandbox --read="$dir/none" "$dir/mod.lua"
check "a folder, too" warns "none: No such file"
for word in --evil --memory=x --memory=0 --read; do
    run "$DEEPC" sandbox $word "$dir/mod.lua"
    check "$word is no option" warns "no option '$word'"
done
run "$DEEPC" sandbox
check "it tells how it is used" warns "usage: deepc sandbox"
closing
