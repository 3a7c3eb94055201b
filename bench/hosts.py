"""Training on two hosts with a link between them: how much of the exchanges goes on behind the computation.

    scripts/bench hosts [--case PATTERN] [--rate PATTERN] [--launcher NAME] [--rounds N] [--ms N]

The hosts are network namespaces of this machine (tests/ranks/hosts.sh, needs root), with one rank of one thread on a core of
its own each. Three times: a step of data-parallel training with Adam; its computation alone, the same program with the same
batch on both cores, each of them a world of one rank; its exchanges alone, all_reduces of the sizes that the step has, in
their order, over the same link. The ratio is the step's beside the larger of the two.

`planned` is what `deepc plan` says of the step, on one host, with the link's rate less the headers of TCP, IP and Ethernet,
or where the link has no limit with the rate of the exchanges. Its ratio to the larger of the two says what can be had at
all: a gradient is exchanged when it has been computed, and the last one when nothing is left to compute. The plan takes
exchanges to need no time of the core, which they share with the computation here.

At last the strong scaling on one machine: the same whole batch on one rank and on two.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

# name, kind and sizes of bench/processes.lua
CASES = [
    ("mlp 784-1024x3-10, batch 64", "mlp", (1024, 3, 64, 0)),
    ("mlp 784-1024x3-10, batch 1024", "mlp", (1024, 3, 1024, 0)),
    ("4 GPT blocks of 384, 4 x 128", "gpt", (384, 4, 4, 128)),
    ("4 GPT blocks of 384, 16 x 128", "gpt", (384, 4, 16, 128)),
]
RATES = {"100mbit": 100, "1gbit": 1000, "": None} # Mbit/s
PAYLOAD = 1448 / 1538 # of a packet with its headers and the gap behind it
SCALING = [("mlp 784-1024x3-10, whole batch 256", "mlp", (1024, 3, 256, 0)),
           ("4 GPT blocks of 384, whole batch 8 x 128", "gpt", (384, 4, 8, 128))]


def run(command, **settings):
    env = {**os.environ, "DEEPC_THREADS": "1", "DEEPC_RANK_PREFIX": "off", **settings}
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode == 77:
        sys.exit(f"hosts: {done.stdout.strip()}")
    if done.returncode != 0:
        raise RuntimeError((done.stderr or done.stdout).strip()[-600:])
    return max(map(float, re.findall(r"^[0-9.]+$", done.stdout, re.M)))


def program(kind, sizes, options, *more):
    return [os.environ["DEEPC"], f"{HERE}/processes.lua", kind, *map(str, sizes), str(options.ms), *more]


def on_hosts(rate, options, command, **settings):
    return run(["sh", f"{HERE}/../tests/ranks/hosts.sh", "-l", options.launcher, *(["-r", rate] if rate else []), *command],
               **settings)


def planned(kind, sizes, rate, exchange, options):
    def plan(link):
        done = subprocess.run(["taskset", "-c", "0", os.environ["DEEPC"], "plan", "--mesh", "data=2", "--link", link,
                               *program(kind, sizes, options)[1:]],
                              env={**os.environ, "DEEPC_THREADS": "1"}, capture_output=True, text=True, check=True)
        return re.search(r"a call +([0-9.]+) ms.*\n +given +([0-9.]+) MiB", done.stdout).groups()
    if RATES[rate]:
        return float(plan(f"{RATES[rate] * PAYLOAD:.1f}Mbit/s")[0])
    given = float(plan("1GB/s")[1]) * 2**20
    return float(plan(f"{given / exchange / 1e3:.1f}MB/s")[0])


def scaled(ranks, kind, sizes, options):
    sizes = (*sizes[:2], sizes[2] // ranks, sizes[3])
    if ranks == 1:
        return run(["taskset", "-c", "0", *program(kind, sizes, options)], DEEPC_MPI="off")
    openmpi = ["--allow-run-as-root", "--bind-to", "none"] if options.launcher == "openmpi" else []
    return run([f"mpirun.{options.launcher}", *openmpi, "-n", str(ranks), "sh", "-c",
                'exec taskset -c "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" "$0" "$@"', *program(kind, sizes, options)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--case", default=".")
    parser.add_argument("--rate", default=".")
    parser.add_argument("--launcher", default="openmpi")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ms", type=int, default=400, help="of each of the five parts of a round")
    options = parser.parse_args()
    for name, kind, sizes in CASES:
        for rate in RATES:
            if not re.search(options.case, name) or not re.search(options.rate, rate or "unlimited"):
                continue
            times = []
            for _ in range(options.rounds):
                times.append((on_hosts(rate, options, program(kind, sizes, options)),
                              on_hosts(rate, options, program(kind, sizes, options), DEEPC_MPI="off"),
                              on_hosts(rate, options, program(kind, sizes, options, "exchanges"))))
            step, compute, exchange = (statistics.median(t) for t in zip(*times))
            most = max(compute, exchange)
            plan = statistics.median(planned(kind, sizes, rate, exchange, options) for _ in range(options.rounds))
            print(f"{name}, {rate or 'unlimited'}: step {step:.1f} ms, computation {compute:.1f} ms, exchanges {exchange:.1f} ms, "
                  f"ratio {step / most:.2f}; planned {plan:.1f} ms, {plan / most:.2f}, step / planned {step / plan:.2f}", flush=True)
    for name, kind, sizes in SCALING:
        if re.search(options.case, name) and re.search(options.rate, "scaling"):
            times = [(scaled(1, kind, sizes, options), scaled(2, kind, sizes, options)) for _ in range(options.rounds)]
            one, two = (statistics.median(t) for t in zip(*times))
            print(f"{name}: one rank {one:.1f} ms, two {two:.1f} ms, {one / two:.2f} times as fast", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
