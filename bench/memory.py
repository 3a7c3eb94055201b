"""Kernels that memory decides, at 4096 x 4096 and 256 x 256: deepc beside PyTorch.

    scripts/bench memory [--rounds N] [--sizes 4096,256] [--only NAME,...] [--no-compile]
"""
import argparse
import ctypes
import math
import os
import platform
import random
import statistics
import subprocess
import tempfile
import time

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
F = torch.nn.functional
EPS = 1e-5


def hashed(shape, seed, k):
    mask = 0xFFFFFFFF
    i = torch.arange(math.prod(shape), dtype=torch.int64)
    h = (i * 2654435761 + (seed + k * 7919)) & mask
    h = ((h ^ (h >> 15)) * 2246822519) & mask
    h = ((h ^ (h >> 13)) * 3266489917) & mask
    h = h ^ (h >> 16)
    return ((h >> 8).to(torch.float32) * (1 / (1 << 23)) - 1).reshape(shape)


class Deepc:
    def __init__(self, n, seed):
        program = os.environ.get("DEEPC", os.path.join(HERE, "..", "build", "release", "deepc"))
        self.child = subprocess.Popen(
            [program, os.path.join(HERE, "memory.lua"), str(n), str(seed)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "DEEPC_THREADS": str(torch.get_num_threads())})

    def ask(self, line):
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()
        answer = self.child.stdout.readline()
        if not answer:
            raise SystemExit("deepc stopped")
        return answer

    def run(self, name, count):
        self.ask(f"run {name} {count}")

    def check(self, name):
        return [float(v) for v in self.ask(f"check {name}").split()]

    def close(self):
        self.child.stdin.close()
        self.child.wait()


class Torch:
    def __init__(self, n, seed, compiled):
        wrap = torch.compile(dynamic=False) if compiled else lambda f: f
        x, g = hashed((n, n), seed, 1), hashed((n, n), seed, 2)
        w, b = hashed((n, n), seed, 3)[0].clone(), hashed((n, n), seed, 4)[0].clone()
        rows = ((hashed((n, n), seed, 5)[0] + 1) * (n / 2)).to(torch.int64)
        self.param = torch.nn.Parameter(hashed((n, n), seed, 6))
        self.param.grad = g.clone()
        self.adam = torch.optim.Adam([self.param], lr=1e-3, fused=not compiled)
        lx = x.clone().requires_grad_()
        lw, lb = w.clone().requires_grad_(), b.clone().requires_grad_()

        def clear():
            lx.grad = lw.grad = lb.grad = None

        softmax = wrap(lambda x: F.softmax(x, 1))
        norm = wrap(lambda x, w, b: F.layer_norm(x, (n,), w, b, EPS))

        def softmax_grad():
            return torch.autograd.grad(softmax(lx), (lx,), g)

        def norm_grad():
            return torch.autograd.grad(norm(lx, lw, lb), (lx, lw, lb), g)

        step = wrap(self.adam.step)

        def adam():
            step()
            return (self.param.data,)

        gelu = wrap(lambda x: F.gelu(x * 1.1 + 0.1) * x)
        transpose = wrap(lambda x: x.t().contiguous())
        sum_rows = wrap(lambda x: x.sum(1))
        sum_columns = wrap(lambda x: x.sum(0))
        total = wrap(lambda x: x.sum())
        gather = wrap(lambda x, rows: x[rows])

        def plain(f, *args):
            def call():
                with torch.no_grad():
                    return (f(*args),)
            return call

        self.line = {
            "gelu": plain(gelu, x), "softmax": plain(softmax, x), "softmax_grad": softmax_grad,
            "norm": plain(norm, x, w, b), "norm_grad": norm_grad, "transpose": plain(transpose, x),
            "sum_rows": plain(sum_rows, x), "sum_columns": plain(sum_columns, x),
            "sum": plain(total, x), "gather": plain(gather, x, rows), "adam": adam,
        }

    def run(self, name, count):
        f = self.line[name]
        for _ in range(count):
            f()

    def check(self, name):
        out = []
        for t in self.line[name]():
            t = t.detach().reshape(-1)
            at = (torch.arange(64, dtype=torch.int64) * 2654435761 + 12345) % t.numel()
            out.append(t.double().sum().item())
            out += t[at].tolist()
        return out


class Yardstick:
    """The best copy and the best loop that only reads, on n x n numbers, from one or all threads."""

    def __init__(self, n):
        cc = os.environ.get("CC", "cc")
        self.folder = tempfile.TemporaryDirectory()
        path = os.path.join(self.folder.name, "yardstick.so")
        subprocess.run([cc, "-O3", "-march=native", "-shared", "-fPIC", "-pthread",
                        os.path.join(HERE, "memory_yardstick.c"), "-o", path], check=True)
        self.lib = ctypes.CDLL(path)
        self.lib.yardstick.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long,
                                       ctypes.c_int, ctypes.c_long, ctypes.c_void_p]
        self.bytes = 4 * n * n
        self.from_, self.to = (self.memory(), self.memory())

    def memory(self):
        """At a huge page, which is asked for, as deepc does."""
        import mmap
        huge = 2 << 20
        m = mmap.mmap(-1, self.bytes + 2 * huge, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        m.madvise(mmap.MADV_HUGEPAGE)
        address = ctypes.addressof(ctypes.c_char.from_buffer(m))
        ctypes.memset(address, 1, self.bytes + 2 * huge)
        self.keep = getattr(self, "keep", []) + [m]
        return (address + huge - 1) // huge * huge

    def seconds(self, what, n):
        """The median of n, of the better one of all kinds and numbers of threads."""
        best = math.inf
        for kind in ((0, 1) if what == "copy" else (2,)):
            for threads in {1, torch.get_num_threads()}:
                times = (ctypes.c_double * n)()
                self.lib.yardstick(kind, self.to, self.from_, self.bytes, threads, n, times)
                best = min(best, statistics.median(times))
        return best


# bytes that are read and written, in units of 4 n n; what they are compared with
LINES = {
    "gelu": (2, "copy"), "softmax": (2, "copy"), "softmax_grad": (3, "copy"), "norm": (2, "copy"),
    "norm_grad": (3, "copy"), "transpose": (2, "copy"), "sum_rows": (1, "read"),
    "sum_columns": (1, "read"), "sum": (1, "read"), "gather": (2, "copy"), "adam": (7, "copy"),
}


def compare(name, n, ours, theirs):
    if len(ours) != len(theirs):
        raise SystemExit(f"{name}: {len(ours)} numbers against {len(theirs)}")
    for i, (a, b) in enumerate(zip(ours, theirs)):
        bound = 2e-4 * abs(b) + (2e-6 * n * n if i % 65 == 0 else 2e-4 if name != "sum_columns" else 2e-3)
        if not abs(a - b) <= bound + (2e-6 * n * n if name == "sum" else 0):
            raise SystemExit(f"{name} at {n}: number {i} is {a}, with PyTorch {b}")


def measure(n, rounds, names, compiled, budget):
    seed = random.randrange(1 << 32)
    sides = {"deepc": Deepc(n, seed), "eager": Torch(n, seed, False)}
    if compiled:
        sides["compile"] = Torch(n, seed, True)
    yard = Yardstick(n)
    worst, least = math.inf, math.inf
    for name in names:
        units, against = LINES[name]
        first = {side: s.check(name) for side, s in sides.items()}
        for side in sides:
            compare(name, n, first["deepc"], first[side])
        for s in sides.values():
            s.run(name, 5)
        start = time.perf_counter()
        sides["eager"].run(name, 3)
        one = (time.perf_counter() - start) / 3
        count = max(1, int(budget / one))
        times = {side: [] for side in [*sides, "yard"]}
        for r in range(rounds):
            for side in sorted(sides, reverse=r % 2 == 1):
                start = time.perf_counter()
                sides[side].run(name, count)
                times[side].append((time.perf_counter() - start) / count)
            times["yard"].append(yard.seconds(against, max(3, min(count, 20))))
        t = {side: statistics.median(v) * 1e6 for side, v in times.items()}
        floor = t["yard"] * units / (2 if against == "copy" else 1)
        ratios = {side: t[side] / t["deepc"] for side in sides if side != "deepc"}
        worst = min([worst, *ratios.values()])
        share = floor / t["deepc"]
        if n >= 4096:
            least = min(least, share)
        gb = units * 4 * n * n / t["deepc"] / 1e3
        print(f"{name} {n}: deepc {t['deepc']:.1f} us ({gb:.1f} GB/s, {share:.2f} of {against}), "
              + ", ".join(f"{side} {t[side]:.1f} us, ratio {ratios[side]:.2f}" for side in ratios), flush=True)
    sides["deepc"].close()
    return worst, least


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench memory")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--sizes", default="4096,256")
    parser.add_argument("--only", default=",".join(LINES))
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--budget", type=float, default=0.05)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"python {platform.python_version()}, torch {torch.__version__}, threads {options.threads} each, "
          f"median of {options.rounds} rounds")
    worst, least = math.inf, math.inf
    for n in map(int, options.sizes.split(",")):
        w, l = measure(n, options.rounds, options.only.split(","), not options.no_compile, options.budget)
        worst, least = min(worst, w), min(least, l)
    print(f"least part of copy bandwidth {least:.2f}")
    print(f"worst ratio {worst:.2f}")


main()
