"""Kernels that memory decides, on a GPU: maps, rows, transposes, reductions, gathers, Adam.

    scripts/bench gpu-memory [--tiny] [--case PATTERN] [--peer PATTERN] [--rounds N] [--ms N]

The share is of what a kernel reaches that copies (or, for those that only read, sums) 256 MiB; bytes are what has to be
read and written once.
"""
import gpu_frame

SIZES = ((32, 48),) if gpu_frame.TINY else ((8192, 8192), (16384, 1000), (1024, 1024))
ENTROPY = (64, 50) if gpu_frame.TINY else (16384, 50257)
ADAM = (3, 64) if gpu_frame.TINY else (64, 1 << 20)
# What is read and written, in pieces of rows x columns numbers; what the function takes.
LINES = {"map": (2, "x"), "map f16": (2, "x"), "softmax": (2, "x"), "softmax_grad": (3, "x g"), "norm": (2, "x w b"),
         "norm_grad": (3, "x w b g"), "transpose": (2, "x"), "transpose heads": (2, "x"), "sum_rows": (1, "x"),
         "sum_columns": (1, "x"), "sum": (1, "x"), "gather": (2, "x rows"), "scatter": (2, "g rows")}


def line(name, rows, columns, label=None):
    pieces, args = LINES[name]
    dtype = "f16" if name.endswith("f16") else "f32"
    shapes = {"x": ((rows, columns), dtype, 1.0), "g": ((rows, columns), dtype, 1.0), "w": ((columns,), "f32", 1.0),
              "b": ((columns,), "f32", 1.0), "rows": ((rows,), "i32", rows)}
    size = rows * columns * pieces * gpu_frame.BYTES[dtype]
    return gpu_frame.case(f"{name} {rows} x {columns}", [(a, *shapes[a]) for a in args.split()], bytes=size, line=name,
                          rows=rows, columns=columns, args=args.split(), reads=pieces == 1, dtype=dtype,
                          tolerance=2e-3 if dtype == "f16" or name == "scatter" else 1e-4)


CASES = [line(name, *size) for name in LINES for size in SIZES
         if name != "transpose heads" or size[1] % 16 == 0]
CASES.append(gpu_frame.case(f"entropy and its gradient {ENTROPY[0]} x {ENTROPY[1]}",
                            [("x", ENTROPY, "f32", 4.0), ("y", ENTROPY[:1], "i32", ENTROPY[1])],
                            bytes=2 * 4 * ENTROPY[0] * ENTROPY[1], line="entropy", rows=ENTROPY[0], columns=ENTROPY[1],
                            args=["x", "y"], dtype="f32", tolerance=1e-4))
CASES.append(gpu_frame.case(f"adam, {ADAM[0]} parameters of {ADAM[1]}",
                            [(f"{k}{i}", (ADAM[1],), "f32", 1.0) for i in range(ADAM[0]) for k in "pg"], turn=False,
                            bytes=7 * 4 * ADAM[0] * ADAM[1], line="adam", count=ADAM[0], size=ADAM[1], dtype="f32",
                            tolerance=1e-4))


def functions(c):
    import torch
    F = torch.nn.functional

    def scatter(g, rows):
        return torch.zeros_like(g).index_add_(0, rows.long(), g)

    def entropy(x, y):
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            return torch.autograd.grad(F.cross_entropy(x, y.long()), x)[0]

    return {"map": lambda x: F.gelu(x * 1.1 + 0.1) * x, "map f16": lambda x: F.gelu(x * 1.1 + 0.1) * x,
            "softmax": lambda x: F.softmax(x, 1), "norm": lambda x, w, b: F.layer_norm(x, (c.columns,), w, b, 1e-5),
            "transpose": lambda x: x.t().contiguous(),
            "transpose heads": lambda x: x.reshape(c.rows // 16, 16, 16, -1).transpose(1, 2).contiguous(),
            "sum_rows": lambda x: x.sum(1), "sum_columns": lambda x: x.sum(0), "sum": lambda x: x.sum(),
            "gather": lambda x, rows: x[rows.long()], "scatter": scatter, "entropy": entropy}


def gradient(c, f):
    import torch

    def function(t):
        leaves = [t[name].requires_grad_() for name in c.args if name != "g"]
        with torch.enable_grad():
            return torch.autograd.grad(f(*leaves), leaves, t["g"])
    return function


def adam(c, wrap, fused):
    import torch
    t = gpu_frame.inputs(c)
    params = [torch.nn.Parameter(t[f"p{i}"]) for i in range(c.count)]
    for i, p in enumerate(params):
        p.grad = t[f"g{i}"]
    step = wrap(torch.optim.Adam(params, lr=1e-3, fused=fused).step)

    def run(n):
        for _ in range(n):
            step()
        gpu_frame.wait()
        return {"a": params[-1]}
    return run


def torch_side(c, _, compiled=False):
    import torch
    torch._dynamo.reset()
    wrap = torch.compile(dynamic=False) if compiled else lambda f: f
    if c.line == "adam":
        return adam(c, wrap, None if compiled else True)
    f = functions(c)[c.line.removesuffix("_grad")]
    if c.line != "entropy":
        f = wrap(f)
    if c.line.endswith("_grad"):
        each = gradient(c, f)
        return gpu_frame.in_turn(c, lambda t: dict(zip("abc", each(t))))
    return gpu_frame.in_turn(c, lambda t: {"a": f(*[t[name] for name in c.args])})


def torch_compile(c, inputs):
    return torch_side(c, inputs, compiled=True)


PEERS = {"torch eager": torch_side, "torch.compile": torch_compile}

if __name__ == "__main__":
    gpu_frame.main("gpu-memory", CASES, PEERS)
