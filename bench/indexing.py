"""Integers that are data: gather along an axis and its gradient, scatters that add into few and many places, counts,
histograms, binary search, compaction.

    scripts/bench indexing [--case PATTERN] [--peer PATTERN] [--threads 1,2] [--rounds N] [--ms N]

Integers reach PyTorch as int64, which its functions take; the conversion is not measured.
"""
import frame

CASES = [frame.Case("gather axis 1", line="gather1", n=1024, m=1024),
         frame.Case("gather axis 2", line="gather2", n=1024, m=1024),
         frame.Case("gather axis 1, gradient", line="gradient1", n=1024, m=1024),
         frame.Case("gather axis 2, gradient", line="gradient2", n=1024, m=1024),
         frame.Case("scatter_add 1e6 into 1e5", line="scatter_add", n=1000000, m=100000),
         frame.Case("scatter max 1e6 into 1e5", line="scatter_max", n=1000000, m=100000),
         frame.Case("index_add 1e5 rows into 1e4", line="rows", n=100000, m=10000),
         frame.Case("scatter_add 1e5 rows into 1e4", line="matrix", n=100000, m=10000),
         frame.Case("bincount 1e6 into 1000", line="bincount", n=1000000, m=1000),
         frame.Case("histogram 1e6 into 100", line="histogram", n=1000000, m=100),
         frame.Case("searchsorted 1e6 in 1e4", line="searchsorted", n=1000000, m=10000),
         frame.Case("compact 1e6", line="compact", n=1000000, m=1)]


def inputs(c, rng):
    import numpy as np
    n, m = c.n, c.m

    def normal(*shape):
        return rng.standard_normal(shape, dtype=np.float32)

    def integers(most, *shape):
        return rng.integers(0, most, shape, dtype=np.int32)

    if c.line in ("gather1", "gather2", "gradient1", "gradient2"):
        return {"x": normal(n, n), "i": integers(n, n, n)}
    if c.line in ("scatter_add", "scatter_max"):  # integers above 65535 are sums of two
        return {"x": normal(m), "i": integers(m // 2, n), "j": integers(m // 2, n), "v": normal(n)}
    if c.line == "rows":
        return {"x": normal(m, 64), "i": integers(m, n), "v": normal(n, 64)}
    if c.line == "matrix":
        return {"x": normal(m, 64), "i": integers(m, n, 64), "v": normal(n, 64)}
    if c.line == "bincount":
        return {"i": integers(m, n)}
    if c.line == "searchsorted":
        return {"s": np.sort(normal(m)), "v": normal(n)}
    return {"x": normal(n)}


def torch_side(c, inputs, compiled=False):
    import torch
    torch._dynamo.reset()
    t = {k: torch.from_numpy(v) for k, v in inputs.items()}
    if "i" in t:
        t["i"] = (t["i"] + t["j"] if "j" in t else t["i"]).long()
    gradient = c.line.startswith("gradient")
    if gradient:
        t["x"].requires_grad_()
    axis = int(c.line[-1]) - 1 if c.line[-1] in "12" else 0
    x, i, v, s = (t.get(k) for k in "xivs")
    f, args = {
        "gather": (lambda x, i: x.gather(axis, i), (x, i)),
        "gradient": (lambda x, i: (x.gather(axis, i) * x).sum(), (x, i)),
        "scatter_add": (lambda x, i, v: x.scatter_add(0, i, v), (x, i, v)),
        "scatter_max": (lambda x, i, v: x.scatter_reduce(0, i, v, "amax"), (x, i, v)),
        "rows": (lambda x, i, v: x.index_add(0, i, v), (x, i, v)),
        "matrix": (lambda x, i, v: x.scatter_add(0, i, v), (x, i, v)),
        "bincount": (lambda i: torch.bincount(i, minlength=c.m), (i,)),
        "histogram": (lambda x: torch.histc(x, c.m, -3, 3), (x,)),
        "searchsorted": (lambda s, v: torch.searchsorted(s, v, out_int32=True), (s, v)),
        "compact": (lambda x: x[x > 0], (x,)),
    }[c.line.rstrip("12")]
    f = torch.compile(f, dynamic=False) if compiled else f

    def run(n):
        for _ in range(n):
            y = torch.autograd.grad(f(*args), x)[0] if gradient else f(*args)
        if c.line == "compact":
            y = torch.cat([y, torch.zeros(c.n - len(y))])
        return {"y": y}

    return run


def torch_compile(c, inputs):
    return torch_side(c, inputs, compiled=True)


def jax_side(c, inputs):
    import jax
    import jax.numpy as jnp
    t = {k: jnp.asarray(v) for k, v in inputs.items()}
    if "j" in t:
        t["i"] = t["i"] + t["j"]
    axis = int(c.line[-1]) - 1 if c.line[-1] in "12" else 0
    x, i, v, s = (t.get(k) for k in "xivs")

    def take(x, i):
        return jnp.take_along_axis(x, i, axis)

    f, args = {
        "gather": (take, (x, i)),
        "gradient": (jax.grad(lambda x, i: (take(x, i) * x).sum()), (x, i)),
        "scatter_add": (lambda x, i, v: x.at[i].add(v), (x, i, v)),
        "scatter_max": (lambda x, i, v: x.at[i].max(v), (x, i, v)),
        "rows": (lambda x, i, v: x.at[i].add(v), (x, i, v)),
        "matrix": (lambda x, i, v: x.at[i, jnp.arange(64)[None, :]].add(v), (x, i, v)),
        "bincount": (lambda i: jnp.bincount(i, length=c.m), (i,)),
        "histogram": (lambda x: jnp.histogram(x, c.m, (-3, 3))[0], (x,)),
        "searchsorted": (lambda s, v: jnp.searchsorted(s, v), (s, v)),
        "compact": (lambda x: x[jnp.nonzero(x > 0, size=c.n, fill_value=c.n)[0]] * (jnp.arange(c.n) < (x > 0).sum()), (x,)),
    }[c.line.rstrip("12")]
    f = jax.jit(f)

    def run(n):
        import numpy as np
        for _ in range(n):
            y = f(*args)
        y.block_until_ready()
        return {"y": np.asarray(y)}

    return run


if __name__ == "__main__":
    frame.main("indexing", CASES, inputs,
               {"torch": torch_side, "torch compile": torch_compile, "jax": jax_side})
