#!/bin/sh
# The number of threads changes no bit: losses of the example, cut short, with 1, 2 and 3.
. "$(dirname "$0")/lib.sh"
example=examples/fashion_mnist.lua

cut_images 6400 500
train() { # train LOG VARIABLES -- trains one epoch of 100 steps
    log=$1
    shift
    run env "$@" "$DEEPC" $example --data "$dir/data" --epochs 1 --loss-log "$log"
    check "training ends well with $*" test "$status" -eq 0
    tail -n 1 "$dir/out" >"$log.accuracy"
}
train "$dir/1" DEEPC_THREADS=1
check "a loss per step" test "$(wc -l <"$dir/1")" -eq 100
for threads in 0 2 3; do
    train "$dir/$threads" DEEPC_THREADS=$threads
    check "the same losses with $threads threads" cmp -s "$dir/1" "$dir/$threads"
    check "and the same accuracy" cmp -s "$dir/1.accuracy" "$dir/$threads.accuracy"
done
train "$dir/all" DEEPC_THREADS=2 DEEPC_CHECK=2
check "the same losses with every launch split" cmp -s "$dir/1" "$dir/all"
closing
