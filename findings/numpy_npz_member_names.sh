#!/bin/sh
# NumPy 2.4.6: of an archive with the arrays "a" and "a.npy", which numpy.savez writes without a word, numpy.load gives the array
# "a" for both names.
#
# numpy.savez stores each array as a member of the zip archive whose name is that of the array with ".npy" behind it: "a.npy" and
# "a.npy.npy". NpzFile takes a key for the whole name of a member first, and only then for that of an array. So "a.npy", which is in
# .files, finds the member of "a", and no key gives the second array but "a.npy.npy", which is not in .files. The same with
# numpy.savez_compressed, dict(z) and z.items(). Who makes keys of names of files (x.npy and x) reads one array twice.
#
#     numpy.savez(f, **{"a": 1, "a.npy": 2})     .files  ['a', 'a.npy']     a 1     a.npy 1     a.npy.npy 2
#
# Debian 12, amd64, Python 3.11; NumPy from PyPI.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check numpy==2.4.6
cat >run.py <<'PY'
import numpy
for save in numpy.savez, numpy.savez_compressed:
    save("x.npz", **{"a": numpy.array(1), "a.npy": numpy.array(2)})
    with numpy.load("x.npz") as z:
        print(save.__name__, z.files, {key: int(value) for key, value in z.items()}, int(z["a.npy.npy"]))
PY
venv/bin/python run.py | tee seen.txt
cat >expected.txt <<'TXT'
savez ['a', 'a.npy'] {'a': 1, 'a.npy': 1} 2
savez_compressed ['a', 'a.npy'] {'a': 1, 'a.npy': 1} 2
TXT
cmp seen.txt expected.txt
