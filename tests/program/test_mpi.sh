#!/bin/sh
# Ranks under the launchers of Open MPI and MPICH: how many there are, exchanges over shared memory and by messages, and what
# the others say when one fails, disagrees or is killed.
. "$(dirname "$0")/lib.sh"
ranks=$MPI_RANKS
rank_settings

# lines N PATTERN: so many lines of the output are like it
lines() {
    [ "$(grep -cE "$2" "$dir/out")" -eq "$1" ]
}

# library MPIRUN MPIRUN-WITH-RECOVERY: all of it with one launcher
library() {
    for n in 1 2 4; do
        run timeout 120 $1 -n $n "$ranks" size
        check "$1: $n ranks" lines $n "^rank [0-9] of $n\$"
        for mode in sums apart inited; do
            run timeout 120 $1 -n $n "$ranks" $mode
            check "$1: $mode of $n ranks" lines $n "^rank [0-9] of $n on .*: 0 wrong, sent\$"
            check "$1: $mode of $n ranks ends well" test "$status" -eq 0
        done
    done
    run timeout 60 $2 -n 3 "$ranks" fail
    check "$1: two ranks hear of a failure" lines 2 '^rank [12]: rank 0 \(.*\) failed: train.lua:3: no such file$'
    run timeout 60 $2 -n 3 "$ranks" disagree
    check "$1: all ranks hear of a disagreement" \
        lines 3 '^rank [012]: ranks disagree: rank 0: all_reduce f32 x 7, train.lua:9; rank [12]: all_reduce f32 x 50000, train.lua:12$'
    run timeout 60 $1 -n 3 "$ranks" kill
    check "$1: ranks do not outlive one that is killed" test "$status" -ne 0 -a "$status" -ne 124
    run env DEEPC_MPI=off timeout 60 $1 -n 2 "$ranks" size
    check "$1: DEEPC_MPI=off" lines 2 '^rank 0 of 1$'
    run env DEEPC_MPI=/nowhere/libmpi.so timeout 60 $2 -n 2 "$ranks" size
    check "$1: a library that is not there" lines 2 '/nowhere/libmpi.so: cannot open shared object file'
}

run "$ranks" size
check "without a launcher one rank is alone" test "$out" = "rank 0 of 1"

if command -v mpirun.openmpi >/dev/null 2>&1; then
    library "mpirun.openmpi --oversubscribe" "mpirun.openmpi --oversubscribe --enable-recovery"
    run timeout 60 mpirun.openmpi --oversubscribe --enable-recovery -n 3 "$ranks" kill
    check "ranks say who was killed" lines 2 '^rank [01]: rank 2 \(.*\) was killed or has crashed; all_reduce, train.lua:12 waited for it$'
    mpich=$(ls /usr/lib/*/libmpich.so.12 2>/dev/null | head -n 1)
    if [ -n "$mpich" ]; then
        run env DEEPC_MPI="$mpich" timeout 60 mpirun.openmpi --oversubscribe --enable-recovery -n 2 "$ranks" size
        check "a library that does not fit the launcher" \
            lines 2 'mpirun of Open MPI says there are 2 processes, the library .*libmpich.so.12 says 1'
    fi
else
    skip "mpirun.openmpi is not installed (openmpi-bin)"
fi
if command -v mpirun.mpich >/dev/null 2>&1; then
    library mpirun.mpich "mpirun.mpich -disable-auto-cleanup"
else
    skip "mpirun.mpich is not installed (mpich)"
fi
closing
