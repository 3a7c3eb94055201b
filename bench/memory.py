"""Kernels that memory decides, on 4096 x 4096 and on 256 x 256 numbers.

    scripts/bench memory [--case PATTERN] [--peer PATTERN] [--threads 1,2] [--rounds N] [--ms N]

GB/s counts what has to be read and written once. The yardstick moves as many bytes with the best of
several loops in C, on one thread or all: a copy, with stores past the caches or not; for kernels that
only read, a sum. It is no peer, but at 4096 x 4096 its ratio says how near a kernel is to what memory
gives.
"""
import os

import frame

# What is read and written, in pieces of n x n numbers; what the function takes.
LINES = {"gelu": (2, "x"), "softmax": (2, "x"), "softmax_grad": (3, "x g"), "norm": (2, "x w b"),
         "norm_grad": (3, "x w b g"), "transpose": (2, "x"), "sum_rows": (1, "x"),
         "sum_columns": (1, "x"), "sum": (1, "x"), "gather": (2, "x rows"), "adam": (7, "x g")}

CASES = [frame.Case(f"{line} {n}", bytes=4 * n * n * pieces, line=line, n=n, args=args.split(), pieces=pieces)
         for n in (4096, 256) for line, (pieces, args) in LINES.items()]


def inputs(c, rng):
    import numpy as np
    found = {}
    for name in c.args:
        if name == "rows":
            found[name] = rng.integers(0, c.n, c.n, dtype=np.int32)
        else:
            shape = (c.n, c.n) if name in "xg" else (c.n,)
            found[name] = rng.standard_normal(shape, dtype=np.float32)
    return found


def torch_functions(c):
    import torch
    F = torch.nn.functional
    return {"gelu": lambda x: F.gelu(x * 1.1 + 0.1) * x, "softmax": lambda x: F.softmax(x, 1),
            "norm": lambda x, w, b: F.layer_norm(x, (c.n,), w, b, 1e-5),
            "transpose": lambda x: x.t().contiguous(), "sum_rows": lambda x: x.sum(1),
            "sum_columns": lambda x: x.sum(0), "sum": lambda x: x.sum(), "gather": lambda x, rows: x[rows]}


def torch_adam(args, wrap, fused):
    import torch
    param = torch.nn.Parameter(args["x"].clone())
    param.grad = args["g"].clone()
    step = wrap(torch.optim.Adam([param], lr=1e-3, fused=fused).step)

    def run(n):
        for _ in range(n):
            step()
        return {"a": param}

    return run


def torch_gradient(c, args, wrap):
    """Forward and backward."""
    import torch
    f = wrap(torch_functions(c)[c.line.removesuffix("_grad")])
    leaves = [args[name].requires_grad_() for name in c.args if name != "g"]

    def run(n):
        for _ in range(n):
            found = torch.autograd.grad(f(*leaves), leaves, args["g"])
        return dict(zip("abc", found))

    return run


def torch_side(c, inputs, compiled=False):
    import torch
    torch._dynamo.reset()
    wrap = torch.compile(dynamic=False) if compiled else lambda f: f
    args = {name: torch.from_numpy(inputs[name]) for name in c.args}
    if "rows" in args:
        args["rows"] = args["rows"].long()
    if c.line == "adam":
        return torch_adam(args, wrap, None if compiled else True)
    if c.line.endswith("_grad"):
        return torch_gradient(c, args, wrap)
    f, values = wrap(torch_functions(c)[c.line]), [args[name] for name in c.args]

    def run(n):
        with torch.no_grad():
            for _ in range(n):
                y = f(*values)
        return {"a": y}

    return run


def torch_compile(c, inputs):
    return torch_side(c, inputs, compiled=True)


class Memory:
    """Pages of its own, huge ones if the system gives them."""

    def __init__(self, size):
        import ctypes
        import mmap
        import numpy as np
        huge = 2 << 20
        self.map = mmap.mmap(-1, size + huge, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.map.madvise(mmap.MADV_HUGEPAGE)
        begin = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        self.address = (begin + huge - 1) // huge * huge
        numbers = np.random.default_rng().random(max(size // 4, 1), dtype=np.float32)
        ctypes.memmove(self.address, numbers.ctypes.data, size)


def yardstick(c, inputs):
    import ctypes
    import statistics
    import subprocess
    import tempfile
    with tempfile.TemporaryDirectory(prefix="deepc-bench-") as folder:
        subprocess.run([os.environ.get("CC", "cc"), "-O3", "-march=native", "-shared", "-fPIC", "-pthread",
                        os.path.join(frame.HERE, "memory_yardstick.c"), "-o", folder + "/yardstick.so"],
                       check=True)
        lib = ctypes.CDLL(folder + "/yardstick.so")
    lib.yardstick.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_int,
                              ctypes.c_long, ctypes.POINTER(ctypes.c_double)]
    size = c.bytes if c.pieces == 1 else c.bytes // 2
    source, target = Memory(size), Memory(size if c.pieces > 1 else 1)

    def seconds(kind, threads, n):
        times = (ctypes.c_double * n)()
        lib.yardstick(kind, target.address, source.address, size, threads, n, times)
        return statistics.median(times)

    kinds = ((2, t) if c.pieces == 1 else (k, t) for k in (0, 1) for t in {1, len(os.sched_getaffinity(0))})
    kind, threads = min(kinds, key=lambda way: seconds(*way, 15 if c.n > 1000 else 300))

    def run(n):
        seconds(kind, threads, n)

    return run


PEERS = {"torch eager": torch_side, "torch.compile": torch_compile, "memory": yardstick}

if __name__ == "__main__":
    frame.main("memory", CASES, inputs, PEERS, tolerance=1e-4, threads=str(os.cpu_count() or 1),
               yardsticks=("memory",))
