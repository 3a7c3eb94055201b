"""Files of deepc beside the safetensors package: reads what deepc wrote, writes what deepc is to read.

read FILE: every tensor against the rule below; write FILE OURS: the same content with numpy, and whether deepc's
file has the same tensors. Tensors: t_DTYPE[3, 4] with element i = i % 2 for bool, i - 5 signed, i + 3 unsigned,
(i - 5) / 4 floats; scalar f32[] 2.5; none f32[0, 4]. Metadata: note.
"""
import sys

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

NOTE = 'Zo\u00eb "quoted" \\ \n\U0001f600'
NUMPY = {"bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8,
         "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "f16": np.float16, "f32": np.float32, "f64": np.float64}


def content():
    i = np.arange(12).reshape(3, 4)
    tensors = {}
    for name, dtype in NUMPY.items():
        rule = i % 2 if name == "bool" else i + 3 if name[0] == "u" else (i - 5) / 4 if name[0] == "f" else i - 5
        tensors["t_" + name] = rule.astype(dtype)
    tensors["scalar"] = np.array(2.5, np.float32)
    tensors["none"] = np.zeros((0, 4), np.float32)
    return tensors


def read(path):
    wanted = content()
    with safe_open(path, framework="numpy") as f:
        assert set(f.keys()) == set(wanted) | {"t_bf16"}, f.keys()
        assert f.metadata() == {"note": NOTE}, f.metadata()
        for name, value in wanted.items():
            got = f.get_tensor(name)
            assert got.dtype == value.dtype and got.shape == value.shape, name
            assert (got == value).all(), name
        assert f.get_slice("t_bf16").get_dtype() == "BF16" and f.get_slice("t_bf16").get_shape() == [3, 4]


if sys.argv[1] == "read":
    read(sys.argv[2])
else:
    save_file(content(), sys.argv[2], metadata={"note": NOTE})
