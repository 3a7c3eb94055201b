#!/bin/sh
# Messages of ranks and pipelines of stages: values and gradients; a network in 2 and 4 stages, beside ranks with batches of
# their own, trained as in one process, within rounding; the same bits when it is repeated; what schedules keep in memory.
. "$(dirname "$0")/lib.sh"
here=$(cd "$(dirname "$0")/../ranks" && pwd)
rank_settings
keep_kernels

# messages LAUNCHER [DEVICE]
messages() {
    run env DEEPC_DEVICE="${2:-cpu}" timeout 60 $1 -n 2 "$DEEPC" "$here/messages.lua"
    check "$1, ${2:-cpu}: messages arrive" test "$(grep -c right "$dir/out")" -eq 2
}

# trained LAUNCHER N SCHEDULE REPLICAS: beside one process
trained() {
    rm -f "$dir"/stage.*
    run timeout 120 $1 -n "$2" "$DEEPC" "$here/pipeline.lua" "$3" "$4" "$dir/stage"
    check "$1, $2 ranks, $4 times: $3 ends well" test "$status" -eq 0
    cat "$dir"/stage.? >"$dir/ranks"
    run_before=$out
    run "$DEEPC" "$here/compare.lua" "$dir/whole.0" "$dir/ranks" 5e-7
    check "$1, $2 ranks, $4 times: $3 as one process" test "$status" -eq 0
}

# kept STAGE: bytes of temporaries that this stage said it has
kept() {
    printf '%s\n' "$run_before" | sed -n "s/.* \([0-9]*\) bytes of temporaries in stage $1/\1/p" | head -n 1
}

run "$DEEPC" "$here/pipeline.lua" whole 1 "$dir/whole"
check "one process" test "$status" -eq 0

# The example of the manual: alone, and in stages.
sed -n '/^```lua/,/^```$/p' "$here/../../docs/pipelines.md" | grep -v '^```' >"$dir/page.lua"
run "$DEEPC" "$dir/page.lua"
check "the manual's example in one process" says "true"

messages "$here/threads.sh"

# random LAUNCHER N COUNT [DEVICE]: programs of exchanges and messages, beside one rank that computes all
random() {
    run env DEEPC_DEVICE="${4:-cpu}" timeout 300 $1 -n "$2" "$DEEPC" "$here/random.lua" "$3" "$seed"
    check "$1, ${4:-cpu}: $3 programs on $2 ranks, seed $seed" test "$(grep -c "$3 programs" "$dir/out")" -eq "$2"
}
seed=${DEEPC_TEST_SEED:-$(date +%s)}
for n in 2 3 4; do
    random "$here/threads.sh" $n 60 eval
    random "$here/threads.sh" $n 10
done
trained "$here/threads.sh" 4 1f1b 2
if command -v mpirun.mpich >/dev/null 2>&1; then
    messages mpirun.mpich
    messages mpirun.mpich eval
    run timeout 60 mpirun.mpich -n 3 "$DEEPC" "$dir/page.lua"
    check "and in three stages" test "$(grep -c true "$dir/out")" -eq 3
    trained mpirun.mpich 2 gpipe 1
    first=$(kept 0) last=$(kept 1)
    set -- $(printf '%s\n' "$run_before" | sed -n 's/.*stage 1: \([0-9 ]*\) kernels between its sends/\1/p')
    check "gpipe sends a gradient when it is there: $* kernels between them" \
        test "$#" -eq 3 -a "$1" -ge 20 -a "$2" -ge 20 -a "$3" -ge 20
    trained mpirun.mpich 2 1f1b 1
    check "1f1b keeps less than gpipe: $(kept 0) of $first, $(kept 1) of $last" \
        test "$(($(kept 0) * 4))" -lt "$((first * 3))" -a "$(($(kept 1) * 4))" -lt "$((last * 3))"
    cp "$dir/ranks" "$dir/first"
    trained mpirun.mpich 2 1f1b 1
    check "the same bits again" cmp -s "$dir/first" "$dir/ranks"
    trained mpirun.mpich 4 1f1b 1
    trained mpirun.mpich 4 1f1b 2
    trained mpirun.mpich 4 eager 1
else
    skip "mpirun.mpich is not installed (mpich)"
fi
if command -v mpirun.openmpi >/dev/null 2>&1; then
    messages "mpirun.openmpi --oversubscribe"
    trained "mpirun.openmpi --oversubscribe" 4 1f1b 2
else
    skip "mpirun.openmpi is not installed (openmpi-bin)"
fi
closing
