"""Order along an axis and running sums: sort, argsort, top_k, median, values that occur, cumsum, cumprod, cummax, of one long
row and of many short ones.

    scripts/bench order [--case PATTERN] [--peer PATTERN] [--threads 1,2] [--rounds N] [--ms N]

PyTorch's median is the lower one of two, so rows have an odd number of elements there; numpy.quantile is not compared.
"""
import frame

CASES = [frame.Case(f"{line} {m}x{n}", line=line, m=m, n=n)
         for line in ("sort", "argsort", "top_k", "cumsum", "cumprod", "cummax")
         for m, n in ((1, 1000000), (10000, 100))]
CASES += [frame.Case("median 1x999999", line="median", m=1, n=999999),
          frame.Case("median 10000x99", line="median", m=10000, n=99),
          frame.Case("unique 1e6 of 13 values", line="unique", m=1, n=1000000)]


def inputs(c, rng):
    import numpy as np
    x = rng.standard_normal((c.m, c.n), dtype=np.float32)
    if c.line == "cumprod":  # products that stay near 1
        x = np.where(x > 0, np.float32(1 + 2**-10), np.float32(1 - 2**-10))
    return {"x": x}


def torch_side(c, inputs, compiled=False):
    import torch
    torch._dynamo.reset()
    x = torch.from_numpy(inputs["x"])
    f = {
        "sort": lambda x: x.sort(dim=-1, stable=True).values,
        "argsort": lambda x: x.argsort(dim=-1, stable=True).to(torch.int32),
        "top_k": lambda x: x.topk(10, -1).values,
        "cumsum": lambda x: x.cumsum(-1),
        "cumprod": lambda x: x.cumprod(-1),
        "cummax": lambda x: x.cummax(-1).values,
        "median": lambda x: x.median(-1).values,
        "unique": lambda x: torch.unique(torch.round(x)),
    }[c.line]
    f = torch.compile(f, dynamic=False) if compiled else f

    def run(n):
        for _ in range(n):
            y = f(x)
        if c.line == "unique":
            y = torch.cat([y, torch.zeros(64 - len(y))])
        return {"y": y}

    return run


def torch_compile(c, inputs):
    return torch_side(c, inputs, compiled=True)


def jax_side(c, inputs):
    import jax
    import jax.numpy as jnp
    x = jnp.asarray(inputs["x"])
    f = jax.jit({
        "sort": lambda x: jnp.sort(x, -1),
        "argsort": lambda x: jnp.argsort(x, -1),
        "top_k": lambda x: jax.lax.top_k(x, 10)[0],
        "cumsum": lambda x: jnp.cumsum(x, -1),
        "cumprod": lambda x: jnp.cumprod(x, -1),
        "cummax": lambda x: jax.lax.cummax(x, 1),
        "median": lambda x: jnp.median(x, -1),
        "unique": lambda x: jnp.unique(jnp.round(x), size=64, fill_value=0),
    }[c.line])

    def run(n):
        import numpy as np
        for _ in range(n):
            y = f(x)
        y.block_until_ready()
        return {"y": np.asarray(y)}

    return run


if __name__ == "__main__":
    frame.main("order", CASES, inputs, {"torch": torch_side, "torch compile": torch_compile, "jax": jax_side})
