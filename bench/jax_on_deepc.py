"""Ten programs of JAX, with flax and optax, on deepc (extras/pjrt) and on XLA's CPU: the same script, JAX_PLATFORMS apart.

    DEEPC_PEERS=venv scripts/bench jax_on_deepc [--case PATTERN] [--threads 1,2] [--rounds N] [--ms N]

The virtual environment has jax, flax and optax; DEEPC_PJRT names the library, build/release/libdeepc_pjrt.so without it, which is
loaded without the package jax-deepc where that is missing. Each side is a process that lives as long as the benchmark. The losses of
50 steps are compared first; then rounds of steps are timed in alternating order, and the medians make the ratio, steps per
second of deepc by those of XLA.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
STEPS = 50
TOLERANCE = 1e-4  # of the largest loss


# ---- the programs: each gives step(state, batch) -> (state, loss), the first state and a batch by number ------------------

def trainer(loss, params, optimizer):
    import jax
    import optax

    def step(state, batch):
        params, opt = state
        value, grads = jax.value_and_grad(loss)(params, batch)
        updates, opt = optimizer.update(grads, opt, params)
        return (optax.apply_updates(params, updates), opt), value
    return step, (params, optimizer.init(params))


def cross_entropy(logits, labels):
    import optax
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def mlp(rng, nn, jax, jnp, optax, random):
    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.relu(nn.Dense(256)(x))
            x = nn.relu(nn.Dense(256)(x))
            return nn.Dense(10)(x)
    net = Net()
    x, y = rng.normal(size=(8, 64, 784)).astype("f4"), rng.integers(0, 10, (8, 64))
    step, state = trainer(lambda p, b: cross_entropy(net.apply(p, b[0]), b[1]), net.init(random.key(0), x[0]), optax.adam(1e-3))
    return step, state, lambda i: (x[i % 8], y[i % 8])


def cnn(rng, nn, jax, jnp, optax, random):
    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.avg_pool(nn.relu(nn.Conv(32, (3, 3))(x)), (2, 2), (2, 2))
            x = nn.avg_pool(nn.relu(nn.Conv(64, (3, 3))(x)), (2, 2), (2, 2))
            return nn.Dense(10)(nn.relu(nn.Dense(256)(x.reshape(len(x), -1))))
    net = Net()
    x, y = rng.normal(size=(4, 32, 28, 28, 1)).astype("f4"), rng.integers(0, 10, (4, 32))
    step, state = trainer(lambda p, b: cross_entropy(net.apply(p, b[0]), b[1]), net.init(random.key(0), x[0]),
                          optax.sgd(0.01, momentum=0.9))
    return step, state, lambda i: (x[i % 4], y[i % 4])


def resnet(rng, nn, jax, jnp, optax, random):
    class Block(nn.Module):
        width: int
        stride: int = 1

        @nn.compact
        def __call__(self, x):
            s = (self.stride, self.stride)
            y = nn.relu(nn.BatchNorm(use_running_average=False)(nn.Conv(self.width, (3, 3), s, use_bias=False)(x)))
            y = nn.BatchNorm(use_running_average=False)(nn.Conv(self.width, (3, 3), use_bias=False)(y))
            if x.shape != y.shape:
                x = nn.BatchNorm(use_running_average=False)(nn.Conv(self.width, (1, 1), s, use_bias=False)(x))
            return nn.relu(x + y)

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.Conv(32, (3, 3), use_bias=False)(x)
            for width, stride in (32, 1), (64, 2), (128, 2):
                x = Block(width, stride)(x)
            return nn.Dense(10)(x.mean((1, 2)))
    net = Net()
    x, y = rng.normal(size=(4, 16, 32, 32, 3)).astype("f4"), rng.integers(0, 10, (4, 16))
    first = net.init(random.key(0), x[0])
    optimizer = optax.adamw(1e-3)

    def step(state, batch):
        params, stats, opt = state

        def loss(p):
            out, new = net.apply({"params": p, "batch_stats": stats}, batch[0], mutable=["batch_stats"])
            return cross_entropy(out, batch[1]), new["batch_stats"]
        (value, stats), grads = jax.value_and_grad(loss, has_aux=True)(params)
        updates, opt = optimizer.update(grads, opt, params)
        return (optax.apply_updates(params, updates), stats, opt), value
    return step, (first["params"], first["batch_stats"], optimizer.init(first["params"])), lambda i: (x[i % 4], y[i % 4])


def transformer(rng, nn, jax, jnp, optax, random):
    class Block(nn.Module):
        @nn.compact
        def __call__(self, x, mask):
            y = nn.LayerNorm()(x)
            x = x + nn.MultiHeadDotProductAttention(4)(y, y, mask=mask)
            y = nn.Dense(512)(nn.LayerNorm()(x))
            return x + nn.Dense(128)(nn.gelu(y))

    class Net(nn.Module):
        @nn.compact
        def __call__(self, t):
            x = nn.Embed(256, 128)(t) + nn.Embed(64, 128)(jnp.arange(t.shape[1]))
            mask = nn.make_causal_mask(t)
            for _ in range(2):
                x = Block()(x, mask)
            return nn.Dense(256)(nn.LayerNorm()(x))
    net = Net()
    t = rng.integers(0, 256, (4, 8, 65))
    step, state = trainer(lambda p, b: cross_entropy(net.apply(p, b[:, :-1]), b[:, 1:]), net.init(random.key(0), t[0, :, :-1]),
                          optax.adamw(1e-3))
    return step, state, lambda i: t[i % 4]


def lstm(rng, nn, jax, jnp, optax, random):
    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(10)(nn.RNN(nn.OptimizedLSTMCell(128))(x)[:, -1])
    net = Net()
    x, y = rng.normal(size=(4, 16, 50, 64)).astype("f4"), rng.integers(0, 10, (4, 16))
    step, state = trainer(lambda p, b: cross_entropy(net.apply(p, b[0]), b[1]), net.init(random.key(0), x[0]), optax.adam(1e-3))
    return step, state, lambda i: (x[i % 4], y[i % 4])


def vae(rng, nn, jax, jnp, optax, random):
    class Net(nn.Module):
        @nn.compact
        def __call__(self, x, key):
            h = nn.relu(nn.Dense(400)(x))
            mean, logvar = nn.Dense(20)(h), nn.Dense(20)(h)
            z = mean + jnp.exp(0.5 * logvar) * random.normal(key, mean.shape)
            return nn.Dense(784)(nn.relu(nn.Dense(400)(z))), mean, logvar
    net = Net()
    x = rng.uniform(size=(4, 64, 784)).astype("f4")

    def loss(p, batch):
        out, mean, logvar = net.apply(p, batch[0], random.key(batch[1]))
        kl = -0.5 * (1 + logvar - mean ** 2 - jnp.exp(logvar)).sum(-1)
        return (optax.sigmoid_binary_cross_entropy(out, batch[0]).sum(-1) + kl).mean()
    step, state = trainer(loss, net.init(random.key(0), x[0], random.key(1)), optax.adam(1e-3))
    return step, state, lambda i: (x[i % 4], i)


def dqn(rng, nn, jax, jnp, optax, random):
    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.relu(nn.Dense(128)(x))
            return nn.Dense(6)(nn.relu(nn.Dense(128)(x)))
    net, optimizer = Net(), optax.chain(optax.clip_by_global_norm(10.0), optax.adam(1e-3))
    s, s2 = rng.normal(size=(2, 8, 128, 16)).astype("f4")
    a, r, end = rng.integers(0, 6, (8, 128)), rng.normal(size=(8, 128)).astype("f4"), rng.integers(0, 2, (8, 128))
    params = net.init(random.key(0), s[0])

    def step(state, batch):
        params, target, opt = state
        s, a, r, s2, end = batch

        def loss(p):
            q = jnp.take_along_axis(net.apply(p, s), a[:, None], 1)[:, 0]
            best = jnp.argmax(net.apply(p, s2), -1)
            later = jnp.take_along_axis(net.apply(target, s2), best[:, None], 1)[:, 0]
            return optax.huber_loss(q, jax.lax.stop_gradient(r + 0.99 * (1 - end) * later)).mean()
        value, grads = jax.value_and_grad(loss)(params)
        updates, opt = optimizer.update(grads, opt, params)
        params = optax.apply_updates(params, updates)
        return (params, optax.incremental_update(params, target, 0.005), opt), value
    target = jax.tree.map(jnp.copy, params)
    return step, (params, target, optimizer.init(params)), lambda i: tuple(v[i % 8] for v in (s, a, r, s2, end))


def diffusion(rng, nn, jax, jnp, optax, random):
    class Net(nn.Module):
        @nn.compact
        def __call__(self, x, t):
            e = nn.Dense(32)(jnp.sin(t[:, None] * 2.0 ** jnp.arange(8)))
            h = nn.swish(nn.GroupNorm(8)(nn.Conv(32, (3, 3))(x))) + e[:, None, None]
            d = nn.swish(nn.GroupNorm(8)(nn.Conv(64, (3, 3), (2, 2))(h)))
            u = nn.swish(nn.GroupNorm(8)(nn.ConvTranspose(32, (3, 3), (2, 2))(d)))
            return nn.Conv(1, (3, 3))(jnp.concatenate([h, u], -1))
    net = Net()
    x = rng.normal(size=(4, 16, 16, 16, 1)).astype("f4")
    bars = jnp.cumprod(1 - jnp.linspace(1e-4, 0.02, 1000))

    def loss(p, batch):
        key, other = random.split(random.key(batch[1]))
        t = random.randint(key, (16,), 0, 1000)
        noise = random.normal(other, batch[0].shape)
        bar = bars[t][:, None, None, None]
        seen = jnp.sqrt(bar) * batch[0] + jnp.sqrt(1 - bar) * noise
        return ((net.apply(p, seen, t / 1000) - noise) ** 2).mean()
    step, state = trainer(loss, net.init(random.key(0), x[0], jnp.zeros(16)), optax.adam(1e-3))
    return step, state, lambda i: (x[i % 4], i)


def gnn(rng, nn, jax, jnp, optax, random):
    nodes, edges = 1000, 5000
    src, dst = jnp.asarray(rng.integers(0, nodes, (2, edges)))
    degree = jax.ops.segment_sum(jnp.ones(edges), dst, nodes) + 1

    class Layer(nn.Module):
        width: int

        @nn.compact
        def __call__(self, x):
            x = nn.Dense(self.width)(x)
            return (jax.ops.segment_sum(x[src], dst, nodes) + x) / degree[:, None]

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            return Layer(7)(nn.relu(Layer(64)(x)))
    net = Net()
    x, y = rng.normal(size=(nodes, 128)).astype("f4"), rng.integers(0, 7, nodes)
    step, state = trainer(lambda p, b: cross_entropy(net.apply(p, b[0]), b[1]), net.init(random.key(0), x), optax.adam(1e-2))
    x, y = jnp.asarray(x), jnp.asarray(y)
    return step, state, lambda i: (x, y)


def gp(rng, nn, jax, jnp, optax, random):
    x = rng.uniform(-3, 3, (200, 2)).astype("f4")
    y = (x[:, 0] * x[:, 1] + 0.1 * rng.normal(size=200)).astype("f4")

    def loss(p, batch):
        x, y = batch
        d = ((x[:, None] - x[None]) / jnp.exp(p["scale"])) ** 2
        k = jnp.exp(2 * p["height"]) * jnp.exp(-0.5 * d.sum(-1)) + (jnp.exp(2 * p["noise"]) + 1e-4) * jnp.eye(len(x))
        low = jnp.linalg.cholesky(k)
        z = jax.scipy.linalg.solve_triangular(low, y, lower=True)
        return 0.5 * z @ z / len(x) + jnp.log(jnp.diag(low)).mean()
    step, state = trainer(loss, {"scale": jnp.zeros(2), "height": jnp.zeros(()), "noise": jnp.zeros(())}, optax.adam(0.05))
    x, y = jnp.asarray(x), jnp.asarray(y)
    return step, state, lambda i: (x, y)


PROGRAMS = [mlp, cnn, resnet, transformer, lstm, vae, dqn, diffusion, gnn, gp]


# ---- a side: answers a line for each line ---------------------------------------------------------------------------------

class Side:
    def prepare(self, name):
        import flax.linen as nn
        import jax
        import jax.numpy as jnp
        import numpy as np
        import optax
        program = next(p for p in PROGRAMS if p.__name__ == name)
        step, self.state, self.batch = program(np.random.default_rng(0), nn, jax, jnp, optax, jax.random)
        self.step, self.done = jax.jit(step, donate_argnums=0), 0
        begun, losses = time.perf_counter(), []
        for _ in range(STEPS):
            losses.append(self.run(1))
            if len(losses) == 1:
                first = time.perf_counter() - begun
        return " ".join([f"{first:.4f}"] + [f"{float(v):.9g}" for v in losses])

    def run(self, n):
        loss = None
        for _ in range(n):
            self.state, loss = self.step(self.state, self.batch(self.done))
            self.done += 1
        return loss.block_until_ready()

    def time(self, n):
        begun = time.perf_counter()
        self.run(int(n))
        return repr(time.perf_counter() - begun)


def serve(cpus):
    os.sched_setaffinity(0, cpus)
    sys.path.append(os.path.join(os.path.dirname(HERE), "extras", "pjrt", "python"))  # JAX looks there, too
    side = Side()
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        word, _, rest = line.strip().partition(" ")
        try:
            print(getattr(side, word)(rest), file=out, flush=True)
        except Exception as e:  # the other side goes on
            print(f"error {type(e).__name__}: {e}".replace("\n", " ")[:300], file=out, flush=True)


class Child:
    def __init__(self, platform, threads, cpus):
        env = dict(os.environ, JAX_PLATFORMS=platform, DEEPC_THREADS=str(threads))
        env.setdefault("DEEPC_PJRT_LIBRARY", os.path.join(os.path.dirname(HERE), "build", "release", "libdeepc_pjrt.so"))
        self.process = subprocess.Popen([sys.executable, __file__, "--serve", ",".join(map(str, cpus))], env=env, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer or answer.startswith("error"):
            raise RuntimeError(answer or "the process ended")
        return answer


def measure(children, name, rounds, ms):
    losses, first = {}, {}
    for platform, child in children.items():
        first[platform], *losses[platform] = map(float, child.ask(f"prepare {name}").split())
    largest = max(map(abs, losses["cpu"]))
    off = max(abs(a - b) for a, b in zip(losses["cpu"], losses["deepc"])) / largest
    n = max(1, int(ms / 1000 / (float(children["cpu"].ask("time 20")) / 20)))
    times = {platform: [] for platform in children}
    for i in range(rounds):
        for platform in sorted(children, reverse=i % 2 == 1):
            times[platform].append(float(children[platform].ask(f"time {n}")) / n)
    cpu, deepc = (statistics.median(times[p]) for p in ("cpu", "deepc"))
    return off, cpu, deepc, first


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", default="")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--ms", type=float, default=200)
    parser.add_argument("--serve")
    args = parser.parse_args()
    if args.serve:
        return serve({int(c) for c in args.serve.split(",")})
    allowed, bad = sorted(os.sched_getaffinity(0)), False
    for threads in map(int, args.threads.split(",")):
        children = {p: Child(p, threads, allowed[:threads]) for p in ("cpu", "deepc")}
        ratios = []
        for program in PROGRAMS:
            name = program.__name__
            if not re.search(args.case, name):
                continue
            try:
                off, cpu, deepc, first = measure(children, name, args.rounds, args.ms)
            except RuntimeError as e:
                print(f"{name:12} {threads} threads   {e}", flush=True)
                bad = True
                continue
            ratios.append(cpu / deepc)
            bad = bad or off > TOLERANCE
            print(f"{name:12} {threads} threads   XLA {cpu * 1e3:8.3f} ms   deepc {deepc * 1e3:8.3f} ms   ratio {cpu / deepc:5.2f}   "
                  f"first step {first['cpu']:.2f} and {first['deepc']:.2f} s   losses {off:.1e}"
                  f"{' differ' if off > TOLERANCE else ''}", flush=True)
        if ratios:
            print(f"{threads} threads: median {statistics.median(ratios):.2f}, least {min(ratios):.2f}", flush=True)
    return bad


sys.exit(main())
