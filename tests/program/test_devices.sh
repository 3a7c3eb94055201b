#!/bin/sh
# The example on every device by DEEPC_DEVICE alone: losses against eval, accuracy against cpu; and on
# cpu with one thread and two.
. "$(dirname "$0")/lib.sh"
keep_kernels
example=examples/fashion_mnist.lua
here=tests/program

cut_images 12800 1000
train() { # train LOG [VARIABLES]: one epoch of 200 steps
    log=$1
    shift
    run env "$@" "$DEEPC" $example --data "$dir/data" --epochs 1 --loss-log "$log"
    accuracy=$(printf '%s\n' "$out" | sed -n 's/^test accuracy //p')
}

train "$dir/one" DEEPC_THREADS=1
check "training with one thread ends well" test "$status" -eq 0
cpu_accuracy=$accuracy
train "$dir/two" DEEPC_THREADS=2
check "training with two threads ends well" test "$status" -eq 0
check "one thread and two: the same losses" cmp -s "$dir/one" "$dir/two"
train "$dir/five" DEEPC_THREADS=5
check "five threads: the same losses" cmp -s "$dir/one" "$dir/five"
train "$dir/eval" DEEPC_DEVICE=eval
check "the interpreter ends well" test "$status" -eq 0

"$DEEPC" --devices >"$dir/devices"
for device in cpu:cc opencl:0; do
    line=$(grep "^$device " "$dir/devices")
    if [ -z "$line" ] || printf '%s' "$line" | grep -q ' absent: '; then
        skip "${line:-$device is not there}"
        continue
    fi
    train "$dir/free" DEEPC_DEVICE=$device
    check "$device: training ends well" test "$status" -eq 0
    check "$device: nothing falls back" sh -c "! grep -q 'falls back' '$dir/err'"
    check "$device: accuracy $accuracy, on cpu $cpu_accuracy" \
        awk "BEGIN { d = $accuracy - $cpu_accuracy; exit !(d <= 0.005 && d >= -0.005) }"
    run "$DEEPC" $here/losses.lua "$dir/free" "$dir/eval" 20 1e-5
    check "$device: the first 20 losses against eval" test "$status" -eq 0
    echo "$device free runs: $out"
    train "$dir/stepwise" DEEPC_DEVICE=$device DEEPC_COMPARE=eval
    run sh -c "'$DEEPC' $here/compared.lua step 200 1e-5 <'$dir/err'"
    check "$device: 200 steps, each from the device's own state" test "$status" -eq 0
    echo "$device step by step: $out"
    check "$device: comparing changes nothing" cmp -s "$dir/free" "$dir/stepwise"
done
closing
