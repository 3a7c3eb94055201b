"""Two processes of one machine: data-parallel training steps with Adam, and sums alone.

    scripts/bench processes [--case PATTERN] [--peer PATTERN] [--ranks N] [--rounds N] [--ms N]

Each rank has one thread on a core of its own (rank r on core r), the same sizes on all. Peers: PyTorch's
DistributedDataParallel over gloo, eager and with torch.compile, and JAX's own multi-process CPU backend over gloo. Programs
run one after the other, in turns: each round starts the ranks of each, warms up, and takes the median of five parts; shown is
the median of the rounds. A time is that of the slowest rank and ends when its last step has. The rate is 1e-6: all steps have the same batch, whose
gradients would be denormal numbers when it is learnt.
"""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))

# name, kind, sizes: mlp width, layers, batch; gpt width, blocks, batch, time; reduce elements
CASES = [
    ("mlp 784-128-128-10, batch 64", "mlp", (128, 2, 64, 0)),
    ("mlp 784-1024x3-10, batch 64", "mlp", (1024, 3, 64, 0)),
    ("2 GPT blocks of 256, 2 x 64", "gpt", (256, 2, 2, 64)),
    ("4 GPT blocks of 384, 4 x 128", "gpt", (384, 4, 4, 128)),
    ("all_reduce of 4 KiB", "reduce", (1024, 0, 0, 0)),
    ("all_reduce of 1 MiB", "reduce", (1 << 18, 0, 0, 0)),
    ("all_reduce of 64 MiB", "reduce", (1 << 24, 0, 0, 0)),
]

TORCH = '''
import sys, time, torch, torch.distributed as dist
import torch.nn as nn, torch.nn.functional as F
rank, size, store, kind, a, b, c, d, ms, compiled = sys.argv[1:]
rank, size, a, b, c, d, ms = map(int, (rank, size, a, b, c, d, ms))
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=size)
torch.manual_seed(1)

class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
    def forward(self, x):
        b, t, w = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, w))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x)), approximate="tanh"))

if kind == "reduce":
    x = torch.zeros(a)
    def run(n):
        for _ in range(n):
            dist.all_reduce(x)
else:
    if kind == "mlp":
        layers = [nn.Linear(784, a), nn.ReLU()]
        for _ in range(b - 1):
            layers += [nn.Linear(a, a), nn.ReLU()]
        net = nn.Sequential(*layers, nn.Linear(a, 10))
        x, y = torch.randn(c, 784), torch.randint(0, 10, (c,))
        lossf = F.cross_entropy
    else:
        net = nn.Sequential(*[Block(a, a // 32) for _ in range(b)])
        x, y = torch.randn(c, d, a), torch.randn(c, d, a)
        lossf = F.mse_loss
    if compiled == "1":
        net = torch.compile(net)
    net = nn.parallel.DistributedDataParallel(net, gradient_as_bucket_view=True)
    opt = torch.optim.Adam(net.parameters(), lr=1e-6, fused=True)
    def run(n):
        for _ in range(n):
            opt.zero_grad()
            loss = lossf(net(x), y)
            loss.backward()
            opt.step()
        assert loss.item() == loss.item()

def timed(n):
    dist.barrier()
    begun = time.perf_counter()
    run(n)
    t = torch.tensor([time.perf_counter() - begun], dtype=torch.float64)
    dist.all_reduce(t, op=dist.ReduceOp.MAX)
    return t.item()
timed(10)
n = max(1, int(ms / 1000 / (timed(5) / 5)))
parts = sorted(timed(n) / n * 1000 for _ in range(5))
if rank == 0:
    print("%.6f" % parts[2])
dist.destroy_process_group()
'''

JAX = '''
import os, sys, time
rank, size, store, kind, a, b, c, d, ms = sys.argv[1:]
rank, size, a, b, c, d, ms = map(int, (rank, size, a, b, c, d, ms))
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
import numpy as np, jax, jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(open(store).read(), size, rank)
mesh = Mesh(np.array(jax.devices()), ("data",))
split, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
key = jax.random.PRNGKey(1)
rng = np.random.default_rng(1)

def put(x, s):
    return jax.make_array_from_process_local_data(s, x)

def linear(i, o):
    return (rng.uniform(-i ** -0.5, i ** -0.5, (i, o)).astype(np.float32), np.zeros(o, np.float32))

def norm(x, p):
    m = x.mean(-1, keepdims=True)
    v = ((x - m) ** 2).mean(-1, keepdims=True)
    return (x - m) * jax.lax.rsqrt(v + 1e-5) * p[0] + p[1]

def block(p, x):
    bt, t, w = x.shape
    h = w // 32
    q, k, v = jnp.moveaxis((norm(x, p["n1"]) @ p["qkv"][0] + p["qkv"][1]).reshape(bt, t, 3, h, 32), 2, 0)
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k) * 32 ** -0.5
    s = jnp.where(jnp.tril(jnp.ones((t, t), bool)), s, -jnp.inf)
    y = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s), v).reshape(bt, t, w)
    x = x + y @ p["proj"][0] + p["proj"][1]
    return x + jax.nn.gelu(norm(x, p["n2"]) @ p["fc1"][0] + p["fc1"][1]) @ p["fc2"][0] + p["fc2"][1]

if kind == "reduce":
    x = put(np.ones((1, a), np.float32), split)
    f = jax.jit(jax.shard_map(lambda x: jax.lax.psum(x, "data"), mesh=mesh, in_specs=P("data"), out_specs=P()))
    def run(n):
        for _ in range(n):
            y = f(x)
        y.block_until_ready()
else:
    if kind == "mlp":
        sizes = [784] + [a] * b + [10]
        params = [linear(i, o) for i, o in zip(sizes, sizes[1:])]
        x, y = rng.standard_normal((c, 784)).astype(np.float32), rng.integers(0, 10, c).astype(np.int32)
        def loss(p, x, y):
            for w, v in p[:-1]:
                x = jax.nn.relu(x @ w + v)
            x = x @ p[-1][0] + p[-1][1]
            return -jnp.take_along_axis(jax.nn.log_softmax(x), y[:, None], 1).mean()
    else:
        one = lambda: (np.ones(a, np.float32), np.zeros(a, np.float32))
        params = [{"n1": one(), "n2": one(), "qkv": linear(a, 3 * a), "proj": linear(a, a), "fc1": linear(a, 4 * a),
                   "fc2": linear(4 * a, a)} for _ in range(b)]
        x, y = (rng.standard_normal((c, d, a)).astype(np.float32) for _ in range(2))
        def loss(p, x, y):
            for q in p:
                x = block(q, x)
            return ((x - y) ** 2).mean()
    tree = jax.tree_util
    params = tree.tree_map(lambda v: put(v, whole), params)
    state = (params, tree.tree_map(jnp.zeros_like, params), tree.tree_map(jnp.zeros_like, params),
             jnp.zeros((), jnp.float32))
    x, y = put(x, split), put(y, split)
    @jax.jit
    def step(state, x, y):
        p, m, v, t = state
        l, g = jax.value_and_grad(loss)(p, x, y)
        t = t + 1
        m = tree.tree_map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = tree.tree_map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        p = tree.tree_map(lambda p, m, v: p - 1e-6 * m / (1 - 0.9 ** t) / (jnp.sqrt(v / (1 - 0.999 ** t)) + 1e-8), p, m, v)
        return (p, m, v, t), l
    step = jax.jit(step, donate_argnums=0)
    def run(n):
        global state
        for _ in range(n):
            state, l = step(state, x, y)
        assert float(l) == float(l)

from jax.experimental import multihost_utils
def timed(n):
    multihost_utils.sync_global_devices("t")
    begun = time.perf_counter()
    run(n)
    return float(multihost_utils.process_allgather(np.float32(time.perf_counter() - begun)).max())
timed(10)
n = max(1, int(ms / 1000 / (timed(5) / 5)))
parts = sorted(timed(n) / n * 1000 for _ in range(5))
if rank == 0:
    print("%.6f" % parts[2])
'''


def answer(outputs, what):
    for text, error, code in outputs:
        if code != 0:
            raise RuntimeError(f"{what}: {error.strip()[-600:]}")
    return float(re.findall(r"[0-9.]+", outputs[0][0])[-1])


def deepc(kind, sizes, options):
    mpi = shutil.which("mpirun.mpich") or shutil.which("mpirun")
    command = [mpi, "-n", str(options.ranks), "sh", "-c",
               'exec taskset -c "$(( ${PMI_RANK:-${OMPI_COMM_WORLD_RANK:-0}} % $(nproc) ))" "$0" "$@"', os.environ["DEEPC"],
               f"{HERE}/processes.lua", kind, *map(str, sizes), str(options.ms)]
    env = {**os.environ, "DEEPC_THREADS": "1", "DEEPC_RANK_PREFIX": "off"}
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    return answer([(done.stdout, done.stderr, done.returncode)], "deepc")


def port():
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def python(code, needs_address, *more):
    def measure(kind, sizes, options):
        with tempfile.TemporaryDirectory() as folder:
            program, store = f"{folder}/peer.py", f"{folder}/store"
            with open(program, "w") as file:
                file.write(textwrap.dedent(code))
            if needs_address:
                with open(store, "w") as file:
                    file.write(f"127.0.0.1:{port()}")
            env = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
            ranks = [subprocess.Popen(["taskset", "-c", str(r % os.cpu_count()), sys.executable, program, str(r),
                                       str(options.ranks), store, kind, *map(str, sizes), str(options.ms), *more], env=env,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                     for r in range(options.ranks)]
            outputs = [(*p.communicate(), p.returncode) for p in ranks]
        return answer(outputs, "peer")
    return measure


COMPILED = "torch.compile, DDP (gloo)"
PEERS = {"PyTorch DDP (gloo)": python(TORCH, False, "0"), COMPILED: python(TORCH, False, "1"), "JAX (gloo)": python(JAX, True)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--case", default=".")
    parser.add_argument("--peer", default=".")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ms", type=int, default=400, help="of each of the five parts of a round")
    options = parser.parse_args()
    below = 0
    for name, kind, sizes in CASES:
        if not re.search(options.case, name):
            continue
        peers = {who: f for who, f in PEERS.items()
                 if re.search(options.peer, who) and not (kind == "reduce" and who == COMPILED)}
        times = {}
        for _ in range(options.rounds):
            for who, f in {"deepc": deepc, **peers}.items():
                try:
                    times.setdefault(who, []).append(f(kind, sizes, options))
                except RuntimeError as error:
                    print(f"  {who}: MISSING: {error}", file=sys.stderr)
        if "deepc" not in times:
            print(f"{name}, {options.ranks} ranks: deepc MISSING")
            below += 1
            continue
        ours = statistics.median(times["deepc"])
        for who in peers:
            if who not in times:
                print(f"{name}, {options.ranks} ranks: {who} MISSING")
                below += 1
                continue
            theirs = statistics.median(times[who])
            below += theirs < ours
            print(f"{name}, {options.ranks} ranks: deepc {ours:.3f} ms, {who} {theirs:.3f} ms, ratio {theirs / ours:.2f}",
                  flush=True)
    print(f"processes: {below} lines below 1 or missing")
    return 0


if __name__ == "__main__":
    sys.exit(main())
