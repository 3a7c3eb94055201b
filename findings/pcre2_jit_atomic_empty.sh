#!/bin/sh
# PCRE2 10.42: the JIT compiler goes back into an atomic group, (?>...), whose last alternative is empty; the interpreter does not.
#
# From the second a of aaab, (?>a+a|) matches both that are left, and what follows, (?=a), fails: an atomic group is left with
# one way only, so there is no match from there. The JIT compiler takes the empty alternative then, and has one. From the third
# a the first alternative fails by itself, and both engines have the empty one. So what a pattern matches depends on whether
# there is machine code. With a first alternative that repeats nothing (the second pattern) both say the same here.
#
#     subject  aaab     pattern  (?>a+a|)(?=a)     from 0
#     interpreter: 2 to 2, JIT: 1 to 1
#
# Debian 12, amd64: libpcre2-8-0 10.42-1. Python calls it by ctypes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download -q libpcre2-8-0=10.42-1 >apt.log 2>&1 || { cat apt.log; exit 1; }
dpkg-deb -x libpcre2-8-0_*.deb .
cat >run.py <<'PY'
import ctypes, glob
lib = ctypes.CDLL(glob.glob("usr/lib/*/libpcre2-8.so.0")[0])
pointer, size, u32 = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32
lib.pcre2_compile_8.restype = lib.pcre2_match_data_create_8.restype = pointer
lib.pcre2_compile_8.argtypes = [ctypes.c_char_p, size, u32, pointer, pointer, pointer]
lib.pcre2_match_data_create_8.argtypes = [u32, pointer]
lib.pcre2_match_8.argtypes = [pointer, ctypes.c_char_p, size, size, u32, pointer, pointer]
lib.pcre2_get_ovector_pointer_8.restype = ctypes.POINTER(size)
lib.pcre2_get_ovector_pointer_8.argtypes = [pointer]
lib.pcre2_jit_compile_8.argtypes = [pointer, u32]
NO_JIT, JIT_COMPLETE = 0x2000, 1
subject = b"aaab"
found = lib.pcre2_match_data_create_8(20, None)
for pattern in rb"(?>a+a|)(?=a)", rb"(?>aaa|)(?=a)":
    for engine in "interpreter", "jit":
        error, at = ctypes.c_int(), size()
        code = lib.pcre2_compile_8(pattern, len(pattern), 0, ctypes.byref(error), ctypes.byref(at), None)
        if engine == "jit":
            assert lib.pcre2_jit_compile_8(code, JIT_COMPLETE) == 0
        n = lib.pcre2_match_8(code, subject, len(subject), 0, NO_JIT if engine != "jit" else 0, found, None)
        place = lib.pcre2_get_ovector_pointer_8(found)
        print(pattern.decode(), engine, n, place[0], place[1])
PY
python3 run.py | tee seen.txt
cat >expected.txt <<'TXT'
(?>a+a|)(?=a) interpreter 1 2 2
(?>a+a|)(?=a) jit 1 1 1
(?>aaa|)(?=a) interpreter 1 1 1
(?>aaa|)(?=a) jit 1 1 1
TXT
cmp seen.txt expected.txt
