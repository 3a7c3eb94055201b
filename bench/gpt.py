"""A stack of GPT blocks: one training step with Adam on the mean square of the difference to a target.

    scripts/bench gpt [--case PATTERN] [--peer PATTERN] [--threads 1,2] [--rounds N] [--ms N]

Blocks normalise first, attention is causal, gelu is the one with tanh. Also a part of bench compile.
Cases with letters compute their logits instead, a whole model without training; each call's result is held
while the next ones are computed, as a script does that collects or prints them: held is how many.
"""
import contextlib

import frame
import training

KINDS = {"qkv": (1, 3), "proj": (1, 1), "fc1": (1, 4), "fc2": (4, 1)}  # inputs, outputs in widths


def case(layers, width=256, heads=8, time=64, batch=2):
    return frame.Case(f"{layers} blocks of {width}, {batch} x {time}", later=(3, 2e-2), layers=layers,
                      width=width, heads=heads, time=time, batch=batch, letters=0, held=1)


def logits(held, layers=2, width=128, heads=4, time=64, batch=16, letters=8000):
    return frame.Case(f"{letters} letters' logits, {held} held", peers="torch eager|jax", layers=layers, width=width,
                      heads=heads, time=time, batch=batch, letters=letters, held=held)


CASES = [case(12), case(2), case(6, width=384, heads=6, time=256, batch=8), logits(1), logits(3)]


def inputs(c, rng):
    import numpy as np
    if c.letters:
        found = {"ids": rng.integers(0, c.letters, (c.batch, c.time)).astype(np.int32),
                 "embed": rng.standard_normal((c.letters, c.width)).astype(np.float32),
                 "place": rng.standard_normal((c.time, c.width)).astype(np.float32),
                 "head": rng.uniform(-c.width ** -0.5, c.width ** -0.5, (c.width, c.letters)).astype(np.float32)}
    else:
        found = {n: rng.standard_normal((c.batch, c.time, c.width)).astype(np.float32) for n in "xy"}
    for name, (a, b) in KINDS.items():
        bound = (a * c.width) ** -0.5
        found[name] = rng.uniform(-bound, bound, (c.layers, a * c.width, b * c.width)).astype(np.float32)
        found[name + "_bias"] = rng.uniform(-bound, bound, (c.layers, b * c.width)).astype(np.float32)
    return found


def hold(c, logits, around=contextlib.nullcontext):
    """run(n) of a function whose last results are held."""
    held, calls = {}, 0

    def run(n):
        nonlocal calls
        with around():
            for _ in range(n):
                calls += 1
                held[calls % c.held] = logits()
        return {"logits": held[calls % c.held]}

    return run


def torch_side(c, inputs, compiled=False):
    import torch
    from torch.nn import functional as F
    torch._dynamo.reset()

    class Block(torch.nn.Module):
        def __init__(self, i):
            super().__init__()
            self.norm1, self.norm2 = torch.nn.LayerNorm(c.width), torch.nn.LayerNorm(c.width)
            for name, (a, b) in KINDS.items():
                layer = torch.nn.Linear(a * c.width, b * c.width)
                layer.weight.data = torch.from_numpy(inputs[name][i]).t().contiguous()
                layer.bias.data = torch.from_numpy(inputs[name + "_bias"][i]).clone()
                setattr(self, name, layer)

        def forward(self, x):
            parts = self.qkv(self.norm1(x)).reshape(c.batch, c.time, 3, c.heads, -1).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=True)
            x = x + self.proj(y.transpose(1, 2).reshape(c.batch, c.time, c.width))
            return x + self.fc2(F.gelu(self.fc1(self.norm2(x)), approximate="tanh"))

    net = torch.nn.Sequential(*[Block(i) for i in range(c.layers)])
    if c.letters:
        ids, embed, place, head = (torch.from_numpy(inputs[n]) for n in ("ids", "embed", "place", "head"))
        norm = torch.nn.LayerNorm(c.width)
        return hold(c, lambda: norm(net(embed[ids] + place)) @ head, torch.inference_mode)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    x, y = torch.from_numpy(inputs["x"]), torch.from_numpy(inputs["y"])

    def loss_of(x, y):
        return (net(x) - y).square().mean()

    return training.torch_training(net, opt, loss_of, x, y, compiled)


def torch_compile(c, inputs):
    return torch_side(c, inputs, compiled=True)


def jax_side(c, inputs):
    import jax
    import jax.numpy as jnp
    block = {k: jnp.asarray(inputs[k]) for n in KINDS for k in (n, n + "_bias")}
    ones, none = jnp.ones((c.layers, c.width)), jnp.zeros((c.layers, c.width))
    block.update(g1=ones, g2=ones, b1=none, b2=none)
    params = [{k: v[i] for k, v in block.items()} for i in range(c.layers)]
    mask = jnp.triu(jnp.full((c.time, c.time), -1e9), 1)

    def norm(x, g, b):
        x = x - x.mean(-1, keepdims=True)
        return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * g + b

    def block_of(p, x):
        qkv = (norm(x, p["g1"], p["b1"]) @ p["qkv"] + p["qkv_bias"]).reshape(c.batch, c.time, 3, c.heads, -1)
        q, k, v = qkv.transpose(2, 0, 3, 1, 4)
        scores = q @ k.swapaxes(-1, -2) * (c.width // c.heads) ** -0.5 + mask
        a = (jax.nn.softmax(scores) @ v).swapaxes(1, 2).reshape(x.shape)
        x = x + a @ p["proj"] + p["proj_bias"]
        h = jax.nn.gelu(norm(x, p["g2"], p["b2"]) @ p["fc1"] + p["fc1_bias"])
        return x + h @ p["fc2"] + p["fc2_bias"]

    def loss_of(params, x, y):
        for p in params:
            x = block_of(p, x)
        return jnp.mean((x - y) ** 2)

    if c.letters:
        ids, embed, place, head = (jnp.asarray(inputs[n]) for n in ("ids", "embed", "place", "head"))

        @jax.jit
        def logits_of(params, ids, embed, place, head):
            x = embed[ids] + place
            for p in params:
                x = block_of(p, x)
            return norm(x, jnp.ones(c.width), jnp.zeros(c.width)) @ head

        return hold(c, lambda: jax.block_until_ready(logits_of(params, ids, embed, place, head)))
    x, y = jnp.asarray(inputs["x"]), jnp.asarray(inputs["y"])
    return training.jax_training("adam", 1e-3, loss_of, params, x, y)


def tinygrad_side(c, inputs):
    from tinygrad import Tensor, nn
    params = [{k: Tensor(v[i]).realize() for k, v in inputs.items() if k not in "xy"} for i in range(c.layers)]
    norms = [(nn.LayerNorm(c.width), nn.LayerNorm(c.width)) for _ in range(c.layers)]
    weights = [t for p in params for t in p.values()] + [t for n in norms for l in n for t in (l.weight, l.bias)]
    for t in weights:
        t.requires_grad = True
    opt = nn.optim.Adam(weights, lr=1e-3)
    x, y = Tensor(inputs["x"]).realize(), Tensor(inputs["y"]).realize()

    def block_of(p, norm, x):
        qkv = (norm[0](x) @ p["qkv"] + p["qkv_bias"]).reshape(c.batch, c.time, 3, c.heads, -1).permute(2, 0, 3, 1, 4)
        a = qkv[0].scaled_dot_product_attention(qkv[1], qkv[2], is_causal=True)
        x = x + a.transpose(1, 2).reshape(*x.shape) @ p["proj"] + p["proj_bias"]
        return x + (norm[1](x) @ p["fc1"] + p["fc1_bias"]).gelu() @ p["fc2"] + p["fc2_bias"]

    def loss_of(x, y):
        for p, norm in zip(params, norms):
            x = block_of(p, norm, x)
        return (x - y).square().mean()

    return training.tinygrad_training(opt, loss_of, x, y)


PEERS = {"torch eager": torch_side, "torch.compile": torch_compile, "jax.jit": jax_side,
         "tinygrad": tinygrad_side}

if __name__ == "__main__":
    frame.main("gpt", CASES, inputs, PEERS, tolerance=1e-3, threads="2")
