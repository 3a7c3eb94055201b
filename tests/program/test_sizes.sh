#!/bin/sh
# Random operations of the sizes that layers have (tests/random/sizes.lua): on CPUs of other kinds and on cuda:0 of the
# stand-in (tests/cuda) against this CPU. scripts/random and scripts/cuda run more of them.
. "$(dirname "$0")/lib.sh"
build=$(dirname "$DEEPC")
lib=$build/tests/cuda/lib

# compare DEVICE COUNT SETTINGS...
compare() {
    device=$1
    count=$2
    shift 2
    run env "$@" DEEPC_DEVICE="$device" "$DEEPC" tests/random/sizes.lua compare "$dir/cpu" "$count"
    check "$device: as on cpu" test "$status" -eq 0
    check "$device: something was compared" sh -c "grep -qE '^[1-9][0-9]* passed, 0 failed' '$dir/out'"
    check "$device: nothing falls back" sh -c "! grep -q 'falls back' '$dir/err'"
}

run env DEEPC_DEVICE=cpu "$DEEPC" tests/random/sizes.lua save "$dir/cpu" 24
check "results of cpu are saved" test "$status" -eq 0
compare cpu:avx2 24
compare cpu:baseline 24
if [ -e "$lib/libcuda.so.1" ]; then
    export CUDA_STANDIN_CACHE="${CUDA_STANDIN_CACHE:-$build/tests/cuda/texts}"
    mkdir -p "$CUDA_STANDIN_CACHE"
    compare cuda:0 12 DEEPC_CUDA="$lib/libcuda.so.1" DEEPC_NVRTC="$lib/libnvrtc.so.13"
else
    skip "no stand-in for CUDA's driver is built"
fi
closing
