#!/bin/sh
# PCRE2 10.42: where PCRE2_MATCH_INVALID_UTF is set, PCRE2_PARTIAL_HARD makes the interpreter pass over a whole match that
# ends at a byte that is no UTF-8; it gives the next one, as a full match. The JIT compiler, given the same, does not.
#
# PCRE2_PARTIAL_HARD says that a partial match at the end of the subject is preferred to a full one (pcre2partial). With
# PCRE2_MATCH_INVALID_UTF the subject is cut at bytes that are no UTF-8, and the interpreter takes the end of such a piece for
# a place where more may come. So what one text is split into depends on whether there is a JIT compiler. Who reads a
# text in parts ends each part at such a byte, without that option.
#
#     subject  61 20 20 ff 20 20 61 20 20     pattern  [\x{9}-\x{d}\x{20}]++     from 0
#     JIT and interpreter, whole: 1 to 3      JIT, partial hard: 1 to 3      interpreter, partial hard: 4 to 6
#
# Debian 12, amd64: libpcre2-8-0 10.42-1 (10.42-1+deb12u2 is the same in this). Python calls it by ctypes.
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
UCP, UTF, MATCH_INVALID_UTF, PARTIAL_HARD, NO_JIT = 0x20000, 0x80000, 0x4000000, 0x20, 0x2000
JIT_COMPLETE, JIT_PARTIAL_HARD = 1, 4
pattern, subject = rb"[\x{9}-\x{d}\x{20}]++", b"a  \xff  a  "
found = lib.pcre2_match_data_create_8(20, None)
for engine in "jit", "interpreter":
    for option in 0, PARTIAL_HARD:
        error, at = ctypes.c_int(), size()
        code = lib.pcre2_compile_8(pattern, len(pattern), UTF | UCP | MATCH_INVALID_UTF, ctypes.byref(error),
                                   ctypes.byref(at), None)
        if engine == "jit":
            assert lib.pcre2_jit_compile_8(code, JIT_COMPLETE | JIT_PARTIAL_HARD) == 0
        n = lib.pcre2_match_8(code, subject, len(subject), 0, option | (NO_JIT if engine != "jit" else 0), found, None)
        place = lib.pcre2_get_ovector_pointer_8(found)
        print(engine, "partial hard" if option else "whole", n, place[0], place[1])
PY
python3 run.py | tee seen.txt
cat >expected.txt <<'TXT'
jit whole 1 1 3
jit partial hard 1 1 3
interpreter whole 1 1 3
interpreter partial hard 1 4 6
TXT
cmp seen.txt expected.txt
