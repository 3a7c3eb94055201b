#!/bin/sh
# deepc doctor: what it finds, what it calls broken, and that no driver, compiler or library ends it.
. "$(dirname "$0")/lib.sh"
unset DEEPC_DEVICE
cc=${CC:-cc}

run "$DEEPC" doctor --help
check "it tells its options" says "--device"
run "$DEEPC" doctor --wrong
check "and knows no others" test $status -ne 0
run env DEEPC_ALLOW=compute "$DEEPC" doctor
check "a process that may only compute starts none" test $status -ne 0
check "and says so" warns "DEEPC_ALLOW=compute: it starts processes"

# ---- what there is ----

run "$DEEPC" doctor --device cpu:cc
if says "cpu:cc     absent"; then
    skip "there is no C compiler"
else
    check "a device that works is no reason to fail" test $status -eq 0
    check "its kernels are compared with the interpreter's" says "6 functions agree with the interpreter"
fi
check "nothing is broken" says "deepc works here"
"$DEEPC" --devices | grep -v '^sim:' | cut -d ' ' -f 1 >"$dir/listed"
sed -n '/^devices/,/^libraries/s/^  \([^ ][^ ]*\) .*/\1/p' "$dir/out" >"$dir/told"
check "it tells of the devices that --devices lists" cmp "$dir/listed" "$dir/told"

# The names that it tries are those that are opened.
for name in $(grep -rhoE '"lib[a-z0-9_-]+\.so(\.[0-9]+)?"' core/host/lapack.c formats/*.c extras/llm/tokenizer/pattern.c |
    tr -d '"' | sort -u); do
    check "it looks for $name" grep -qF "\"$name\"" stdlib/doctor.lua
done

# ---- what is broken ----

run env DEEPC_LAPACK=/nowhere/liblapack.so DEEPC_DEVICE=cuda:0 DEEPC_CUDA=/nowhere/libcuda.so "$DEEPC" doctor
check "what is named and not there is broken" test $status -eq 1
check "a library by its setting" warns "DEEPC_LAPACK=/nowhere/liblapack.so: "
check "the device of the setting, with the reason" warns "cuda:0: failed: "
run env DEEPC_DEVICE=cpu:sse9 "$DEEPC" doctor --device cpu:sse9
check "an instruction set that there is not" warns "cpu:sse9: failed: no device is called 'cpu:sse9'"
run env DEEPC_OPT=9 "$DEEPC" doctor
check "a setting that cannot be read is told" warns "DEEPC_OPT"

if command -v "$cc" >/dev/null; then
    printf '#include <stdlib.h>\n__attribute__((constructor)) static void begin(void) { abort(); }\n' >"$dir/bad.c"
    $cc -shared -fPIC "$dir/bad.c" -o "$dir/libbad.so"
    run env DEEPC_OPENCL="$dir/libbad.so" DEEPC_LAPACK="$dir/libbad.so" "$DEEPC" doctor --device eval
    check "a library that aborts is broken" test $status -eq 1
    check "with its signal" warns "DEEPC_LAPACK=$dir/libbad.so: ended its process by signal 6"
    check "a driver, too" warns "the next one ended the process that asked it (signal 6)"

    # Compilers that make nothing, or other code.
    broken() { # broken SENTENCE COMPILER
        run env DEEPC_CC="$2" "$DEEPC" doctor --device cpu:cc
        check "$1" test $status -eq 1
    }
    broken "a compiler that makes nothing is broken" echo
    check "since functions fall back" warns "cpu:cc: failed: "
    broken "a compiler of other sums is found" "$cc -D__builtin_fmaf(a,b,c)=((a)*(b)+(c)*1.01f)"
    check "by what it computes" warns "computes something else than the interpreter: "
else
    skip "there is no C compiler"
fi
closing
