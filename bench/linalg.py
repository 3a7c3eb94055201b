"""Linear algebra: systems, inverses, determinants, factors, of one matrix or a batch, beside PyTorch, NumPy, SciPy and JAX.

    scripts/bench linalg [--case PATTERN] [--peer PATTERN] [--threads 1,2] [--rounds N] [--ms N]

All of them call a LAPACK: deepc the system's OpenBLAS, the others those of their wheels (PyTorch MKL or OpenBLAS, the rest
OpenBLAS). Tests for singular matrices are on, where a side has them. Factors are compared by what no sign of a vector changes.
"""
import frame

SIZES = [(8, 1000), (64, 100), (512, 1), (1000, 1)]
OPERATIONS = ["solve", "solve gradient", "cholesky", "inv", "slogdet", "qr", "eigh", "eigvalsh", "svd", "svdvals"]

CASES = [frame.Case(f"{op} {f'{b} of ' if b > 1 else ''}{n}x{n} {t}", op=op, n=n, b=b, dtype=t,
                    peers="torch|jax" if op == "solve gradient" else "")
         for op in OPERATIONS for n, b in SIZES for t in ("f32", "f64")]


def inputs(c, rng):
    import numpy as np
    batch = (c.b,) if c.b > 1 else ()
    a = rng.standard_normal((*batch, c.n, c.n)) / c.n**0.5
    if c.op in ("cholesky", "eigh", "eigvalsh"):
        a = a @ np.swapaxes(a, -1, -2) + np.eye(c.n)
        a = (a + np.swapaxes(a, -1, -2)) / 2
    else:
        a = a + 2 * np.eye(c.n)
    return {"a": a.astype(np.float32), "b": rng.standard_normal((*batch, c.n, 1)).astype(np.float32)}


def torch_side(c, inputs):
    import torch
    dtype = torch.float32 if c.dtype == "f32" else torch.float64
    a, b = torch.from_numpy(inputs["a"]).to(dtype), torch.from_numpy(inputs["b"]).to(dtype)
    la = torch.linalg

    def gradient():
        x, y = a.detach().requires_grad_(), b.detach().requires_grad_()
        ga, gb = torch.autograd.grad(la.solve(x, y).square().sum(), (x, y))
        return {"ga": ga, "gb": gb}

    operations = {
        "solve": lambda: {"x": la.solve(a, b)}, "solve gradient": gradient, "cholesky": lambda: {"l": la.cholesky(a)},
        "inv": lambda: {"y": la.inv(a)}, "slogdet": lambda: {"y": la.slogdet(a)[1]},
        "qr": lambda: {"r": la.qr(a)[1].abs()}, "eigh": lambda: {"w": la.eigh(a)[0]},
        "eigvalsh": lambda: {"w": la.eigvalsh(a)}, "svd": lambda: {"s": la.svd(a, full_matrices=False)[1]},
        "svdvals": lambda: {"s": la.svdvals(a)}}

    def run(n):
        for _ in range(n):
            out = operations[c.op]()
        return out
    return run


def arrays_side(c, inputs, la):
    """Libraries whose functions have NumPy's names and results."""
    import numpy as np
    dtype = np.float32 if c.dtype == "f32" else np.float64
    a, b = inputs["a"].astype(dtype), inputs["b"].astype(dtype)
    operations = {
        "solve": lambda: {"x": la.solve(a, b)}, "inv": lambda: {"y": la.inv(a)}, "eigh": lambda: {"w": la.eigh(a)[0]},
        "eigvalsh": lambda: {"w": la.eigvalsh(a)}, "svd": lambda: {"s": la.svd(a, full_matrices=False)[1]}}
    if la is np.linalg:
        operations.update(cholesky=lambda: {"l": la.cholesky(a)}, slogdet=lambda: {"y": la.slogdet(a)[1]},
                          qr=lambda: {"r": np.abs(la.qr(a)[1])}, svdvals=lambda: {"s": la.svdvals(a)})
    else:
        operations.update(cholesky=lambda: {"l": la.cholesky(a, lower=True)}, svdvals=lambda: {"s": la.svdvals(a)},
                          qr=lambda: {"r": np.abs(la.qr(a, mode="economic")[1])},
                          slogdet=lambda: {"y": np.log(np.abs(np.diagonal(la.lu_factor(a)[0], 0, -2, -1))).sum(-1)})

    def run(n):
        for _ in range(n):
            out = operations[c.op]()
        return out
    return run


def numpy_side(c, inputs):
    import numpy as np
    return arrays_side(c, inputs, np.linalg)


def scipy_side(c, inputs):
    import scipy.linalg
    return arrays_side(c, inputs, scipy.linalg)


def jax_side(c, inputs):
    import jax
    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp
    a, b, la = jnp.asarray(inputs["a"], c.dtype.replace("f", "float")), None, jnp.linalg
    b = jnp.asarray(inputs["b"], a.dtype)

    def gradient(x, y):
        ga, gb = jax.grad(lambda p, q: jnp.square(la.solve(p, q)).sum(), (0, 1))(x, y)
        return {"ga": ga, "gb": gb}

    operations = {
        "solve": lambda x, y: {"x": la.solve(x, y)}, "solve gradient": gradient,
        "cholesky": lambda x, y: {"l": la.cholesky(x)}, "inv": lambda x, y: {"y": la.inv(x)},
        "slogdet": lambda x, y: {"y": la.slogdet(x)[1]}, "qr": lambda x, y: {"r": la.qr(x)},
        "eigh": lambda x, y: {"w": la.eigh(x)}, "eigvalsh": lambda x, y: {"w": la.eigvalsh(x)},
        "svd": lambda x, y: {"s": la.svd(x, full_matrices=False)}, "svdvals": lambda x, y: {"s": la.svdvals(x)}}
    f = jax.jit(operations[c.op])

    def run(n):
        for _ in range(n):
            out = f(a, b)
        of_all = {"eigh": 0, "svd": 1, "qr": 1}  # jit would leave out what is not returned
        if c.op in of_all:
            out = {k: v[of_all[c.op]] for k, v in out.items()}
        if c.op == "qr":
            out = {"r": jnp.abs(out["r"])}
        return {k: v.block_until_ready() for k, v in out.items()}
    return run


if __name__ == "__main__":
    frame.main("linalg", CASES, inputs, {"torch": torch_side, "numpy": numpy_side, "scipy": scipy_side, "jax": jax_side},
               tolerance=1e-3)
