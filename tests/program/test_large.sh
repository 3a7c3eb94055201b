#!/bin/sh
# Tensors of more than 2^31 elements (tests/program/large.lua); skipped where 7 GB of memory are not free.
. "$(dirname "$0")/lib.sh"

free=$(awk '/^MemAvailable/ { print int($2 / 1024) }' /proc/meminfo)
if [ "$free" -lt 7000 ]; then
    skip "$free MB of memory are free, 7000 are needed"
else
    run env DEEPC_MEMORY=6G "$DEEPC" "$(dirname "$0")/large.lua"
    check "elements, rows and indices beyond 2^31 are right, or refused" test "$out" = well
fi
closing
