#!/bin/sh
# scripts/gpu-check from its begin to its end where no GPU is: on the stand-in for the driver (tests/cuda), with small
# sizes. What it finds there is nothing; that it goes on where it was cut off, kills what hangs and tells what was not run is.
. "$(dirname "$0")/lib.sh"
build=$(dirname "$DEEPC")
lib=$build/tests/cuda/lib
if [ ! -e "$lib/libcuda.so.1" ]; then
    skip "no stand-in for CUDA's driver is built"
    closing
    exit
fi
for word in python3 g++; do
    if ! command -v $word >/dev/null 2>&1; then
        skip "$word is not installed"
        closing
        exit
    fi
done
export DEEPC_CUDA="$lib/libcuda.so.1" DEEPC_NVRTC="$lib/libnvrtc.so.13"
export CUDA_STANDIN_CACHE="$build/tmp/gpu_check" DEEPC_PYTHON="$dir/python"
mkdir -p "$CUDA_STANDIN_CACHE"
printf '#!/bin/sh\nexec python3 -S "$@"\n' >"$DEEPC_PYTHON" # without the user's PyTorch
chmod +x "$DEEPC_PYTHON"

gpu_check() { # gpu_check OPTIONS: its report is in $dir/gpu/report.md
    run scripts/gpu-check --tiny --build "$build" --out "$dir/gpu" "$@"
}
reports() {
    grep -qF -- "$1" "$dir/gpu/report.md"
}

gpu_check --only '^example regression' --limit 0.05
check "what hangs is killed, and it fails" test "$status" -eq 1
check "it says so" says "example regression: hung, "
check "and after how long" reports "killed after 0.05 s"
gpu_check --only '^devices|^example regression'
check "parts by name run again, and pass" reports "| example regression | passed |"
check "the others are not run" reports "| costs of calls | not run |"

kept=$CUDA_STANDIN_CACHE
export CUDA_STANDIN_CACHE= # every text is compiled, which takes more than a second
gpu_check --only '^kernels against the interpreter' --limit 1 --minutes 0.01
export CUDA_STANDIN_CACHE="$kept"
check "the time is over before its limit" says "kernels against the interpreter: cut off, "
check "which is no failure" reports "- kernels against the interpreter: cut off: the time was over"
gpu_check --only '^costs' --limit 60 --minutes 0.02
check "what may hardly end is not begun" says "costs of calls: not begun, the time is over"
scripts/gpu-check --list | sed 's/^ *[0-9]* s  //' >"$dir/list"
in_order() { # in_order PART...
    last=0
    for part in "$@"; do
        line=$(grep -nxF "$part" "$dir/list" | cut -d : -f 1)
        [ "${line:-0}" -gt $last ] || return 1
        last=$line
    done
}
check "what is worth most comes first" in_order devices "kernels against the interpreter" "lua operations 1" \
    "example mlp, losses against eval" "bench gpu-matmul ^f32" "bench gpu-mlp" "lua layers 1" "random seed 1"

timeout -s TERM 2 scripts/gpu-check --tiny --jobs 2 --build "$build" --out "$dir/gpu" >"$dir/first" 2>"$dir/cut"
check "it is cut off" grep -q "goes on from here" "$dir/cut"
check "with a report" reports "not run"
gpu_check --jobs 2
cp "$dir/out" "$dir/whole"
check "it ends well" test "$status" -eq 0
check "what was done is not done again" awk -F': passed, ' \
    'NF < 2 { next } NR == FNR { done[$1] = 1; next } $1 in done { exit 1 }' "$dir/first" "$dir/whole"
check "training agrees with eval" reports "| example mlp, losses against eval | passed |"
check "kernels by hand are run" reports "| kernels by hand against the host's checker | passed |"
check "costs have a table" reports "| empty kernel, launched and waited for |"
for bench in gpu-matmul gpu-memory gpu-mlp gpu-cnn gpu-gpt; do
    check "$bench has a table" reports "### $bench"
done
check "products in TF32 are among them" grep -qE '^\| tf32 32x32x32 \| [0-9]' "$dir/gpu/report.md"
if ! command -v compute-sanitizer >/dev/null 2>&1; then
    check "what was not run is told" reports "- compute-sanitizer racecheck, kernels: skip: compute-sanitizer is not installed"
fi
check "the stand-in saw no misuse" sh -c "! grep -l 'CUDA stand-in: .*found wrong' '$dir'/gpu/*.log"
closing
