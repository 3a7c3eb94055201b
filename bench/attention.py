"""Attention, softmax(q k^T * scale) v: forward, both passes, and decode of one query against a cache.

    scripts/bench attention [--case PATTERN] [--threads 1,2] [--rounds N] [--ms N]

Beside PyTorch's scaled_dot_product_attention and JAX's dot_product_attention. q is [batch, heads, t, d]; k and v have as
many heads, or fewer (grouped queries). Both passes: gradients of the mean of squares for q, k and v.
"""
import frame


def case(rule, batch, heads, kv, t, s, d, causal):
    names = {"forward": "forward", "both": "both passes", "decode": "decode"}
    grouped = f" of {kv}" if kv != heads else ""
    label = f"{names[rule]} {batch} x {heads}{grouped} x {t if t == s else f'{t} by {s}'} x {d}{' causal' if causal else ''}"
    flops = 4 * batch * heads * t * s * d * (3.5 if rule == "both" else 1) * (0.5 if causal else 1)
    return frame.Case(label, flops=int(flops), bytes=8 * batch * kv * s * d if rule == "decode" else 0, rule=rule, batch=batch,
                      heads=heads, kv=kv, t=t, s=s, d=d, causal=causal)


def lengths(rule):
    for t in (64, 128, 256, 512, 1024, 2048, 4096, 8192):
        heads = max(1, min(8, 8192 * 2 // t))
        for causal in (False, True):
            yield case(rule, 1, heads, heads, t, t, 64, causal)
    for d in (32, 96, 128):
        for causal in (False, True):
            yield case(rule, 2, 4, 4, 512, 512, d, causal)
    yield case(rule, 1, 9, 3, 512, 512, 64, True)
    yield case(rule, 2, 8, 2, 1000, 1000, 64, True)
    yield case(rule, 2, 4, 4, 100, 333, 80, False)


CASES = [*lengths("forward"), *lengths("both")]
for s in (512, 2048, 8192, 32768):
    CASES += [case("decode", 1, 9, 3, 1, s, 64, False), case("decode", 1, 8, 8, 1, s, 64, False),
              case("decode", 1, 32, 8, 1, s, 128, False)]


def inputs(c, rng):
    import numpy as np
    return {"q": rng.standard_normal((c.batch, c.heads, c.t, c.d)).astype(np.float32),
            "k": rng.standard_normal((c.batch, c.kv, c.s, c.d)).astype(np.float32),
            "v": rng.standard_normal((c.batch, c.kv, c.s, c.d)).astype(np.float32)}


def torch_side(c, inputs):
    import torch
    q, k, v = (torch.from_numpy(inputs[name]) for name in "qkv")
    options = {"is_causal": c.causal, "enable_gqa": c.kv != c.heads}
    attend = torch.nn.functional.scaled_dot_product_attention

    def infer(n):
        with torch.inference_mode():
            for _ in range(n):
                y = attend(q, k, v, **options)
        return {"y": y}

    def both(n):
        for x in (q, k, v):
            x.requires_grad_()
        for _ in range(n):
            for x in (q, k, v):
                x.grad = None
            attend(q, k, v, **options).square().mean().backward()
        return {"dq": q.grad, "dk": k.grad, "dv": v.grad}

    return both if c.rule == "both" else infer


def jax_side(c, inputs):
    import jax
    import jax.numpy as jnp
    q, k, v = (jnp.asarray(inputs[name].swapaxes(1, 2)) for name in "qkv")

    def attend(q, k, v):
        return jax.nn.dot_product_attention(q, k, v, is_causal=c.causal)

    if c.rule == "both":
        f = jax.jit(jax.grad(lambda *x: jnp.mean(attend(*x) ** 2), argnums=(0, 1, 2)))
    else:
        f = jax.jit(attend)

    def run(n):
        for _ in range(n):
            y = jax.block_until_ready(f(q, k, v))
        if c.rule == "both":
            return dict(zip(("dq", "dk", "dv"), (x.swapaxes(1, 2) for x in y)))
        return {"y": y.swapaxes(1, 2)}

    return run


if __name__ == "__main__":
    frame.main("attention", CASES, inputs, {"torch sdpa": torch_side, "jax.jit": jax_side}, tolerance=1e-3)
