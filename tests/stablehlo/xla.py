"""Programs that deepc wrote, compiled by XLA for its CPU: their results beside those of deepc.

    deepc tests/stablehlo/xla.lua FOLDER [PATTERN]
    python tests/stablehlo/xla.py FOLDER [.mlirbc]

Needs jax. Prints a line for each program that is not compiled, or whose results are further off than N.json says, then
"N passed, N failed" and the largest difference. Not a part of the tests: JAX changes what it calls its insides.
"""
import glob
import json
import os
import sys

import ml_dtypes
import numpy as np
import jax
from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

jax.config.update("jax_enable_x64", True)

DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i64": np.int64,
          "i32": np.int32, "i16": np.int16, "i8": np.int8, "u64": np.uint64, "u32": np.uint32, "u16": np.uint16,
          "u8": np.uint8, "bool": np.bool_, "c64": np.complex64, "c128": np.complex128,
          "f8e4m3fn": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2}
backend = jax.devices("cpu")[0].client


def read(path):
    with open(path, "rb") as f:
        return f.read()


def compiled(path):
    """The text, or the portable artifact, which has to be the same program, compiled."""
    with mlir.make_ir_context() as context, ir.Location.unknown():
        module = ir.Module.parse(read(os.path.splitext(path)[0] + ".mlir"))
        if path.endswith(".mlirbc"):
            artifact = stablehlo.deserialize_portable_artifact(context, read(path))
            assert str(artifact) == str(module), "the artifact is another program than the text"
            module = artifact
        module.operation.verify()
        devices = xla_client.DeviceList(tuple(backend.local_devices()[:1]))
        return backend.compile_and_load(mlir.module_to_bytecode(module), devices, xla_client.CompileOptions())


def arrays(types, data, at):
    out = []
    for t in types:
        dtype = np.dtype(DTYPES[t["dtype"]])
        shape = t["shape"] or []
        n = int(np.prod(shape, dtype=np.int64)) if shape else 1
        out.append(np.frombuffer(data, dtype, n, at).reshape(shape))
        at += n * dtype.itemsize
    return out, at


def difference(want, got):
    """The largest difference, relative to the larger of the number and 1."""
    assert want.shape == got.shape and want.dtype == got.dtype, (want.shape, got.shape, want.dtype, got.dtype)
    kind = np.complex128 if np.iscomplexobj(want) else np.float64
    a, b = want.astype(kind), got.astype(kind)
    same = (a == b) | (np.isnan(a) & np.isnan(b)) | (want == got)
    with np.errstate(all="ignore"):
        off = np.abs(a - b) / np.maximum(1, np.abs(a))
    off = np.where(same, 0, np.where(np.isnan(off), np.inf, off))
    return float(off.max()) if off.size else 0.0


def check(stem, ending):
    with open(stem + ".json") as f:
        case = json.load(f)
    data = read(stem + ".bin")
    inputs, at = arrays(case["inputs"] or [], data, 0)
    want, at = arrays(case["results"], data, at)
    assert at == len(data)
    put = [jax.device_put(x, backend.local_devices()[0]) for x in inputs]
    out = compiled(stem + ending).execute_sharded(put).disassemble_into_single_device_arrays()
    got = [np.asarray(o[0]) for o in out]
    off = [difference(a, b) for a, b in zip(want, got)]
    assert len(got) == len(want)
    worst = max(range(len(off)), key=lambda i: off[i])
    return case, off[worst], case["results"][worst]["name"]


def main():
    passed, failed, largest = 0, 0, (0.0, "")
    ending = sys.argv[2] if len(sys.argv) > 2 else ".mlir"
    stems = sorted((os.path.splitext(p)[0] for p in glob.glob(sys.argv[1] + "/*.json")),
                   key=lambda s: int(os.path.basename(s)))
    for stem in stems:
        try:
            case, off, where = check(stem, ending)
            fine = off <= max(case["near"], 1e-5)
            if case["near"] <= 1e-5:
                largest = max(largest, (off, case["name"]))
            if not fine:
                print(f"{stem}: {case['name']}: {where} is off by {off:.3g}")
        except Exception as e:  # whatever XLA raises is a failure of the program
            fine = False
            print(f"{stem}: {json.load(open(stem + '.json'))['name']}: {str(e)[:300]}")
        passed, failed = passed + fine, failed + (not fine)
    print(f"{passed} passed, {failed} failed; largest difference {largest[0]:.3g} in {largest[1]}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
