#!/bin/sh
# The example on real images, cut short: losses on cpu and eval, the same twice, errors before data.
. "$(dirname "$0")/lib.sh"
example=examples/fashion_mnist.lua
here=tests/program

# A wrong layer in a copy elsewhere, and no data: the shape error wins.
sed 's/nn.Linear(784, 128)/nn.Linear(700, 128)/' $example >"$dir/wrong.lua"
check "the copy differs" sh -c "! cmp -s $example $dir/wrong.lua"
line=$(grep -n 'nn.Linear(700, 128)' "$dir/wrong.lua" | head -n 1 | cut -d: -f1)
run "$DEEPC" "$dir/wrong.lua" --data /nonexistent
check "a wrong layer fails" test "$status" -eq 1
check "it names the script" warns "wrong.lua:"
check "it names both types" warns "f32[700, 128]"
check "it names the other type" warns "784]"
check "it says inner dims" warns "inner dims differ"
check "it does not speak of files" sh -c "! grep -q nonexistent $dir/err"
: "$line"
run "$DEEPC" $example --data /nonexistent
check "no data fails" test "$status" -eq 1
check "and names the file" warns "/nonexistent"
run "$DEEPC" $example --epochs many
check "a bad option fails" test "$status" -eq 1
for place in save checkpoint plot; do
    run "$DEEPC" $example --$place /nonexistent/x --loss-log "$dir/log" --data /nonexistent
    check "no place for --$place is told before anything is read" warns "deepc: /nonexistent/x.new: No such file"
done

cut_images 12800 1000
train() { # train LOG [VARIABLES] -- trains one epoch of 200 steps
    log=$1
    shift
    run env "$@" "$DEEPC" $example --data "$dir/data" --epochs 1 --loss-log "$log"
}
train "$dir/a"
check "training ends well" test "$status" -eq 0
check "it ends with the accuracy" sh -c "tail -n 1 $dir/out | grep -qE '^test accuracy 0\.[78][0-9]{3}\$'"
check "a loss per step" test "$(wc -l <"$dir/a")" -eq 200
train "$dir/b"
check "the same losses twice" cmp -s "$dir/a" "$dir/b"
train "$dir/e" DEEPC_DEVICE=eval
run "$DEEPC" $here/losses.lua "$dir/a" "$dir/e" 20 1e-5
check "the first 20 losses of cpu and eval" test "$status" -eq 0
echo "free runs: $out"
train "$dir/c" DEEPC_COMPARE=eval
run sh -c "'$DEEPC' $here/compared.lua step 200 1e-5 <$dir/err"
check "200 steps, each from the state that cpu had" test "$status" -eq 0
echo "step by step: $out"
check "comparing changes nothing" cmp -s "$dir/a" "$dir/c"
train "$dir/g" DEEPC_CHECK=2
check "with guard zones and verifiers" test "$status" -eq 0
check "the same losses" cmp -s "$dir/a" "$dir/g"
train "$dir/t" DEEPC_DEBUG=time
check "kernels of a step are printed" warns "[time] step:"
check "products are among them" warns "D_784_128_k64"
closing
