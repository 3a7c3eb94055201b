"""The frame of the benchmarks: deepc and its peers side by side.

A benchmark is two files. bench/NAME.py has the cases, their inputs and the peers, and ends with
frame.main; bench/NAME.lua is deepc's side (bench/frame.lua). Each side is a process of its own that
lives as long as the benchmark and answers commands, one line each:

    case FOLDER TABLE   reads the inputs of a case from a folder and prepares it
    run N FILE          runs N iterations; writes the results of the last one, if a FILE is named
    quit

While one side runs, the others are stopped (SIGSTOP), so that no idle thread pool takes a core away.
The inputs are drawn anew for each case and given to all sides; results are compared before anything
is measured. A round measures each side once, in alternating order; the median of the rounds counts.
A ratio is the peer's time by deepc's. One below 1 is measured three times over and counts only if all
three are; otherwise the two are not told apart and the ratio is 1.

What a benchmark gives to main:

    cases    list of Case
    inputs   inputs(case, rng) -> {name: array of f32, i32 (0..65535) or u8}; f32 values are rounded to 16
             bits, so that they reach every side exactly
    peers    {name: prepare}; prepare(case, inputs) -> run(n) -> results, a dict of name to array of
             any library or number. Runs in the peer's process, which imports what it needs there.
             A yardstick may give None
    tolerance  relative error of results against the largest magnitude, after one iteration
"""
import argparse
import ctypes
import json
import math
import os
import platform
import re
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SAMPLE = 20000  # elements of a result that are compared, evenly spread


class Case:
    """A line of the benchmark. Fields are numbers, strings or lists of these: both sides see them.

    flops and bytes, of one iteration, add GFLOP/s and GB/s to the line. later is (iterations,
    tolerance): a second comparison after that many more, for what is trained. peers: a pattern of the
    names of those that run it, all without. threads: the numbers of threads it runs with, all without. tolerance:
    instead of the benchmark's."""

    def __init__(self, label, flops=0, bytes=0, later=None, peers="", threads=None, tolerance=None, **fields):
        self.label, self.flops, self.bytes = label, flops, bytes
        self.later, self.peers, self.threads, self.tolerance = later, peers, threads, tolerance
        self.fields = fields
        self.__dict__.update(fields)


# ---- what both ends read and write ----------------------------------------------------------------

def write_idx(path, array):
    with open(path, "wb") as f:
        f.write(struct.pack(">HBB", 0, 8, max(array.ndim, 1)))
        f.write(struct.pack(f">{max(array.ndim, 1)}I", *(array.shape or (1,))))
        f.write(array.tobytes())


def save_inputs(folder, inputs):
    """As the two bytes of a number in files of u8, which any side can read; returns them as rounded."""
    import numpy as np
    manifest, rounded = [], {}
    for name, a in inputs.items():
        a = np.ascontiguousarray(a)
        entry = {"name": name, "dtype": {"f": "f32", "i": "i32", "u": "u8"}[a.dtype.kind],
                 "shape": list(a.shape), "scale": 1.0}
        if entry["dtype"] == "u8":
            write_idx(f"{folder}/{name}.low", a)
            rounded[name] = a
        else:
            number = a.astype(np.int64)
            if entry["dtype"] == "f32":
                top = float(np.abs(a).max()) if a.size else 1.0
                entry["scale"] = 2.0 ** (math.ceil(math.log2(top or 1.0)) - 15)
                number = np.clip(np.rint(a / entry["scale"]), -32768, 32767).astype(np.int64) + 32768
            write_idx(f"{folder}/{name}.high", (number >> 8).astype(np.uint8))
            write_idx(f"{folder}/{name}.low", (number & 255).astype(np.uint8))
            rounded[name] = number.astype(np.int32)
            if entry["dtype"] == "f32":
                rounded[name] = ((number - 32768) * entry["scale"]).astype(np.float32)
        np.save(f"{folder}/{name}.npy", rounded[name])
        manifest.append(entry)
    with open(f"{folder}/manifest.lua", "w") as f:
        f.write("return " + lua(manifest))


def load_inputs(folder):
    import numpy as np
    return {f[:-4]: np.load(f"{folder}/{f}") for f in sorted(os.listdir(folder)) if f.endswith(".npy")}


def lua(value):
    """A Lua table, in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f'["{k}"] = {lua(v)}' for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "{" + ", ".join(lua(v) for v in value) + "}"
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value)


def to_numpy(value):
    import numpy as np
    if hasattr(value, "detach"):
        value = value.detach()
    if type(value).__module__.startswith("torch"):
        value = value.float().cpu()  # NumPy has no bf16
    if hasattr(value, "numpy") and not isinstance(value, np.ndarray):
        value = value.numpy()
    return np.asarray(value, dtype=np.float32)


def sample(flat):
    """Every so many elements; bench/frame.lua takes the same."""
    step = max(1, len(flat) // SAMPLE)
    if step > 1 and step % 2 == 0:
        step += 1
    return flat[::step]


# ---- the peer's process ---------------------------------------------------------------------------

def serve(cases, prepare):
    """Answers on what was standard output; whatever libraries print goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    answers.write("ready\n")
    run = inputs = case = None
    for line in sys.stdin:
        word = line.split()
        try:
            if word[0] == "load":
                case, inputs, run = cases[int(word[2])], load_inputs(word[1]), None
            elif word[0] == "prepare":
                run = prepare(case, inputs)
            elif word[0] == "import":
                __import__(word[1])
            elif word[0] == "first":
                write_results(word[1], prepare(case, inputs)(1))
            elif word[0] == "run":
                results = run(int(word[1]))
                if len(word) > 2:
                    write_results(word[2], results)
            elif word[0] == "versions":
                answers.write(versions() + "\n")
                continue
            answers.write("done\n")
        except Exception as e:  # noqa: BLE001: told to the other end, in one line
            import traceback
            traceback.print_exc()
            answers.write(f"failed {type(e).__name__}: {e}".replace("\n", " ")[:300] + "\n")


def write_results(file, results):
    with open(file, "wb") as f:
        for name in sorted(results or {}):
            flat = sample(to_numpy(results[name]).reshape(-1))
            f.write(struct.pack("<I", len(flat)) + flat.astype("<f4").tobytes())


def versions():
    found = []
    for name in ("torch", "jax", "tinygrad", "numpy"):
        module = sys.modules.get(name)
        version = getattr(module, "__version__", None)
        if module is not None and version is None:
            import importlib.metadata
            version = importlib.metadata.version(name)
        if module is not None and (name != "numpy" or not found):
            found.append(f"{name} {version}")
    if "torch" in sys.modules:
        import torch
        found.append(f"{torch.get_num_threads()} OpenMP threads")
    return ", ".join(found) or f"python {platform.python_version()}"


# ---- the sides as the benchmark sees them ---------------------------------------------------------

class Missing(Exception):
    """A peer that is not there or cannot do a case."""


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Side:
    """A process that answers. It is stopped while it has nothing to do. What it prints besides is shown
    when it fails."""

    def __init__(self, name, argv, env, cpus):
        self.name, self.printed = name, tempfile.TemporaryFile()

        def prepare():
            die_with_parent()
            os.sched_setaffinity(0, cpus)

        self.child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                      stderr=self.printed, env={**os.environ, **env}, preexec_fn=prepare)
        self.stopped = self.yardstick = False
        self.told = self.read()
        self.stop()

    def read(self):
        line = self.child.stdout.readline()
        if not line:
            self.child.wait()
            raise self.failure(f"ended with status {self.child.returncode}")
        return line.rstrip("\n")

    def failure(self, what):
        self.printed.seek(0)
        for line in self.printed.read().decode(errors="replace").splitlines()[-20:]:
            print(f"  {self.name} said: {line}", file=sys.stderr)
        return Missing(f"{self.name}: {what}")

    def stop(self):
        os.kill(self.child.pid, signal.SIGSTOP)
        self.stopped = True

    def go(self):
        if self.stopped:
            os.kill(self.child.pid, signal.SIGCONT)
        self.stopped = False

    def ask(self, command):
        """The answer; seconds until it came are in self.seconds."""
        self.go()
        begin = time.perf_counter()
        self.child.stdin.write(command + "\n")
        self.child.stdin.flush()
        answer = self.read()
        self.seconds = time.perf_counter() - begin
        self.stop()
        if answer.startswith("failed"):
            raise self.failure(answer[7:])
        return answer

    def run(self, n):
        self.ask(f"run {n}")
        return self.seconds / n

    def results(self, n, file):
        self.ask(f"run {n} {file}")
        return read_results(file)

    def end(self):
        self.child.kill()
        self.child.wait()

    def close(self):
        """Lets it end by itself: it may have something to write."""
        self.go()
        self.child.stdin.close()
        self.child.wait()


def read_results(file):
    import numpy as np
    found = []
    with open(file, "rb") as f:
        while head := f.read(4):
            n, = struct.unpack("<I", head)
            found.append(np.frombuffer(f.read(4 * n), dtype="<f4"))
    return found


def deepc_program():
    return os.environ.get("DEEPC", os.path.join(HERE, "..", "build", "release", "deepc"))


def settings(threads):
    """The variables that give all sides the same number of threads; their cores are limited besides."""
    t = str(threads)
    return {"DEEPC_THREADS": t, "OMP_NUM_THREADS": t, "MKL_NUM_THREADS": t, "OPENBLAS_NUM_THREADS": t,
            "CPU_COUNT": t, "TORCHINDUCTOR_COMPILE_THREADS": "1", "JAX_PLATFORMS": "cpu", "DEV": "CPU",
            "CUDA_VISIBLE_DEVICES": ""}


def start_deepc(name, threads, cpus, env=None):
    return Side("deepc", [deepc_program(), os.path.join(HERE, name + ".lua")],
                {**settings(threads), **(env or {})}, cpus)


def start_peer(name, peer, threads, cpus, env=None):
    return Side(peer, [sys.executable, os.path.join(HERE, name + ".py"), "--side", peer],
                {**settings(threads), **(env or {})}, cpus)


def core_name():
    with open("/proc/cpuinfo") as f:
        found = re.search(r"model name\s*:\s*(.*)", f.read())
    return found.group(1) if found else platform.machine()


# ---- measuring ------------------------------------------------------------------------------------

def differ(mine, other, tolerance):
    """What is wrong with the other side's results, or None."""
    import numpy as np
    if len(mine) != len(other):
        return f"{len(mine)} results against {len(other)}"
    for i, (a, b) in enumerate(zip(mine, other)):
        if a.shape != b.shape:
            return f"result {i + 1}: {a.size} elements against {b.size}"
        worst = float(np.abs(a - b).max()) if a.size else 0.0
        if not worst <= tolerance * max(float(np.abs(a).max()) if a.size else 0.0, 1e-30):
            return f"result {i + 1} differs by {worst:.3g} of {float(np.abs(a).max()):.3g}"
    return None


def check(side, n, tolerance, folder, label, mine):
    """The results of the n-th iteration from here, which have to be those of deepc, if there are any."""
    found = side.results(n, f"{folder}/results")
    silent = side.yardstick and not found  # computes nothing that could be compared
    wrong = differ(mine, found, tolerance) if mine is not None and not silent else None
    if wrong:
        raise SystemExit(f"{label}: deepc and {side.name} disagree: {wrong}")
    return found


def prepare(case, label, side, folder, tolerance, mine):
    """The results by which the others are judged, of deepc, which comes first."""
    side.ask(f"load {folder} {lua(case.fields) if side.name == 'deepc' else case.index}")
    side.ask("prepare")
    first = check(side, 1, tolerance, folder, label, mine and mine[0])
    later = check(side, *case.later, folder, label, mine and mine[1]) if case.later else None
    return mine or (first, later)


def iterations(side, seconds):
    """So many that a turn takes about that long."""
    n = 1
    while True:
        side.run(n)  # once more than needed: also warms up
        took = side.run(n) * n
        if took >= seconds / 4 or n >= 1 << 24:
            return max(1, round(n * seconds / took))
        n = max(n * 2, int(n * seconds / 4 / max(took, 1e-9)))


def rounds(sides, counts, n):
    times = {side.name: [] for side in sides}
    for r in range(n):
        for side in sides if r % 2 == 0 else reversed(sides):
            times[side.name].append(side.run(counts[side.name]))
    return {name: statistics.median(t) for name, t in times.items()}


def settle_ratios(sides, counts, n, times):
    """Ratios by peer, and for each the three that were measured where the first was below 1."""
    ratios = {side.name: times[side.name] / times["deepc"] for side in sides[1:]}
    seen = {name: [r] for name, r in ratios.items()}
    doubtful = [side for side in sides[1:] if ratios[side.name] < 1]
    for _ in range(2 if doubtful else 0):
        again = rounds([sides[0], *doubtful], counts, n)
        for side in doubtful:
            seen[side.name].append(again[side.name] / again["deepc"])
    for side in doubtful:
        all_below = max(seen[side.name]) < 1
        ratios[side.name] = statistics.median(seen[side.name]) if all_below else 1.0
    return ratios, seen


def show_time(seconds):
    if seconds < 1e-3:
        return f"{seconds * 1e6:.1f} us"
    return f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


def show_rates(case, seconds):
    rates = []
    if case.flops:
        rates.append(f"{case.flops / seconds / 1e9:.0f} GFLOP/s")
    if case.bytes:
        rates.append(f"{case.bytes / seconds / 1e9:.1f} GB/s")
    return f" ({', '.join(rates)})" if rates else ""


class Report:
    def __init__(self, name, yardsticks=()):
        self.name, self.worst, self.missing, self.yardsticks = name, math.inf, [], yardsticks
        self.told = set()  # names of sides and numbers of threads

    def versions(self, sides, threads):
        """Of sides that have prepared a case, so that they have imported what they use."""
        for side in sides:
            if (side.name, threads) not in self.told:
                self.told.add((side.name, threads))
                print(f"  {side.name}: {side.ask('versions')}", flush=True)

    def line(self, label, case, times, ratios, seen):
        for peer, ratio in ratios.items():
            note = ""
            if len(seen[peer]) > 1:
                note = f" (three times: {' '.join(f'{r:.2f}' for r in seen[peer])})"
            if peer in self.yardsticks:
                note += " yardstick"
            else:
                self.worst = min(self.worst, ratio)
            print(f"{self.name} {label}: deepc {show_time(times['deepc'])}{show_rates(case, times['deepc'])}, "
                  f"{peer} {show_time(times[peer])}{show_rates(case, times[peer])}, "
                  f"ratio {ratio:.2f}{note}", flush=True)

    def lack(self, what):
        if what not in self.missing:
            print(f"{self.name}: MISSING {what}", flush=True)
            self.missing.append(what)

    def end(self):
        if self.missing or self.worst == math.inf:
            raise SystemExit(f"{self.name}: no ratio, since something is missing: "
                             f"{'; '.join(self.missing) or 'nothing was measured'}")
        print(f"worst ratio {self.worst:.2f}")


def label_of(case, threads):
    return f"{case.label}, {threads} thread{'s' * (threads > 1)}"


def measure_case(case, threads, sides, inputs, seed, options, tolerance, report):
    import numpy as np
    label = label_of(case, threads)
    with tempfile.TemporaryDirectory(prefix="deepc-bench-") as folder:
        save_inputs(folder, inputs(case, np.random.default_rng(seed)))
        ready, mine = [], None
        for side in sides:
            try:
                mine = prepare(case, label, side, folder, case.tolerance or tolerance, mine)
                ready.append(side)
            except Missing as e:
                if side.name == "deepc":
                    raise SystemExit(str(e))
                report.lack(f"{e} ({label})")
        report.versions(ready, threads)
        counts = {side.name: iterations(side, options.ms / 1e3) for side in ready}
        times = rounds(ready, counts, options.rounds)
        report.line(label, case, times, *settle_ratios(ready, counts, options.rounds, times))


def start_sides(name, peers, threads, cpus, report):
    sides = [start_deepc(name, threads, cpus)]
    for peer in peers:
        try:
            sides.append(start_peer(name, peer, threads, cpus))
            sides[-1].yardstick = peer in report.yardsticks
        except Missing as e:
            report.lack(str(e))
    return sides


def read_options(name, threads, rounds=7, ms=60):
    parser = argparse.ArgumentParser(prog=f"scripts/bench {name}")
    parser.add_argument("--case", default="", help="pattern of the lines to measure")
    parser.add_argument("--peer", default="", help="pattern of the peers to measure")
    parser.add_argument("--threads", default=threads, help="numbers of threads, such as 1,2")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--ms", type=float, default=ms, help="milliseconds of a turn")
    parser.add_argument("--seed", type=int, help="of the inputs; a fresh one without")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    return parser.parse_args()


def heading(name, options, seed):
    print(f"bench {name}: {core_name()}, {os.cpu_count()} cores, Linux {platform.release()}; inputs from seed "
          f"{seed}; medians of {options.rounds} rounds of about {options.ms:g} ms a side")


# ---- processes that begin anew ---------------------------------------------------------------------

def caches(folder):
    """Where each side keeps what it has compiled: all in one folder."""
    return {"DEEPC_CACHE": f"{folder}/deepc", "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor",
            "JAX_COMPILATION_CACHE_DIR": f"{folder}/jax", "XDG_CACHE_HOME": folder,
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1", "CACHEDB": f"{folder}/tinygrad.db"}


def first_result(name, case, peer, threads, cpus, folder, cache):
    """Seconds to the first result in a new process, and that; the last line of versions."""
    side = start_deepc(name, threads, cpus, caches(cache)) if peer == "deepc" else \
        start_peer(name, peer, threads, cpus, caches(cache))
    try:
        if peer != "deepc":
            side.ask(f"import {peer.split('.')[0]}")
        side.ask(f"load {folder} {lua(case.fields) if peer == 'deepc' else case.index}")
        side.ask(f"first {folder}/results")
        seconds = side.seconds
        found = read_results(f"{folder}/results")
        told = side.ask("versions")
        side.close()
        return seconds, found, told
    except Missing:
        side.end()
        raise


def fresh_times(name, case, threads, cpus, peers, folder, options, tolerance, report):
    """{(peer, "cold" or "warm"): seconds of each round}; a peer that is missing is not among them."""
    times, mine = {}, None
    for r in range(options.rounds):
        for peer in peers if r % 2 == 0 else reversed(peers):
            if r > 0 and (peer, "cold") not in times:
                continue
            with tempfile.TemporaryDirectory(prefix="deepc-bench-cache-") as cache:
                for state in ("cold", "warm"):
                    try:
                        seconds, found, told = first_result(name, case, peer, threads, cpus, folder, cache)
                    except Missing as e:
                        report.lack(f"{e} ({case.label})")
                        break
                    mine = mine or found
                    silent = peer in report.yardsticks and not found
                    wrong = None if silent else differ(mine, found, tolerance)
                    if wrong:
                        raise SystemExit(f"{case.label}: {peers[0]} and {peer} disagree: {wrong}")
                    if r == 0 and state == "cold":
                        print(f"  {peer}: {told}", flush=True)
                    times.setdefault((peer, state), []).append(seconds)
    return times


def begin(name, cases, peers, options):
    """The seed of the run, or None after this process has served as one of the sides."""
    for i, case in enumerate(cases):
        case.index = i
    if options.side:
        serve(cases, peers[options.side])
        return None
    seed = options.seed if options.seed is not None else int.from_bytes(os.urandom(4), "little")
    heading(name, options, seed)
    return seed


def main_fresh(name, cases, inputs, peers, tolerance=1e-4, threads="2", yardsticks=()):
    """As main; measured is the time to the first result in a new process, with caches on disk that are
    empty (cold) or of the process before (warm)."""
    import numpy as np
    options = read_options(name, threads, rounds=3)
    seed = begin(name, cases, peers, options)
    if seed is None:
        return
    report = Report(name, yardsticks)
    chosen = ["deepc"] + [p for p in peers if re.search(options.peer, p)]
    allowed = sorted(os.sched_getaffinity(0))
    t = int(options.threads)
    print(f"  {t} thread{'s' * (t > 1)}; a new process for each measurement")
    for case in cases:
        if not re.search(options.case, case.label):
            continue
        with tempfile.TemporaryDirectory(prefix="deepc-bench-") as folder:
            save_inputs(folder, inputs(case, np.random.default_rng(seed + case.index)))
            cpus = set(allowed[-t:])
            with tempfile.TemporaryDirectory(prefix="deepc-bench-cache-") as cache:  # files into memory
                first_result(name, case, "deepc", t, cpus, folder, cache)
            mine = [p for p in chosen if p == "deepc" or re.search(case.peers, p)]
            times = fresh_times(name, case, t, cpus, mine, folder, options, case.tolerance or tolerance, report)
            for state in ("cold", "warm"):
                now = {p: statistics.median(v) for (p, s), v in times.items() if s == state}
                ratios = {p: now[p] / now["deepc"] for p in now if p != "deepc"}
                report.line(f"{case.label}, {state}", Case(""), now, ratios, {p: [0] for p in ratios})
    report.end()


def main(name, cases, inputs, peers, tolerance=1e-4, threads="1", yardsticks=(), rounds=7):
    options = read_options(name, threads, rounds)
    seed = begin(name, cases, peers, options)
    if seed is None:
        return
    report = Report(name, yardsticks)
    chosen = [p for p in peers if re.search(options.peer, p)]
    allowed = sorted(os.sched_getaffinity(0))
    for t in [int(t) for t in options.threads.split(",")]:
        if t > len(allowed):
            raise SystemExit(f"{t} threads need {t} cores; there are {len(allowed)}")
        sides = start_sides(name, chosen, t, set(allowed[-t:]), report)
        variables = " ".join(f"{k}={v}" for k, v in settings(t).items() if v != "")
        print(f"  {t} thread{'s' * (t > 1)}, as many cores for each side; {variables}")
        for case in cases:
            if not re.search(options.case, label_of(case, t)) or t not in (case.threads or [t]):
                continue
            mine = [s for s in sides if s.name == "deepc" or re.search(case.peers, s.name)]
            measure_case(case, t, mine, inputs, seed + case.index, options, tolerance, report)
        for side in sides:
            side.end()
    report.end()
