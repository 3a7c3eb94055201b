"""Products of matrices of f32, beside OpenBLAS, oneDNN and PyTorch.

    scripts/bench matmul [--case PATTERN] [--peer PATTERN] [--threads 1,2] [--rounds N] [--ms N]

OpenBLAS is that of the wheel scipy-openblas32 or of the system, oneDNN that of the system (libdnnl)
or else PyTorch's, which is asked where bias and gelu are part of the product, too. Libraries in C are
called from C; small products follow one another, each multiplying the result of the one before, so
that calls weigh little on any side.
"""
import ctypes
import glob
import os
import sys

import frame

PLAIN = [(s, s, s) for s in (64, 128, 256, 512, 1024, 2048)]
SKINNY = [(64, 4096, 64), (4096, 64, 64), (64, 64, 4096), (16, 1024, 1024), (1, 4096, 4096)]


def case(label, m, n, k, batch=1, turned="", gelu=False, chain=1):
    return frame.Case(label, flops=2 * m * n * k * batch * chain, m=m, n=n, k=k, batch=batch, turned=turned,
                      gelu=gelu, chain=chain, peers="torch|onednn" if gelu else "")


CASES = ([case(f"{m}x{n}x{k}", m, n, k, chain=16 if m * n * k <= 128**3 else 1) for m, n, k in PLAIN + SKINNY]
         + [case("32 of 128x128x128", 128, 128, 128, batch=32)]
         + [case(f"{s}x{s}x{s} {t} transposed", s, s, s, turned=t) for s in (256, 512, 1024)
            for t in ("a", "b", "ab")]
         + [case(f"{m}x{n}x{k} bias gelu", m, n, k, gelu=True)
            for m, n, k in ((64, 128, 784), (512, 512, 512), (1024, 1024, 1024))])


def inputs(c, rng):
    import numpy as np

    def matrix(rows, columns, turned):
        shape = (columns, rows) if turned else (rows, columns)
        return rng.standard_normal((c.batch, *shape) if c.batch > 1 else shape).astype(np.float32)

    found = {"a": matrix(c.m, c.k, "a" in c.turned), "b": matrix(c.k, c.n, "b" in c.turned) / c.k**0.5}
    if c.gelu:
        found["c"] = rng.standard_normal(c.n).astype(np.float32)
    return found


def torch_side(c, inputs):
    import torch
    a, b = torch.from_numpy(inputs["a"]), torch.from_numpy(inputs["b"])
    a, b = a.mT if "a" in c.turned else a, b.mT if "b" in c.turned else b
    bias = torch.from_numpy(inputs["c"]) if c.gelu else None
    shape = (c.batch, c.m, c.n) if c.batch > 1 else (c.m, c.n)
    out = [torch.empty(shape), torch.empty(shape)]

    def run(n):
        with torch.no_grad():
            for _ in range(n):
                y = a
                for i in range(c.chain):
                    y = torch.addmm(bias, y, b, out=out[i % 2]) if c.gelu else torch.matmul(y, b, out=out[i % 2])
                if c.gelu:
                    y = torch.nn.functional.gelu(y)
        return {"y": y}

    return run


def torch_onednn(c, inputs):
    """oneDNN's own product with bias and gelu."""
    import torch
    a, w = torch.from_numpy(inputs["a"]), torch.from_numpy(inputs["b"]).t().contiguous()
    bias = torch.from_numpy(inputs["c"])

    def run(n):
        with torch.no_grad():
            for _ in range(n):
                y = torch.ops.mkldnn._linear_pointwise(a, w, bias, "gelu", [], "none")
        return {"y": y}

    return run


class Product(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("m", "n", "k", "batch", "chain", "turned")]


def compiled():
    import subprocess
    import tempfile
    with tempfile.TemporaryDirectory(prefix="deepc-bench-") as folder:
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC",
                        os.path.join(frame.HERE, "matmul_blas.c"), "-o", folder + "/blas.so"], check=True)
        return ctypes.CDLL(folder + "/blas.so")


def blas_side(c, inputs, function, is_dnnl):
    import numpy as np
    lib = compiled()
    a, b = np.ascontiguousarray(inputs["a"]), np.ascontiguousarray(inputs["b"])
    out = [np.empty((c.batch, c.m, c.n), np.float32) for _ in range(2)]
    p = Product(c.m, c.n, c.k, c.batch, c.chain, ("a" in c.turned) + 2 * ("b" in c.turned))
    results = (ctypes.c_void_p * 2)(*[y.ctypes.data for y in out])
    call = (ctypes.cast(function, ctypes.c_void_p), is_dnnl, ctypes.byref(p), ctypes.c_void_p(a.ctypes.data),
            ctypes.c_void_p(b.ctypes.data), results)

    def run(n):
        return {"y": out[lib.repeat(*call, ctypes.c_int64(n))]}

    return run


def openblas_gemm():
    try:
        import scipy_openblas32 as wheel
        path, = glob.glob(os.path.join(wheel.get_lib_dir(), "libscipy_openblas*.so"))
        prefix = "scipy_"
    except ImportError:
        path, prefix = "libopenblas.so.0", ""
    lib = ctypes.CDLL(path)
    config = getattr(lib, prefix + "openblas_get_config")
    config.restype = ctypes.c_char_p
    print(config().decode(), file=sys.stderr)
    return getattr(lib, prefix + "cblas_sgemm")


def openblas(c, inputs):
    return blas_side(c, inputs, openblas_gemm(), 0)


def onednn(c, inputs):
    if c.gelu:
        return torch_onednn(c, inputs)
    for name in ("libdnnl.so.3", "libdnnl.so.2"):
        try:
            return blas_side(c, inputs, ctypes.CDLL(name).dnnl_sgemm, 1)
        except OSError:
            pass
    raise OSError("libdnnl is not installed (Debian: libdnnl2)")


PEERS = {"torch": torch_side, "openblas": openblas, "onednn": onednn}

def tell_openblas():
    """Which core it runs on: it does not look for AVX-512 on every machine that has it."""
    with open("/proc/cpuinfo") as f:
        if "avx512f" in f.read():
            os.environ.setdefault("OPENBLAS_CORETYPE", "SkylakeX")


if __name__ == "__main__":
    tell_openblas()
    frame.main("matmul", CASES, inputs, PEERS, tolerance=1e-4, threads="1,2")
