#!/bin/sh
# scripts/gpu-bundle makes its bundle, within the size that it promises, and scripts/gpu-check runs in it from its begin to
# its end: on the stand-in for the driver (tests/cuda), with small sizes, in a folder without the repository around it.
. "$(dirname "$0")/lib.sh"
lib=$PWD/build/bundle/tests/cuda/lib
for word in python3 g++ cmake; do
    if ! command -v $word >/dev/null 2>&1; then
        skip "$word is not installed"
        closing
        exit
    fi
done
bundle=$dir/bundle
run scripts/gpu-bundle "$bundle"
check "a bundle is made" test "$status" -eq 0
check "its size is told" says "$bundle: "
size=$(find "$bundle" -type f -printf '%s\n' | awk '{ n += $1 } END { print int(n / 1048576) }')
check "it is small" test "$size" -lt 55
check "it has the commit" test "$(cat "$bundle/COMMIT")" = "$(git rev-parse HEAD 2>/dev/null || echo unknown)"
if [ ! -e "$lib/libcuda.so.1" ] || [ "$status" -ne 0 ]; then
    closing
    exit
fi
export LD_LIBRARY_PATH="$lib" CUDA_STANDIN_CACHE="$(dirname "$DEEPC")/tmp/gpu_check" DEEPC_PYTHON="$dir/python"
unset DEEPC
mkdir -p "$CUDA_STANDIN_CACHE"
printf '#!/bin/sh\nexec python3 -S "$@"\n' >"$DEEPC_PYTHON" # without the user's PyTorch
chmod +x "$DEEPC_PYTHON"
check "a second bundle does not go into the first" sh -c "! scripts/gpu-bundle '$bundle' 2>/dev/null"

cd "$bundle" || exit 1
run scripts/gpu-check --tiny --out "$dir/gpu"
check "gpu-check ends well in it" test "$status" -eq 0
check "nothing has failed" says " passed, 0 failed, "
reports() {
    grep -qF -- "$1" "$dir/gpu/report.md"
}
check "it knows the commit" reports "commit $(cut -c 1-12 COMMIT)"
for part in devices "kernels by hand against the host's checker" "kernels against the interpreter" "lua operations" \
    "lua functions" "random seed 1" "example regression" "bench gpu-mlp"; do
    check "$part has passed" reports "| $part | passed |"
done
if [ -d data ]; then
    check "training agrees with eval" reports "| example mlp, losses against eval | passed |"
fi
check "costs have a table" reports "| empty kernel, launched and waited for |"
# Parts of the whole run that the small one leaves out find what they run, too.
scripts/gpu-check --list >"$dir/list"
check "parts are listed" grep -q "lua layers" "$dir/list"
words=$(sed -n '/^LUA = {/,/^}/p' scripts/gpu-check | sed 's/"[a-z]*"://; s/[^a-z0-9_ ]//g' | sed 1d)
for word in $words; do
    check "test_$word.lua is there" test -e "tests/lua/test_$word.lua"
done
closing
