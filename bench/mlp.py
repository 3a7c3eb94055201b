"""One training step of a multilayer perceptron (Adam): deepc beside PyTorch eager.

PyTorch runs with its default Adam and with the fused one; the ratio is to the faster. The sides run in turn, round after round, on the same weights and data; the median of the rounds
counts. Losses are compared after the first step and at the end of the first round.

    scripts/bench mlp [--rounds N] [--steps N]
"""
import argparse
import math
import os
import platform
import statistics
import subprocess
import time

import torch


def filled(shape, scale):
    n = math.prod(shape)
    return torch.tensor([scale * math.sin(i + 1) for i in range(n)], dtype=torch.float32).reshape(shape)


class Torch:
    def __init__(self, batch, sizes, fused):
        self.layers = [torch.nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])]
        for layer, (a, b) in zip(self.layers, zip(sizes, sizes[1:])):
            layer.weight.data = filled((a, b), 1 / math.sqrt(a)).t().contiguous()
            layer.bias.data = filled((b,), 1 / math.sqrt(b))
        modules = [torch.nn.Flatten()]
        for layer in self.layers:
            modules += [layer, torch.nn.ReLU()]
        self.net = torch.nn.Sequential(*modules[:-1])
        self.opt = torch.optim.Adam(self.net.parameters(), lr=1e-3, fused=fused)
        self.x = (torch.arange(batch * 784) * 37 % 256).to(torch.uint8).reshape(batch, 28, 28)
        self.y = torch.arange(batch) % 10

    def run(self, steps):
        for _ in range(steps):
            loss = torch.nn.functional.cross_entropy(self.net(self.x.float() / 255), self.y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        return loss.item()


class Deepc:
    def __init__(self, batch, sizes):
        here = os.path.dirname(os.path.abspath(__file__))
        program = os.environ.get("DEEPC", os.path.join(here, "..", "build", "release", "deepc"))
        self.child = subprocess.Popen(
            [program, os.path.join(here, "mlp.lua"), str(batch), str(sizes[1]), str(sizes[2])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "DEEPC_THREADS": str(torch.get_num_threads())})

    def run(self, steps):
        self.child.stdin.write(f"{steps}\n")
        self.child.stdin.flush()
        line = self.child.stdout.readline()
        if not line:
            raise SystemExit("deepc stopped")
        return float(line)

    def close(self):
        self.child.stdin.close()
        self.child.wait()


def measure(batch, sizes, rounds, steps):
    sides = {"deepc": Deepc(batch, sizes), "torch": Torch(batch, sizes, None),
             "fused": Torch(batch, sizes, True)}
    first = {name: side.run(1) for name, side in sides.items()}
    warm = {name: side.run(steps) for name, side in sides.items()}
    for what, loss in (("first", first), ("later", warm)):
        bound = 1e-4 if what == "first" else 2e-2
        if any(abs(loss["deepc"] - loss[peer]) > bound * abs(loss[peer]) + 1e-3
               for peer in ("torch", "fused")):
            raise SystemExit(f"{what} losses differ: {loss}")
    times = {name: [] for name in sides}
    for r in range(rounds):
        for name in sorted(sides, reverse=r % 2 == 1):
            start = time.perf_counter()
            sides[name].run(steps)
            times[name].append((time.perf_counter() - start) / steps * 1e6)
    sides["deepc"].close()
    return {name: statistics.median(t) for name, t in times.items()}


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench mlp")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"python {platform.python_version()}, torch {torch.__version__}, threads {options.threads} each, "
          f"median of {options.rounds} rounds of {options.steps} steps")
    worst = math.inf
    for batch, sizes in ((64, (784, 128, 64, 10)), (8, (784, 128, 64, 10)), (512, (784, 128, 64, 10)),
                         (128, (784, 512, 512, 10))):
        t = measure(batch, sizes, options.rounds, options.steps)
        ratio = min(t["torch"], t["fused"]) / t["deepc"]
        worst = min(worst, ratio)
        print(f"mlp {'-'.join(map(str, sizes))} batch {batch}: deepc {t['deepc']:.1f} us, "
              f"torch eager {t['torch']:.1f} us, with fused Adam {t['fused']:.1f} us, "
              f"ratio {ratio:.2f}")
    print(f"worst ratio {worst:.2f}")


main()
