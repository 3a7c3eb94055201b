#!/bin/sh
# Examples on cuda:0 of the stand-in (tests/cuda) against the interpreter: losses of both networks for Fashion-MNIST, and
# what regression and characters print. CUDA_EXAMPLE_STEPS: steps of each, for scripts/cuda.
. "$(dirname "$0")/lib.sh"
steps=${CUDA_EXAMPLE_STEPS:-8}
build=$(dirname "$DEEPC")
lib=$build/tests/cuda/lib
if [ ! -e "$lib/libcuda.so.1" ]; then
    skip "no stand-in for CUDA's driver is built"
    closing
    exit
fi
export CUDA_STANDIN_CACHE="${CUDA_STANDIN_CACHE:-$build/tests/cuda/texts}"
mkdir -p "$CUDA_STANDIN_CACHE"

on_cuda() {
    run env DEEPC_CUDA="$lib/libcuda.so.1" DEEPC_NVRTC="$lib/libnvrtc.so.13" DEEPC_DEVICE=cuda:0 "$@"
    check "cuda:0: it ends well" test "$status" -eq 0
    check "cuda:0: nothing falls back" sh -c "! grep -q 'falls back' '$dir/err'"
}

# What is printed, numbers of some four digits and letters drawn from what was learnt, is the same.
agree() {
    on_cuda "$DEEPC" "$@"
    cuda=$out
    run env DEEPC_DEVICE=eval "$DEEPC" "$@"
    check "$1: on cuda:0 as on eval" test "$cuda" = "$out"
}

agree examples/regression.lua
agree examples/characters.lua --steps "$steps" --batch 4 --context 32 --width 64 --layers 2 --sample 40

cut_images $((64 * steps)) 500
for model in mlp cnn; do
    train="examples/fashion_mnist.lua --model $model --data $dir/data --epochs 1 --loss-log"
    # shellcheck disable=SC2086
    on_cuda "$DEEPC" $train "$dir/cuda"
    # shellcheck disable=SC2086
    run env DEEPC_DEVICE=eval "$DEEPC" $train "$dir/eval"
    # As on other devices: how far losses are apart grows from step to step.
    run env DEEPC_DEVICE=eval "$DEEPC" tests/program/losses.lua "$dir/cuda" "$dir/eval" $((steps < 20 ? steps : 20)) 1e-5
    check "$model: losses on cuda:0 against eval" test "$status" -eq 0
    echo "$model on cuda:0: $out"
    # shellcheck disable=SC2086
    on_cuda env DEEPC_COMPARE=eval "$DEEPC" $train "$dir/stepwise"
    run sh -c "DEEPC_DEVICE=eval '$DEEPC' tests/program/compared.lua step $steps 1e-5 <'$dir/err'"
    check "$model: each step from the device's own state" test "$status" -eq 0
    echo "$model step by step: $out"
done
closing
