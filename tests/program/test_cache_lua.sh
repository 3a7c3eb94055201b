#!/bin/sh
# The Lua tests with a cache on disk, cold and warm: they pass, and the second time nothing is compiled or planned, since
# every function and kernel was stored and is found again.
. "$(dirname "$0")/lib.sh"
export DEEPC_CACHE="$dir/cache" DEEPC_DEVICE=cpu DEEPC_COMPILE=now DEEPC_DEBUG=cache DEEPC_TEST_SEED=1

# Those that compile much, and the same each time.
names="cell conv custom derived dtypes einsum files fn functions guards join language_rules language_snippets
    language_state launches layers losses names nn numbers odd_rows ops optim positions products rounding_rows short_sums
    slices sums values"

# Each in a process of its own; lines of the channel go to $dir/channel.
run_tests() {
    results=
    : >"$dir/channel"
    for name in $names; do
        run "$DEEPC" tests/run.lua "tests/lua/test_$name.lua"
        grep "^\[cache\]" "$dir/err" >>"$dir/channel"
        err=$(grep "falls back to the interpreter" "$dir/err")
        check "$1, test_$name.lua passes" test "$status" -eq 0
        results="$results $(tail -n 1 "$dir/out")"
    done
}
lines() { # so many of the channel have this text
    grep -c "$1" "$dir/channel"
}

run "$DEEPC" -e 'require("deepc").fn("f(x: f32[4]) -> f32[4]", function(x) return x * 2 end)({ 1, 2, 3, 4 })'
if warns "falls back to the interpreter"; then
    skip "no LLVM here"
    closing
    exit
fi
run_tests cold
cold=$results
check "they compile" test "$(lines 'compiled in')" -gt 1000
check "all functions are stored" test "$(lines 'not stored')" -eq 0

run_tests warm
check "as many as before" test "$results" = "$cold"
check "nothing is compiled" test "$(lines 'compiled in')" -eq 0
check "nothing is missing" test "$(lines 'not there')" -eq 0
check "nothing is refused" test "$(lines 'does not fit')" -eq 0
check "functions are found whole" test "$(lines 'found whole')" -gt 500
closing
