#!/bin/sh
# safetensors 0.8.0: safetensors.numpy.save_file takes a transposed array and writes its elements in the order of memory, under the
# sizes of the transposed one. Nothing is said; what is read back has other values.
#
# The array is written from where its first element lies, as many bytes as it has, whatever its strides. One whose dtype is
# big-endian is copied first, and in the order of memory, too. safetensors.torch.save_file refuses a tensor that is not
# contiguous; here numpy.ascontiguousarray is the caller's to call. A weight that was turned round for another framework
# (w.T) is a file that every reader accepts.
#
#     w = [[0 1 2] [3 4 5]]     w.T is [[0 3] [1 4] [2 5]]     in the file [[0 1] [2 3] [4 5]]
#
# Debian 12, amd64, Python 3.11; safetensors and NumPy 2.4.6 from PyPI.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check safetensors==0.8.0 numpy==2.4.6
cat >run.py <<'PY'
import numpy
from safetensors.numpy import load_file, save_file
for dtype in "<f4", ">f4":
    w = numpy.arange(6, dtype=dtype).reshape(2, 3)
    save_file({"copy": numpy.ascontiguousarray(w.T), "view": w.T}, "x.safetensors")
    read = load_file("x.safetensors")
    print(dtype, w.T.tolist(), read["copy"].tolist(), read["view"].tolist())
PY
venv/bin/python run.py | tee seen.txt
cat >expected.txt <<'TXT'
<f4 [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]] [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]] [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
>f4 [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]] [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]] [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
TXT
cmp seen.txt expected.txt
