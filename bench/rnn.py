"""Inference and a training step of an LSTM and a GRU of one layer over a sequence, beside PyTorch's layers and JAX's scan.

    scripts/bench rnn [--case PATTERN] [--peer PATTERN] [--threads 1,2] [--rounds N] [--ms N] [--keep-denormals]

infer gives y of all elements; train is forward, gradients and SGD of the mean of the squares of the last element.
Without --case a choice is measured that takes a few minutes; with it, whatever matches of widths 32 to 1024, batches of
1 to 128 and 20 to 1,000 elements. Every side begins with the same weights; y, or the losses after the first step and
after 5 more, are compared.

Gradients of the first of many elements are denormal numbers, with which processors are slow. JAX takes zeros in their
place, always; so all sides are told to. With --keep-denormals deepc and PyTorch are as they come.
"""
import os
import re
import sys

import frame
import training

GATES = {"LSTM": 4, "GRU": 3}
WIDTHS, BATCHES, LENGTHS = (32, 64, 128, 256, 512, 1024), (1, 16, 64, 128), (20, 100, 200, 1000)
FEW = {("LSTM", 64, 16, 200), ("GRU", 64, 16, 200), ("LSTM", 32, 1, 1000), ("LSTM", 128, 1, 100), ("GRU", 128, 64, 100),
       ("LSTM", 512, 16, 20), ("GRU", 1024, 1, 20)}


def case(rule, kind, width, batch, length):
    flops = 2 * (5 if rule == "train" else 2) * length * batch * width * width * GATES[kind]
    return frame.Case(f"{kind} {rule} width {width} batch {batch} length {length}", flops=flops,
                      later=(5, 2e-2) if rule == "train" else None, kind=kind, rule=rule, inputs=width, width=width,
                      batch=batch, length=length, rate=1e-2)


ALL = [(kind, width, batch, length) for kind in GATES for width in WIDTHS for batch in BATCHES for length in LENGTHS]
CASES = [case(rule, *c) for c in ALL for rule in ("infer", "train")]


def few():
    """The pattern of the choice."""
    labels = [c.label for c in CASES if (c.kind, c.width, c.batch, c.length) in FEW]
    return f"^({'|'.join(labels)}),"


def inputs(c, rng):
    import numpy as np
    bound, all_gates = c.width ** -0.5, GATES[c.kind] * c.width

    def uniform(*sizes):
        return rng.uniform(-bound, bound, sizes).astype(np.float32)

    return {"x": rng.standard_normal((c.length, c.batch, c.inputs)).astype(np.float32),
            "weight_ih": uniform(c.inputs, all_gates), "weight_hh": uniform(c.width, all_gates),
            "bias_ih": uniform(all_gates), "bias_hh": uniform(all_gates)}


def torch_side(c, inputs):
    import torch
    torch.set_flush_denormal(os.environ.get("DEEPC_MATH") == "ftz")
    net = getattr(torch.nn, c.kind)(c.inputs, c.width)
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        value = torch.from_numpy(inputs[name])
        getattr(net, name + "_l0").data.copy_(value.t() if value.dim() == 2 else value)
    x = torch.from_numpy(inputs["x"])
    if c.rule == "train":
        opt = torch.optim.SGD(net.parameters(), lr=c.rate)
        return training.torch_training(net, opt, lambda x, _: net(x)[0][-1].square().mean(), x, None)

    def run(n):
        with torch.inference_mode():
            for _ in range(n):
                y = net(x)[0]
        return {"y": y}

    return run


def jax_net(kind):
    import jax
    import jax.numpy as jnp

    def lstm(state, added, params):
        h, c = state
        i, f, g, o = jnp.split(added + h @ params["weight_hh"], 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    def gru(h, added, params):
        r, z, n = jnp.split(added, 3, axis=-1)
        hr, hz, hn = jnp.split(h @ params["weight_hh"] + params["bias_hh"], 3, axis=-1)
        r, z = jax.nn.sigmoid(r + hr), jax.nn.sigmoid(z + hz)
        h = z * h + (1 - z) * jnp.tanh(n + r * hn)
        return h, h

    def net(params, x):
        width = params["weight_hh"].shape[0]
        zeros = jnp.zeros((x.shape[1], width), x.dtype)
        added = x @ params["weight_ih"] + params["bias_ih"] + (params["bias_hh"] if kind == "LSTM" else 0)
        step, state = (lstm, (zeros, zeros)) if kind == "LSTM" else (gru, zeros)
        return jax.lax.scan(lambda s, a: step(s, a, params), state, added)[1]

    return net


def jax_side(c, inputs):
    import jax
    import jax.numpy as jnp
    params = {name: jnp.asarray(value) for name, value in inputs.items() if name != "x"}
    x, net = jnp.asarray(inputs["x"]), jax_net(c.kind)
    if c.rule == "train":
        return training.jax_training("sgd", c.rate, lambda p, x, _: jnp.mean(net(p, x)[-1] ** 2), params, x, 0)
    infer = jax.jit(net)

    def run(n):
        for _ in range(n):
            y = infer(params, x)
        return {"y": jax.block_until_ready(y)}

    return run


if __name__ == "__main__":
    if not any(re.match("--(case|side)(=|$)", a) for a in sys.argv):
        sys.argv += ["--case", few()]
    if "--side" not in sys.argv:
        keep = "--keep-denormals" in sys.argv
        sys.argv = [a for a in sys.argv if a != "--keep-denormals"]
        os.environ["DEEPC_MATH"] = "" if keep else "ftz"
        print("denormal numbers:", "as each side comes" if keep else "zeros on all sides")
    frame.main("rnn", CASES, inputs, {"torch eager": torch_side, "jax.jit scan": jax_side}, tolerance=1e-4,
               threads="1,2")
