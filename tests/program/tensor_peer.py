"""Files of models beside the packages gguf and torch: write DIR makes them, with their tensors as safetensors; check DIR
compares what deepc wrote with gguf.quantize.

gguf.gguf has random blocks of each quantised type, floats and integers, gguf.safetensors what gguf.dequantize makes of
them; torch.pt and legacy.pt are a dictionary of tensors of every kind, torch.safetensors their values in order. deepc writes
w.safetensors and w_TYPE.gguf.
"""
import os
import sys

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as T
from safetensors import safe_open
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_torch

SCALES = {T.Q4_0: [0], T.Q5_0: [0], T.Q8_0: [0], T.Q4_1: [0, 2], T.Q5_1: [0, 2], T.Q4_K: [0, 2], T.Q5_K: [0, 2],
          T.Q6_K: [208]}


def write_gguf(folder, seed):
    rng = np.random.default_rng(seed)
    writer, values = gguf.GGUFWriter(folder + "/gguf.gguf", "test"), {}
    for kind, places in SCALES.items():
        elements, size = gguf.GGML_QUANT_SIZES[kind]
        bytes = rng.integers(0, 256, (5, 768 // elements * size), dtype=np.uint8)
        blocks = bytes.reshape(-1, size)
        for at in places:  # scales that are numbers
            blocks[:, at:at + 2] = rng.normal(size=len(blocks)).astype(np.float16).view(np.uint8).reshape(-1, 2)
        writer.add_tensor(kind.name, bytes, raw_dtype=kind)
        values[kind.name] = gguf.dequantize(bytes, kind)
    for dtype in (np.float32, np.float16, np.float64, np.int8, np.int16, np.int32, np.int64):
        x = (rng.normal(size=(3, 4, 5)) * 50).astype(dtype)
        writer.add_tensor(np.dtype(dtype).name, x)
        values[np.dtype(dtype).name] = x
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    save_file(values, folder + "/gguf.safetensors")


def write_torch(folder, seed):
    torch.manual_seed(seed)
    base = torch.randn(40, 60)
    values = {"f32": torch.randn(3, 4), "f64": torch.randn(2), "f16": torch.randn(5).half(),
              "bf16": torch.randn(5, 2).bfloat16(), "i64": torch.tensor([1, -2]), "bool": torch.tensor([True, False]),
              "u8": torch.arange(5, dtype=torch.uint8), "c64": torch.randn(3, dtype=torch.complex64),
              "turned": base.t(), "part": base[3:17, 5:50:3], "shared": base, "scalar": torch.tensor(3.5),
              "permuted": torch.randn(2, 3, 4).permute(2, 0, 1), "none": torch.zeros(0, 3),
              "parameter": torch.nn.Parameter(torch.randn(2, 2))}
    torch.save(values, folder + "/torch.pt")
    torch.save(values, folder + "/legacy.pt", _use_new_zipfile_serialization=False)
    save_torch({k: v.detach().contiguous().clone() for k, v in values.items()}, folder + "/torch.safetensors")


def check(folder):
    with safe_open(folder + "/w.safetensors", framework="numpy") as f:
        for kind in ("f32", "f16", "bf16", "q8_0", "q4_0"):
            tensors = gguf.GGUFReader(f"{folder}/w_{kind}.gguf").tensors
            assert len(tensors) == len(f.keys())
            for t in tensors:
                x = f.get_tensor(t.name)
                assert [int(n) for n in t.shape][::-1] == list(x.shape), t.name
                assert t.tensor_type.name == (kind.upper() if x.ndim > 1 else "F32"), t.name
                wanted = np.ascontiguousarray(gguf.quantize(x, t.tensor_type)).view(np.uint8)
                got = np.ascontiguousarray(t.data).view(np.uint8)
                assert (wanted.ravel() == got.ravel()).all(), (kind, t.name)


if sys.argv[1] == "write":
    write_gguf(sys.argv[2], int(sys.argv[3]))
    write_torch(sys.argv[2], int(sys.argv[3]))
else:
    check(sys.argv[2])
os._exit(0)  # the libraries' own threads may not end
