#!/bin/sh
# One fuzzing target for some seconds: run.sh PROGRAM TARGET SECONDS, from the root. PROGRAM is linked with libFuzzer.
#
# Words that inputs are put together from, besides, are in tests/fuzz/dict/TARGET, where there is such a file.
# Begins with the inputs of tests/fuzz/corpus/TARGET and with what earlier runs found in the build's folder corpus/TARGET.
# An input that fails lies in the build's folder findings/; its report is printed. Ends with "N passed, N failed".
set -u
program=$1
target=$2
seconds=$3
build=$(dirname "$program")/..
work=$build/corpus/$target
mkdir -p "$work" "$build/findings" "$build/tmp"
log=$build/findings/$target.log
words=tests/fuzz/dict/$target
set --
[ ! -f "$words" ] || set -- "-dict=$words"

# What deepc would read from the environment is as with nothing set. A leak is told where it happens.
for name in $(env | sed -n 's/^\(DEEPC_[A-Z_]*\)=.*/\1/p'); do
    unset "$name"
done
TMPDIR=$build/tmp DEEPC_CACHE=off \
    ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 \
    "$program" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=1500 -malloc_limit_mb=1000 \
    -max_len=8192 -print_final_stats=1 -verbosity=1 -artifact_prefix="$build/findings/$target-" \
    "$@" "$work" "tests/fuzz/corpus/$target" >"$log" 2>&1
status=$?
inputs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
if [ $status -eq 0 ] && [ "${inputs:-0}" -gt 0 ]; then
    echo "$target: $inputs inputs$(sed -n 's/^taken: \(.*\)/, taken by readers: \1/p' "$log" | tail -n 1)"
    echo "1 passed, 0 failed"
    exit 0
fi
echo "$target: a finding (status $status)"
grep -E -A 14 '^(FINDING|==[0-9]+==|.*runtime error:|SUMMARY)' "$log" | head -n 40
grep -E '^(artifact_prefix|Test unit)|Test unit written to' "$log"
echo "0 passed, 1 failed"
exit 1
