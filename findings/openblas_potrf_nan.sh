#!/bin/sh
# OpenBLAS 0.3.30 (of NumPy 2.3.5's wheel): dpotrf of a matrix with NaN says success, info = 0; Intel MKL 2025.3 names the pivot, as
# LAPACK's own dpotrf2 does, which asks whether a pivot is at most 0 or NaN.
#
# OpenBLAS's recursion asks for pivots at most 0 alone, which a NaN is not, wherever it stands: on the diagonal or off it. So
# numpy.linalg.cholesky, which raises LinAlgError for a matrix that is not positive definite, gives a factor with NaN without a
# word, and "it did not raise" tells nothing about it. A negative pivot is reported by both.
#
# Debian 12, amd64, Python 3.11; packages from PyPI.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check numpy==2.3.5 mkl==2025.3.0
cat >run.py <<'PY'
import ctypes, glob, os, sys
import numpy as np

def info_of(potrf, integer, a):
    a, info, n = np.asfortranarray(a, dtype=np.float64), integer(99), integer(len(a))
    potrf(b"L", ctypes.byref(n), a.ctypes.data_as(ctypes.c_void_p), ctypes.byref(n), ctypes.byref(info))
    return info.value

libs = os.path.join(os.path.dirname(np.__file__), "..", "numpy.libs", "libscipy_openblas64_*.so")
openblas = ctypes.CDLL(glob.glob(libs)[0])
openblas.scipy_openblas_get_config64_.restype = ctypes.c_char_p
mkl = ctypes.CDLL(os.path.join(sys.prefix, "lib", "libmkl_rt.so.2"))
nan = float("nan")
print(" ".join(openblas.scipy_openblas_get_config64_().decode().split()[:2]))
for what, a in (("NaN as first pivot", [[nan, 0], [0, 1]]), ("NaN as second pivot", [[1, 0], [0, nan]]),
                ("NaN off the diagonal", [[1, nan], [nan, 1]]), ("negative pivot", [[1, 0], [0, -1]])):
    try:
        raised = "no error" if np.isnan(np.linalg.cholesky(np.array(a))).any() else "no NaN"
    except np.linalg.LinAlgError:
        raised = "LinAlgError"
    print(what, "OpenBLAS", info_of(openblas.scipy_dpotrf_64_, ctypes.c_int64, a), "MKL",
          info_of(mkl.dpotrf_, ctypes.c_int32, a), "numpy.linalg.cholesky:", raised)
PY
venv/bin/python run.py | tee seen.txt
cat >expected.txt <<'TXT'
OpenBLAS 0.3.30
NaN as first pivot OpenBLAS 0 MKL 1 numpy.linalg.cholesky: no error
NaN as second pivot OpenBLAS 0 MKL 2 numpy.linalg.cholesky: no error
NaN off the diagonal OpenBLAS 0 MKL 2 numpy.linalg.cholesky: no error
negative pivot OpenBLAS 2 MKL 2 numpy.linalg.cholesky: LinAlgError
TXT
cmp seen.txt expected.txt
