#!/bin/sh
# deepc --replay: files about bugs, written here by hand as jit/compile/bug_report.c writes them.
. "$(dirname "$0")/lib.sh"
export TMPDIR="$dir"

# report FILE COUNTS SET [LINES]: a step that adds x to a cell, multiplied by two
report() {
    cat >"$1" <<EOT
# deepc --replay FILE runs this again
error: broken promise at jit/plan/plan.c:1: an example
version: 0.0.9
device: cpu, something
${4-}
name: step
counts: $2
set:$3
module:
func step(%1: f32[8, 5] "x", %2: f32[5] "total") {
  %3 = sum %1 {1} : f32[5]
  %4 = add %2, %3 : f32[5]
  %5 = add %3, %3 : f32[5]
  return %5, %4
}
EOT
}

report "$dir/good" "nfree 1 ncell 1 nresult 1 nset 1 ncheck 0" " 0" "setting: DEEPC_OPT=0"
run "$DEEPC" --replay "$dir/good"
check "a function without fault ends with 0" test "$status" -eq 0
check "it says so" says "no failure"
check "it repeats what was found" says "step: broken promise at jit/plan/plan.c:1: an example"
check "and by which version" says "found by version 0.0.9, this is"
check "settings are used" says "with DEEPC_OPT=0"
check "results are compared" says "result 1, f32[5]: differs by 0"
check "cells too" says "cell 1, f32[5]: differs by 0"

run env DEEPC_DEBUG=kernel DEEPC_OPT=2 "$DEEPC" --replay "$dir/good"
check "with the environment's settings first" test "$status" -eq 0
check "which schedule here" warns "its schedule"
run env DEEPC_DEBUG=kernel "$DEEPC" --replay "$dir/good"
check "those of the file do not" sh -c "! grep -q 'its schedule' $dir/err"

report "$dir/wrong" "nfree 1 ncell 1 nresult 2 nset 1 ncheck 0" " 0" "setting: DEEPC_CHECK=1"
run "$DEEPC" --replay "$dir/wrong"
check "counts that do not fit end with 1" test "$status" -eq 1
check "it tells what" says "it fails: replay: the counts are not those of its function"
check "and writes no further file" test -z "$(find "$dir" -name 'deepc-bug-*')"

# refused WORDS COUNTS SET [LINES]: what a damaged file asks for is no promise of deepc.
refused() {
    words=$1
    shift
    report "$dir/refused" "$@"
    run "$DEEPC" --replay "$dir/refused"
    check "'$1 set$2' ends with 1" test "$status" -eq 1
    check "'$1 set$2': $words" sh -c "cat '$dir/out' '$dir/err' | grep -q '$words'"
}
one="nfree 1 ncell 1 nresult 1 nset 1 ncheck"
refused "not a line" "nfree 4294967295 ncell 3 nresult 1 nset 1 ncheck 0" " 0"
refused "not a line" "nfree 1 ncell 1 nresult 4294967295 nset 1 ncheck 1" " 0"
refused "not a line" "$one 2147483648" " 0"
refused "not all of it" "$one 0" ""
refused "not all of it" "$one 0" " x"
refused "not got" "$one 0" " 7"
refused "set twice" "nfree 0 ncell 2 nresult 0 nset 2 ncheck 0" " 1 1"
refused "of another type" "nfree 0 ncell 2 nresult 1 nset 1 ncheck 0" " 0"
refused "check is no" "nfree 1 ncell 1 nresult 0 nset 0 ncheck 1" ""
refused "not those of its function" "nfree 1 ncell 1 nresult 0 nset 40000 ncheck 0" \
    "$(yes ' 0' | head -n 40000 | tr -d '\n')"
refused "not a line" "$one 0" " 0" "counts: nfree 1"

# A file that is not trusted cannot have anything of this machine opened or run.
report "$dir/evil" "nfree 1 ncell 1 nresult 1 nset 1 ncheck 0" " 0" "setting: DEEPC_LLVM=/nonexistent.so
setting: DEEPC_CC=touch $dir/ran
setting: DEEPC_DUMP=$dir/dump
setting: LD_PRELOAD=/nonexistent.so"
run "$DEEPC" --replay "$dir/evil"
check "settings that name files are not used" says "without DEEPC_LLVM=/nonexistent.so"
check "nor those that name commands" says "without DEEPC_CC="
check "nor what is no setting" says "without LD_PRELOAD="
check "it runs well" test "$status" -eq 0
check "nothing was written" test ! -e "$dir/dump" -a ! -e "$dir/ran"

run "$DEEPC" --replay "$dir/nothing"
check "no file ends with 1" test "$status" -eq 1
check "and is named" warns "$dir/nothing: No such file"
run "$DEEPC" --replay tests/program/lib.sh
check "another file ends with 1" test "$status" -eq 1
check "and is named, too" warns "lib.sh"
sed 's/add %2, %3/add %2, %9/' "$dir/good" >"$dir/damaged"
run "$DEEPC" --replay "$dir/damaged"
check "a damaged graph ends with 1" test "$status" -eq 1
check "with a sentence" says "it fails: "
sed '/^module/q' "$dir/good" >"$dir/short"
run "$DEEPC" --replay "$dir/short"
check "a file without its graph ends with 1" test "$status" -eq 1
report "$dir/set" "nfree 1 ncell 1 nresult 1 nset 3 ncheck 0" " 0"
run "$DEEPC" --replay "$dir/set"
check "too few numbers end with 1" test "$status" -eq 1
run "$DEEPC" --replay
check "it needs a file" warns "--replay needs an argument"
closing
