#!/bin/sh
# DEEPC_DUMP: kernels in all their forms, the same files for the same kernels.
. "$(dirname "$0")/lib.sh"

cat >"$dir/two.lua" <<'EOT'
local dc = require "deepc"
local f = dc.fn("f(x: f32[64, 100]) -> f32[64]", function(x) return (x * x):sum(2) end)
local g = dc.fn("g(x: f32[64, 100]) -> f32[64]", function(x) return (x * x):sum(2) end)
local h = dc.fn("h(x: f32[300]) -> f32[300]", function(x) return x:exp() end)
print(f(dc.ones "f32[64, 100]")[1], tostring(g), tostring(h)) -- g and h are never called
EOT
dump() { # dump FOLDER [VARIABLES]
    folder=$1
    shift
    run env DEEPC_DUMP="$dir/$folder" "$@" "$DEEPC" "$dir/two.lua"
}
count() {
    find "$dir/$1" -type f | wc -l
}

dump a
check "the script ends well" test "$status" -eq 0
check "it prints what it prints otherwise" says "100.0"
check "one file per kernel" test "$(count a)" -eq 2
check "named after the kernels" sh -c "ls $dir/a/R_64_k100-*.txt $dir/a/E_300-*.txt >/dev/null"
for form in "nest as lowered" "schedule" "nest scheduled" "flat" "llvm"; do
    for file in "$dir"/a/*; do
        check "$form is in each" grep -q "^==== $form\$" "$file"
    done
done
check "the program text is the device's" grep -q "^define " "$dir"/a/E_300-*.txt
dump b
check "the same once more" diff -r "$dir/a" "$dir/b"
dump c DEEPC_COMPILE=now
check "the same without threads" diff -r "$dir/a" "$dir/c"
dump a
check "into a folder that has them" test "$(count a)" -eq 2
dump d DEEPC_OPT=0
check "other settings make other files" test "$(count d)" -ge 2
dump a DEEPC_OPT=0
check "which may stand beside the first" test "$(count a)" -eq $((2 + $(count d)))

cat >"$dir/leave.lua" <<'END'
local dc = require "deepc"
local kept = {}
for i = 1, 30 do
  kept[i] = dc.fn(("f%d(x: f32[8]) -> f32[8]"):format(i), function(x) return x * (i + 0.5) end)
end
os.exit(0) -- what is queued is compiled and written all the same
END
run env DEEPC_DUMP="$dir/e" "$DEEPC" "$dir/leave.lua"
check "a script that leaves ends well" test "$status" -eq 0
check "and leaves every kernel" test "$(count e)" -eq 30

run env DEEPC_DUMP="$dir/two.lua" "$DEEPC" "$dir/two.lua"
check "a file is no folder" test "$status" -eq 1
check "which is said" warns "DEEPC_DUMP: $dir/two.lua: Not a directory"
run env DEEPC_DUMP="$dir/two.lua/x" "$DEEPC" "$dir/two.lua"
check "a folder that cannot be made" warns "DEEPC_DUMP: $dir/two.lua/x: Not a directory"
closing
