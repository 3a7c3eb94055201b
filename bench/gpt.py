"""A stack of GPT blocks: one training step with Adam on the mean square of the difference to a target.

    scripts/bench gpt [--case PATTERN] [--peer PATTERN] [--threads 1,2] [--rounds N] [--ms N]

Blocks normalise first, attention is causal, gelu is the one with tanh. Also a part of bench compile.
"""
import frame
import training

KINDS = {"qkv": (1, 3), "proj": (1, 1), "fc1": (1, 4), "fc2": (4, 1)}  # inputs, outputs in widths


def case(layers, width=256, heads=8, time=64, batch=2):
    return frame.Case(f"{layers} blocks of {width}, {batch} x {time}", later=(3, 2e-2), layers=layers,
                      width=width, heads=heads, time=time, batch=batch)


CASES = [case(12), case(2)]


def inputs(c, rng):
    import numpy as np
    found = {n: rng.standard_normal((c.batch, c.time, c.width)).astype(np.float32) for n in "xy"}
    for name, (a, b) in KINDS.items():
        bound = (a * c.width) ** -0.5
        found[name] = rng.uniform(-bound, bound, (c.layers, a * c.width, b * c.width)).astype(np.float32)
        found[name + "_bias"] = rng.uniform(-bound, bound, (c.layers, b * c.width)).astype(np.float32)
    return found


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
    block = {k: jnp.asarray(v) for k, v in inputs.items() if k not in "xy"}
    ones, none = jnp.ones((c.layers, c.width)), jnp.zeros((c.layers, c.width))
    block.update(g1=ones, g2=ones, b1=none, b2=none)
    params = [{k: v[i] for k, v in block.items()} for i in range(c.layers)]
    x, y = jnp.asarray(inputs["x"]), jnp.asarray(inputs["y"])
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
