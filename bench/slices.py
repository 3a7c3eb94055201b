"""Loops written out over the slices of one value: T steps, each with a slice, forward and with the gradient;
T pieces joined along an axis; windows that overlap, with the gradient.

    scripts/bench slices [--case PATTERN] [--peer PATTERN] [--threads 1,2] [--rounds N] [--ms N]

x is 16 x T x 64 numbers. Compilers of peers take minutes for hundreds of steps, so they are asked for 50 alone;
PyTorch eager for all.
"""
import frame

LINES = ["forward", "gradient", "concat", "stack", "windows"]
CASES = [frame.Case(f"{line} {t}", line=line, steps=t, peers="." if t == 50 else "^torch$")
         for line in LINES for t in (50, 100, 200, 400)]


def inputs(c, rng):
    import numpy as np
    return {"x": rng.standard_normal((16, c.steps, 64), dtype=np.float32)}


def steps(x, t, tanh):
    h = x[:, 0]
    for i in range(t):
        h = tanh(h + x[:, i])
    return h


def windows(x, t, tanh):
    loss = 0
    for i in range(t - 2):
        loss = loss + tanh(x[:, i:i + 3]).sum()
    return loss


def pieces(x, t):
    return [x[:, t - 1 - i] * 2 + 1 for i in range(t)]


def functions(c, tanh, concat, stack):
    """What is computed, and whether its gradient is wanted."""
    t = c.steps
    return {"forward": (lambda x: steps(x, t, tanh), False),
            "gradient": (lambda x: steps(x, t, tanh).sum(), True),
            "concat": (lambda x: concat(pieces(x, t), 1), False),
            "stack": (lambda x: stack(pieces(x, t), 1), False),
            "windows": (lambda x: windows(x, t, tanh), True)}[c.line]


def torch_side(c, inputs, compiled=False):
    import torch
    torch._dynamo.reset()
    f, gradient = functions(c, torch.tanh, torch.cat, torch.stack)
    f = torch.compile(f, dynamic=False) if compiled else f
    x = torch.from_numpy(inputs["x"]).requires_grad_(gradient)

    def run(n):
        for _ in range(n):
            y = torch.autograd.grad(f(x), x)[0] if gradient else f(x)
        return {"y": y}

    return run


def torch_compile(c, inputs):
    return torch_side(c, inputs, compiled=True)


def jax_side(c, inputs):
    import jax
    import jax.numpy as jnp
    f, gradient = functions(c, jnp.tanh, jnp.concatenate, jnp.stack)
    f = jax.jit(jax.grad(f) if gradient else f)
    x = jnp.asarray(inputs["x"])

    def run(n):
        import numpy as np
        for _ in range(n):
            y = f(x)
        y.block_until_ready()
        return {"y": np.asarray(y)}

    return run


if __name__ == "__main__":
    frame.main("slices", CASES, inputs,
               {"torch": torch_side, "torch compile": torch_compile, "jax": jax_side})
