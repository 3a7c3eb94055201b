#!/bin/sh
# deepc doctor: what it finds, what it calls broken, and that no driver, compiler or library ends it.
. "$(dirname "$0")/lib.sh"
export DEEPC_CACHE="$dir/kernels"
mkdir -m 700 "$dir/kernels"
cc=${CC:-cc}

doctor() { # doctor [VARIABLE=VALUE...]: the tests of `eval` alone, that is of nothing
    run env "$@" "$DEEPC" doctor --quick --device eval
}

run "$DEEPC" doctor --help
check "it tells its options" says "--json"
run "$DEEPC" doctor --wrong
check "and knows no others" test $status -ne 0
run "$DEEPC" doctor --part nothing
check "a part that is none is refused" test $status -ne 0
run env DEEPC_ALLOW=compute "$DEEPC" doctor
check "a process that may only compute starts none" test $status -ne 0
check "and says so" warns "DEEPC_ALLOW=compute: it starts processes"

# ---- what there is ----

run "$DEEPC" doctor --quick --device cpu:cc
if says "cpu:cc      absent"; then
    skip "there is no C compiler"
else
    check "a device that works is no reason to fail" test $status -eq 0
    check "its kernels are compared with the interpreter's" says "10 functions agree with the interpreter"
fi
check "nothing is broken" says "deepc works here"
"$DEEPC" --devices | grep -v '^sim:' | cut -d ' ' -f 1 >"$dir/listed"
sed -n '/^devices/,/^$/s/^  \([^ ][^ ]*\) .*/\1/p' "$dir/out" >"$dir/told"
check "it tells of the devices that --devices lists" cmp "$dir/listed" "$dir/told"

# The names that it tries are those that are opened (machine.lua has them once more).
for name in $(grep -rhoE '"lib[a-z0-9_-]+\.so(\.[0-9]+)?"' backends/cuda/*.c backends/mpi/load.c backends/opencl/load.c \
    core/host/lapack.c formats/*.c formats/tokenizer/pattern.c | tr -d '"' | sort -u); do
    check "it looks for $name" grep -qF "\"$name\"" stdlib/doctor/machine.lua
done

run "$DEEPC" doctor --quick --device eval --json
check "as JSON" test $status -eq 0
if command -v python3 >/dev/null; then
    check "which others read" python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))
assert r["usable"] is True and r["version"] == "0.1.0" and r["broken"] == [] and r["machine"]["cores"] >= 1
assert [d["name"] for d in r["devices"]][:3] == ["cpu", "cpu:cc", "eval"] and len(r["libraries"]) == 15' "$dir/out"
else
    skip "there is no python3"
fi

# ---- what is broken ----

echo no folder >"$dir/file"
doctor DEEPC_LLVM=/nowhere/libLLVM.so DEEPC_DEVICE=cuda:0 DEEPC_CUDA=/nowhere/libcuda.so DEEPC_CACHE="$dir/file"
check "what is named and not there is broken" test $status -eq 1
check "a library by its setting" says "LLVM: DEEPC_LLVM=/nowhere/libLLVM.so: "
check "the device of the setting, with the reason" says "
  DEEPC_DEVICE=cuda:0: "
check "a cache that cannot be used" says "the cache $dir/file is not used: "
doctor DEEPC_DEVICE=cpu:sse9
check "an instruction set that there is not" says "DEEPC_DEVICE=cpu:sse9 failed: no device is called 'cpu:sse9'"
run env DEEPC_OPT=9 "$DEEPC" doctor
check "a setting that cannot be read is told" warns "DEEPC_OPT"

if command -v "$cc" >/dev/null; then
    printf '#include <stdlib.h>\n__attribute__((constructor)) static void begin(void) { abort(); }\n' >"$dir/bad.c"
    $cc -shared -fPIC "$dir/bad.c" -o "$dir/libbad.so"
    echo no library >"$dir/libworse.so"
    doctor DEEPC_OPENCL="$dir/libbad.so" DEEPC_LAPACK="$dir/libbad.so" DEEPC_NVRTC="$dir/libworse.so"
    check "a library that aborts is broken" test $status -eq 1
    check "with its signal" says "LAPACK: DEEPC_LAPACK=$dir/libbad.so: $dir/libbad.so: opening it ended the process that asked it, by signal 6"
    check "a driver, too" says "opencl: looking for it ended the process that asked it, by signal 6 (abort)"
    check "a file that is no library is broken" says "NVRTC: DEEPC_NVRTC=$dir/libworse.so: "

    # Compilers that end the process, make nothing, or other code.
    broken() { # broken SENTENCE COMPILER
        run env DEEPC_CC="$2" "$DEEPC" doctor --quick --device cpu:cc
        check "$1" test $status -eq 1
    }
    broken "a compiler that makes nothing is broken" echo
    check "since functions fall back" says "cpu:cc: 10 functions fall back to the interpreter: cpu:cc: what 'echo' made"
    broken "a compiler of other sums is found" "$cc -D__builtin_fmaf(a,b,c)=((a)*(b)+(c)*1.01f)"
    check "by what it computes" says "cpu:cc computes something else than the interpreter: "
else
    skip "there is no C compiler"
fi
closing
