# For tests/program/test_ranks_*.sh: both launchers, where they are there.
#
#   launchers                words for `ranks`
#   ranks LAUNCHER N ARGS... "$DEEPC" ARGS with so many ranks, as a run of lib.sh
#   one ARGS...              the same alone

launchers=
for name in openmpi mpich; do
    if command -v mpirun.$name >/dev/null; then
        launchers="$launchers $name"
    else
        skip "there is no mpirun.$name"
    fi
done
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0:use_sigaltstack=0"
export DEEPC_THREADS=1 DEEPC_RANK_SECONDS=60

ranks() {
    launcher=$1 n=$2
    shift 2
    set -- -n "$n" "$DEEPC" "$@"
    [ "$launcher" = mpich ] || set -- --allow-run-as-root --oversubscribe "$@"
    run timeout 300 "mpirun.$launcher" "$@"
}

one() {
    run "$DEEPC" "$@"
}
