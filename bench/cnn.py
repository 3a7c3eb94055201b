"""One training step of convolutional networks on 64 images of 28x28: forward, gradients, update.

    scripts/bench cnn [--case PATTERN] [--peer PATTERN] [--threads 1,2] [--rounds N] [--ms N]

Every side begins with the same weights. Losses are compared after the first step and after 10 more.
PyTorch is asked twice, with channels second and with channels last; JAX has them last, where its
convolutions are faster.
"""
import frame
import training

BATCH = 64
RATE = {"adam": 1e-3, "sgd": 1e-2}


def conv(inputs, outputs, window, padding):
    return {"kind": "conv", "inputs": inputs, "outputs": outputs, "window": window, "padding": padding}


def linear(inputs, outputs):
    return {"kind": "linear", "inputs": inputs, "outputs": outputs}


def block(inputs, outputs):
    return [conv(inputs, outputs, 3, 1), RELU]


RELU, POOL, FLATTEN = {"kind": "relu"}, {"kind": "pool"}, {"kind": "flatten"}
NETS = {
    "lenet": [conv(1, 6, 5, 2), RELU, POOL, conv(6, 16, 5, 0), RELU, POOL, FLATTEN,
              linear(400, 120), RELU, linear(120, 84), RELU, linear(84, 10)],
    "8 layers": block(1, 32) + block(32, 32) + [POOL] + block(32, 64) + block(64, 64) + [POOL] +
                block(64, 128) + block(128, 128) + [FLATTEN, linear(6272, 128), RELU, linear(128, 10)],
}


def flops(layers):
    """Of the products: forward, and twice that for gradients but for that of the images."""
    total, first, side = 0, None, 28
    for layer in layers:
        if layer["kind"] == "conv":
            side += 2 * layer["padding"] - layer["window"] + 1
            own = layer["inputs"] * layer["outputs"] * layer["window"] ** 2 * side ** 2
        elif layer["kind"] == "linear":
            own = layer["inputs"] * layer["outputs"]
        else:
            side //= 2 if layer["kind"] == "pool" else 1
            continue
        first = first or own
        total += own
    return 2 * BATCH * (3 * total - first)


CASES = [frame.Case(f"{rule} {name}", flops=flops(layers), later=(10, 2e-2), layers=layers, batch=BATCH,
                    rule=rule, rate=RATE[rule])
         for rule in ("adam", "sgd") for name, layers in NETS.items()]


def inputs(c, rng):
    import numpy as np
    found = {"x": rng.integers(0, 256, (c.batch, 28, 28), dtype=np.uint8),
             "y": rng.integers(0, 10, (c.batch,), dtype=np.int32)}
    for i, layer in enumerate(c.layers):
        if "inputs" not in layer:
            continue
        a, b, k = layer["inputs"], layer["outputs"], layer.get("window")
        shape, terms = ((a, b), a) if k is None else ((b, a, k, k), a * k * k)
        found[f"w{i}"] = rng.uniform(-terms ** -0.5, terms ** -0.5, shape).astype(np.float32)
        found[f"b{i}"] = rng.uniform(-terms ** -0.5, terms ** -0.5, (b,)).astype(np.float32)
    return found


def torch_net(c, inputs):
    import torch
    layers = []
    for i, layer in enumerate(c.layers):
        kind = layer["kind"]
        if kind == "conv":
            made = torch.nn.Conv2d(layer["inputs"], layer["outputs"], layer["window"], padding=layer["padding"])
            made.weight.data = torch.from_numpy(inputs[f"w{i}"]).clone()
            made.bias.data = torch.from_numpy(inputs[f"b{i}"]).clone()
        elif kind == "linear":
            made = torch.nn.Linear(layer["inputs"], layer["outputs"])
            made.weight.data = torch.from_numpy(inputs[f"w{i}"]).t().contiguous()
            made.bias.data = torch.from_numpy(inputs[f"b{i}"]).clone()
        else:
            made = {"relu": torch.nn.ReLU, "flatten": torch.nn.Flatten,
                    "pool": lambda: torch.nn.MaxPool2d(2)}[kind]()
        layers.append(made)
    return torch.nn.Sequential(*layers)


def torch_side(c, inputs, compiled=False, last=False):
    import torch
    torch._dynamo.reset()
    net = torch_net(c, inputs)
    if last:
        net = net.to(memory_format=torch.channels_last)
    rule = torch.optim.Adam if c.rule == "adam" else torch.optim.SGD
    opt = rule(net.parameters(), lr=c.rate)
    x, y = torch.from_numpy(inputs["x"]), torch.from_numpy(inputs["y"]).long()

    def loss_of(x, y):
        return torch.nn.functional.cross_entropy(net(x.float().unsqueeze(1) / 255), y)

    return training.torch_training(net, opt, loss_of, x, y, compiled)


def torch_last(c, inputs):
    return torch_side(c, inputs, last=True)


def torch_compile(c, inputs):
    return torch_side(c, inputs, compiled=True)


def torch_compile_last(c, inputs):
    return torch_side(c, inputs, compiled=True, last=True)


def jax_side(c, inputs):
    import jax
    import jax.numpy as jnp
    params = {}
    for i, layer in enumerate(c.layers):
        if "inputs" in layer:
            w = inputs[f"w{i}"]
            params[f"w{i}"] = jnp.asarray(w.transpose(2, 3, 1, 0) if w.ndim == 4 else w)
            params[f"b{i}"] = jnp.asarray(inputs[f"b{i}"])
    x, y = jnp.asarray(inputs["x"]), jnp.asarray(inputs["y"])

    def forward(params, x):
        h = x[..., None].astype(jnp.float32) / 255
        for i, layer in enumerate(c.layers):
            kind = layer["kind"]
            if kind == "conv":
                h = jax.lax.conv_general_dilated(h, params[f"w{i}"], (1, 1), [(layer["padding"],) * 2] * 2,
                                                 dimension_numbers=("NHWC", "HWIO", "NHWC"))
                h = h + params[f"b{i}"]
            elif kind == "linear":
                h = h @ params[f"w{i}"] + params[f"b{i}"]
            elif kind == "relu":
                h = jax.nn.relu(h)
            elif kind == "pool":
                h = jax.lax.reduce_window(h, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
            else:  # as the others flatten: channels first
                h = h.transpose(0, 3, 1, 2).reshape(h.shape[0], -1)
        return h

    def loss_of(params, x, y):
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(forward(params, x)), y[:, None], 1))

    return training.jax_training(c.rule, c.rate, loss_of, params, x, y)


PEERS = {"torch eager": torch_side, "torch eager nhwc": torch_last, "torch.compile": torch_compile,
         "torch.compile nhwc": torch_compile_last, "jax.jit": jax_side}

if __name__ == "__main__":
    frame.main("cnn", CASES, inputs, PEERS, tolerance=1e-4, threads="1,2")
