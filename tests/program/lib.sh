# For tests/program/test_*.sh, which run the program "$DEEPC" as a user would:
#
#   check SENTENCE COMMAND...   a check that holds if the command succeeds
#   run COMMAND...              output in $out ($dir/out), errors in $err ($dir/err), status in
#                               $status; $dir is a fresh folder
#   says TEXT / warns TEXT      $out / $err contains TEXT
#   skip REASON
#   keep_kernels                what one run of the program compiled the next one of this test has
#   rank_settings               what launchers of MPI need here; a thread for each rank
#   cut_images TRAIN TEST       so many images and labels of Fashion-MNIST in $dir/data; without the data set the
#                               test ends here
#   closing                     the closing line; the last command of the test

set -u
: "${DEEPC:?the program to test}"
data=/usr/share/datasets/fashion-mnist
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
passed=0 failed=0 skipped=0
out= err= status=0

check() {
    sentence=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "not so: $sentence"
        printf 'status %s\n%s\n%s\n' "$status" "$out" "$err" | tail -n 20 | sed 's/^/    /'
    fi
}

run_once() {
    status=0
    "$@" >"$dir/out.new" 2>"$dir/err.new" || status=$? # the last run's files may be read by this one
    mv "$dir/out.new" "$dir/out"
    mv "$dir/err.new" "$dir/err"
    out=$(cat "$dir/out")
    err=$(cat "$dir/err")
}

# On a busy machine MPICH's launcher may end by SIGPIPE before it has started anything.
run() {
    run_once "$@"
    case $*:$status:$out$err in
    *mpirun.mpich*:141:)
        echo "mpirun.mpich ended by SIGPIPE, once more"
        run_once "$@"
        ;;
    esac
}

says() {
    case $out in *"$1"*) return 0 ;; esac
    return 1
}

warns() {
    case $err in *"$1"*) return 0 ;; esac
    return 1
}

skip() {
    skipped=$((skipped + 1))
    echo "skip: $1"
}

keep_kernels() {
    DEEPC_CACHE=$dir/kernels
    export DEEPC_CACHE
}

# The superuser may start ranks; what containers do not allow is not tried; libraries of MPI keep memory until the process ends,
# and set signal stacks of their own.
rank_settings() {
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
    export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0:use_sigaltstack=0"
    export DEEPC_THREADS=1
}

cut_images() {
    if [ ! -d $data ]; then
        skip "dataset-fashion-mnist is not installed"
        closing
        exit
    fi
    mkdir "$dir/data"
    run "$DEEPC" tests/program/cut_data.lua $data "$dir/data" "$1" "$2"
    check "data is cut" test "$status" -eq 0
}

closing() {
    more=
    [ $skipped -eq 0 ] || more=", $skipped skipped"
    echo "$passed passed, $failed failed$more"
    [ $failed -eq 0 ] || exit 1
    [ $passed -gt 0 ] || exit 77
}
