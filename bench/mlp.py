"""One training step of a multilayer perceptron on bytes of images: forward, gradients, update.

    scripts/bench mlp [--case PATTERN] [--peer PATTERN] [--threads 1,2] [--rounds N] [--ms N]

Every side begins with the same weights. Losses are compared after the first step and after 5 more. The
yardstick is the step written by hand in C (mlp_blas.c) over OpenBLAS, told which core it runs on.
"""
import ctypes
import os
import subprocess
import tempfile

import frame
import matmul
import training

NETS = [((784, 128, 64, 10), 64), ((784, 128, 64, 10), 1), ((784, 128, 64, 10), 8),
        ((784, 128, 64, 10), 512), ((784, 784, 128, 10), 64), ((784, 512, 512, 10), 128)]
RATE = {"adam": 1e-3, "sgd": 1e-2}


def flops(sizes, batch):
    pairs = list(zip(sizes, sizes[1:]))
    return 2 * batch * (3 * sum(a * b for a, b in pairs) - pairs[0][0] * pairs[0][1])


def case(rule, sizes, batch):
    return frame.Case(f"{rule} {'-'.join(map(str, sizes))} batch {batch}", flops=flops(sizes, batch),
                      later=(5, 2e-2), sizes=list(sizes), batch=batch, rule=rule, rate=RATE[rule])


CASES = [case(rule, sizes, batch) for rule in ("adam", "sgd") for sizes, batch in NETS]


def inputs(c, rng):
    import numpy as np
    found = {"x": rng.integers(0, 256, (c.batch, 28, 28), dtype=np.uint8),
             "y": rng.integers(0, 10, (c.batch,), dtype=np.int32)}
    for i, (a, b) in enumerate(zip(c.sizes, c.sizes[1:])):
        found[f"w{i}"] = rng.uniform(-a ** -0.5, a ** -0.5, (a, b)).astype(np.float32)
        found[f"b{i}"] = rng.uniform(-a ** -0.5, a ** -0.5, (b,)).astype(np.float32)
    return found


def torch_net(c, inputs):
    import torch
    layers = [torch.nn.Flatten()]
    for i, (a, b) in enumerate(zip(c.sizes, c.sizes[1:])):
        layer = torch.nn.Linear(a, b)
        layer.weight.data = torch.from_numpy(inputs[f"w{i}"]).t().contiguous()
        layer.bias.data = torch.from_numpy(inputs[f"b{i}"]).clone()
        layers += [layer, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def torch_side(c, inputs, compiled=False, fused=None):
    import torch
    torch._dynamo.reset()
    net = torch_net(c, inputs)
    rule = torch.optim.Adam if c.rule == "adam" else torch.optim.SGD
    opt = rule(net.parameters(), lr=c.rate, fused=fused)
    x, y = torch.from_numpy(inputs["x"]), torch.from_numpy(inputs["y"]).long()

    def loss_of(x, y):
        return torch.nn.functional.cross_entropy(net(x.float() / 255), y)

    return training.torch_training(net, opt, loss_of, x, y, compiled)


def torch_fused(c, inputs):
    return torch_side(c, inputs, fused=True)


def torch_compile(c, inputs):
    return torch_side(c, inputs, compiled=True)


def jax_side(c, inputs):
    import jax
    import jax.numpy as jnp
    layers = len(c.sizes) - 1
    params = [jnp.asarray(inputs[f"{p}{i}"]) for i in range(layers) for p in "wb"]
    x, y = jnp.asarray(inputs["x"]), jnp.asarray(inputs["y"])

    def loss_of(params, x, y):
        h = x.reshape(x.shape[0], -1).astype(jnp.float32) / 255
        for i in range(layers):
            h = h @ params[2 * i] + params[2 * i + 1]
            if i < layers - 1:
                h = jax.nn.relu(h)
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(h), y[:, None], 1))

    return training.jax_training(c.rule, c.rate, loss_of, params, x, y)


def tinygrad_side(c, inputs):
    from tinygrad import Tensor, nn
    layers = len(c.sizes) - 1
    params = [Tensor(inputs[f"{p}{i}"]).contiguous().realize() for i in range(layers) for p in "wb"]
    for p in params:
        p.requires_grad = True
    opt = nn.optim.Adam(params, lr=c.rate) if c.rule == "adam" else nn.optim.SGD(params, lr=c.rate)
    x, y = Tensor(inputs["x"]).realize(), Tensor(inputs["y"]).realize()

    def loss_of(x, y):
        h = x.flatten(1).float() / 255
        for i in range(layers):
            h = h @ params[2 * i] + params[2 * i + 1]
            if i < layers - 1:
                h = h.relu()
        return h.sparse_categorical_crossentropy(y)

    return training.tinygrad_training(opt, loss_of, x, y)


def by_hand(c, inputs):
    os.environ["OMP_WAIT_POLICY"] = "passive"  # or its threads and OpenBLAS's spin against each other
    with tempfile.TemporaryDirectory(prefix="deepc-bench-") as folder:
        subprocess.run([os.environ.get("CC", "cc"), "-O3", "-march=native", "-fno-math-errno", "-fopenmp", "-shared",
                        "-fPIC", os.path.join(frame.HERE, "mlp_blas.c"), "-lm", "-o", folder + "/mlp.so"],
                       check=True)
        lib = ctypes.CDLL(folder + "/mlp.so")
    lib.mlp_new.restype, lib.mlp_run.restype = ctypes.c_void_p, ctypes.c_float
    layers = len(c.sizes) - 1
    weights = [inputs[f"{p}{i}"] for i in range(layers) for p in "wb"]
    net = lib.mlp_new(layers, (ctypes.c_int * (layers + 1))(*c.sizes), c.batch, c.rule == "adam",
                      ctypes.c_float(c.rate), ctypes.cast(matmul.openblas_gemm(), ctypes.c_void_p),
                      ctypes.c_void_p(inputs["x"].ctypes.data), ctypes.c_void_p(inputs["y"].ctypes.data),
                      (ctypes.c_void_p * (2 * layers))(*[w.ctypes.data for w in weights]))
    return lambda n: {"loss": lib.mlp_run(ctypes.c_void_p(net), ctypes.c_long(n))}


PEERS = {"torch eager": torch_side, "torch eager fused": torch_fused, "torch.compile": torch_compile,
         "jax.jit": jax_side, "tinygrad": tinygrad_side, "C over OpenBLAS": by_hand}

if __name__ == "__main__":
    matmul.tell_openblas()
    frame.main("mlp", CASES, inputs, PEERS, tolerance=1e-4, threads="1,2", yardsticks=("C over OpenBLAS",))
