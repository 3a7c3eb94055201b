# For tests/program/test_ranks_*.sh: both launchers, where they are there.
#
#   launchers                words for `ranks`; another one is threads
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
rank_settings
export DEEPC_RANK_SECONDS=60

ranks() {
    launcher=$1 n=$2
    shift 2
    if [ "$launcher" = threads ]; then
        run timeout 300 "$DEEPC" --ranks "$n" "$@"
        return
    fi
    set -- -n "$n" "$DEEPC" "$@"
    [ "$launcher" = mpich ] || set -- --allow-run-as-root --oversubscribe "$@"
    run timeout 300 "mpirun.$launcher" "$@"
}

one() {
    run "$DEEPC" "$@"
}
