"""Training steps that JAX exports as StableHLO bytecode: deepc runs the file, JAX the function that it is of.

    scripts/bench stablehlo [--case PATTERN] [--threads 1,2] [--rounds N] [--ms N]

Nothing is changed in the programs: parameters are arguments, new ones results, which go into the next step. Files lie in the
folder for temporary ones.
"""
import os
import tempfile

import frame

FOLDER = os.path.join(tempfile.gettempdir(), f"deepc-bench-stablehlo-{os.getuid()}")
LINES = ("mlp", "cnn", "transformer", "lstm")
CASES = [frame.Case(f"{line} training step", line=line, program=os.path.join(FOLDER, line + ".mlirbc")) for line in LINES]
SHAPES = {
    "mlp": {"x": (64, 784), "p": [(784, 256), (256,), (256, 256), (256,), (256, 10), (10,)]},
    "cnn": {"x": (32, 28, 28, 1), "p": [(3, 3, 1, 16), (16,), (3, 3, 16, 32), (32,), (7 * 7 * 32, 10), (10,)]},
    "transformer": {"x": (8, 64, 128), "p": [(128, 384), (128, 128), (128, 512), (512, 128), (128,), (128,), (128, 10)]},
    "lstm": {"x": (16, 50, 64), "p": [(64, 512), (128, 512), (512,), (128, 10)]},
}


def mlp(p, x):
    import jax
    h = jax.nn.relu(x @ p[0] + p[1])
    h = jax.nn.relu(h @ p[2] + p[3])
    return h @ p[4] + p[5]


def cnn(p, x):
    import jax
    import jax.numpy as jnp

    def block(x, w, b):
        y = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return jax.lax.reduce_window(jax.nn.relu(y + b), -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    h = block(block(x, p[0], p[1]), p[2], p[3])
    return h.reshape(len(h), -1) @ p[4] + p[5]


def norm(x, g):
    import jax.numpy as jnp
    off = x - x.mean(-1, keepdims=True)
    return off / jnp.sqrt((off * off).mean(-1, keepdims=True) + 1e-5) * g


def transformer(p, x):
    import jax
    import jax.numpy as jnp
    b, t, d = x.shape
    q, k, v = jnp.split(norm(x, p[4]) @ p[0], 3, -1)
    q, k, v = (a.reshape(b, t, 4, d // 4).transpose(0, 2, 1, 3) for a in (q, k, v))
    scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), q @ k.swapaxes(-1, -2) / (d // 4) ** 0.5, -1e9)
    x = x + (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(b, t, d) @ p[1]
    x = x + jax.nn.gelu(norm(x, p[5]) @ p[2]) @ p[3]
    return x.mean(1) @ p[6]


def lstm(p, x):
    import jax
    import jax.numpy as jnp

    def body(c, v):
        h, s = c
        i, f, g, o = jnp.split(v @ p[0] + h @ p[1] + p[2], 4, -1)
        s = jax.nn.sigmoid(f) * s + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(s)
        return (h, s), None
    zero = jnp.zeros((x.shape[0], 128))
    (h, _), _ = jax.lax.scan(body, (zero, zero), x.swapaxes(0, 1))
    return h @ p[3]


def step_of(c):
    import jax
    import jax.numpy as jnp
    network = globals()[c.line]

    def loss_of(p, x, y):
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(network(p, x)) * y, -1))

    def step(p, x, y):
        loss, g = jax.value_and_grad(loss_of)(p, x, y)
        return [loss] + [a - 0.01 * b for a, b in zip(p, g)]
    return step


def arguments(c, inputs):
    return [inputs[f"p{i}"] for i in range(len(SHAPES[c.line]["p"]))], inputs["x"], inputs["y"]


def inputs(c, rng):
    import jax
    import jax.export
    import numpy as np
    shapes = SHAPES[c.line]
    out = {"x": rng.standard_normal(shapes["x"], dtype=np.float32)}
    out["y"] = np.eye(10, dtype=np.float32)[rng.integers(0, 10, shapes["x"][0])]
    for i, shape in enumerate(shapes["p"]):
        scale = (np.prod(shape[:-1]) or 1) ** -0.5
        out[f"p{i}"] = rng.standard_normal(shape, dtype=np.float32) * np.float32(scale)
    os.makedirs(FOLDER, exist_ok=True)
    jax.config.update("jax_platforms", "cpu")
    exported = jax.export.export(jax.jit(step_of(c)))(*arguments(c, out))
    with open(c.program, "wb") as f:
        f.write(exported.mlir_module_serialized)
    return out


def jax_side(c, inputs):
    import jax
    import jax.numpy as jnp
    step = jax.jit(step_of(c), donate_argnums=0)
    first, x, y = arguments(c, {name: jnp.asarray(a) for name, a in inputs.items()})

    def run(n):
        p = [jnp.array(a) for a in first]
        for _ in range(n):
            loss, *p = step(p, x, y)
        loss.block_until_ready()
        return {"loss": loss}

    return run


if __name__ == "__main__":
    frame.main("stablehlo", CASES, inputs, {"jax": jax_side}, tolerance=1e-3)
