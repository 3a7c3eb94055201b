"""What the benchmarks of GPUs share: deepc on cuda:0 beside PyTorch, in turns in one call.

As bench/frame.py, whose processes and medians these are, but that inputs come of a formula that both sides compute (noise),
so that gigabytes need no files. A case names its inputs: (name, shape, dtype, scale), or for whole numbers the number
of values in place of the scale. Where they are small they are there several times over, in turn, so that they do not come
from the cache of level 2. A turn of a side is many iterations and one wait at their end, by the host's clock.

    scripts/bench gpu-NAME [--tiny] [--case PATTERN] [--peer PATTERN] [--rounds N] [--ms N]

--tiny: small sizes, to see that the programs work; PyTorch on the CPU where it has no GPU. A case that deepc cannot compute
says "not yet", and why. DEEPC_BENCH_RECORD names a file that gets a line of JSON for each case.
"""
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile

import frame

TINY = "--tiny" in sys.argv or bool(os.environ.get("DEEPC_BENCH_TINY"))
if "--tiny" in sys.argv:
    sys.argv.remove("--tiny")
    os.environ["DEEPC_BENCH_TINY"] = "1"
CACHE = 128 << 20  # inputs in turn are more than that
BYTES = {"f32": 4, "tf32": 4, "f16": 2, "bf16": 2, "i32": 4, "u8": 1}


def case(label, inputs, turn=True, **fields):
    """turn: inputs are there several times over, if they are small."""
    size = sum(count(shape) * BYTES[dtype] for _, shape, dtype, _ in inputs)
    copies = min(64, max(1, -(-CACHE // max(size, 1)))) if turn and not TINY else 1
    return frame.Case(label, inputs=[list(i) for i in inputs], copies=copies, **fields)


def count(shape):
    n = 1
    for s in shape:
        n *= s
    return n


# ---- the peers' side --------------------------------------------------------------------------------

def device():
    import torch
    if not torch.cuda.is_available() and not TINY:
        raise RuntimeError("PyTorch has no GPU")
    return "cuda" if torch.cuda.is_available() else "cpu"


def hashed(shape, salt):
    import torch
    low = 0xffffffff
    h = (torch.arange(count(shape), dtype=torch.int64, device=device()) * 2654435761 + salt * 2654435769) & low
    h = h ^ (h >> 15)
    h = h * 2246822519 & low
    return ((h ^ (h >> 13)) >> 16).reshape(shape)


def inputs(c, copy=0):
    """Tensors by name, on the device; bench/gpu_frame.lua makes the same."""
    import torch
    found = {}
    for i, (name, shape, dtype, scale) in enumerate(c.inputs):
        h = hashed(tuple(shape), 1 + i + 100 * copy)
        if dtype in ("i32", "u8"):
            found[name] = (h % scale).to(torch.int32 if dtype == "i32" else torch.uint8)
        else:
            x = (h.to(torch.float32) / 32768 - 1) * scale
            found[name] = x.to({"f16": torch.float16, "bf16": torch.bfloat16}.get(dtype, torch.float32))
    return found


def host_arrays(c):
    """As inputs, as arrays of NumPy."""
    return {name: t.cpu().numpy() for name, t in inputs(c).items()}


def wait():
    import torch
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def in_turn(c, function):
    """run(n) of function(inputs) -> results, the inputs in turn."""
    import torch
    sets = [inputs(c, k) for k in range(c.copies)]
    calls = 0

    def run(n):
        nonlocal calls
        with torch.no_grad():
            for _ in range(n):
                found = function(sets[calls % c.copies])
                calls += 1
        wait()
        calls = 0
        return found

    return run


def waited(run):
    def run_and_wait(n):
        found = run(n)
        wait()
        return found
    return run_and_wait


def anew(prepare, c, given):
    """Without the memory of the case before."""
    import gc
    import torch
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return prepare(c, given)


# ---- both sides ------------------------------------------------------------------------------------

def read_results(file):
    import struct
    found = []
    with open(file, "rb") as f:
        while head := f.read(4):
            n, = struct.unpack("<I", head)
            found.append(struct.unpack(f"<{n}f", f.read(4 * n)))
    return found


def differ(mine, other, tolerance):
    if [len(a) for a in mine] != [len(b) for b in other]:
        return f"{[len(a) for a in mine]} elements against {[len(b) for b in other]}"
    for i, (a, b) in enumerate(zip(mine, other)):
        worst, most = max(abs(x - y) for x, y in zip(a, b)), max(map(abs, b))
        if not worst <= tolerance * max(most, 1e-30):
            return f"result {i + 1} differs by {worst:.3g} of {most:.3g}"
    return None


def results(side, n, folder):
    side.ask(f"run {n} {folder}/results")
    return read_results(f"{folder}/results")


def prepare(c, side, folder, tolerance, mine):
    """The results by which the others are judged: deepc's, which comes first."""
    side.ask(f"load {folder} {frame.lua(c.fields) if side.name == 'deepc' else c.index}")
    side.ask("prepare")
    found = [results(side, 1, folder)]
    if c.later:
        found.append(results(side, c.later[0], folder))
    for k, limit in enumerate([tolerance, c.later[1]][:len(found)] if c.later else [tolerance]):
        wrong = mine and differ(mine[k], found[k], limit)
        if wrong:
            raise SystemExit(f"{c.label}: deepc and {side.name} disagree: {wrong}")
    return mine or found


def math_of(c):
    """What DEEPC_MATH is for a case."""
    return "tf32" if c.fields.get("dtype") == "tf32" else os.environ.get("DEEPC_MATH", "")


def start(name, peer, math=""):
    cpus = os.sched_getaffinity(0)
    env = {"TORCHINDUCTOR_COMPILE_THREADS": "1", "DEEPC_DEVICE": os.environ.get("DEEPC_DEVICE", "cuda:0"), "DEEPC_MATH": math}
    file = os.path.join(frame.HERE, name.replace("-", "_"))
    argv = [frame.deepc_program(), file + ".lua"] if peer == "deepc" else [sys.executable, file + ".py", "--side", peer]
    return frame.Side(peer, argv, env, cpus)


def bandwidth():
    """What a copy and a sum reach on this device, in bytes a second; nothing where the program that measures is not built."""
    costs = os.path.join(os.path.dirname(frame.deepc_program()), "tests", "cuda", "costs")
    if not os.path.exists(costs):
        return {}
    folders = [os.path.dirname(os.environ[n]) for n in ("DEEPC_CUDA", "DEEPC_NVRTC") if os.environ.get(n)]
    env = {**os.environ, "LD_LIBRARY_PATH": ":".join(folders + [os.environ.get("LD_LIBRARY_PATH", "")]).strip(":")}
    told = subprocess.run([costs] + ["tiny"] * TINY, capture_output=True, text=True, env=env).stdout
    rate = dict(re.findall(r"^(.*) by a kernel, .*\t([\d.]+)\tGB/s", told, re.M))
    return {k: float(v) * 1e9 for k, v in rate.items() if float(v) > 0}


def show_rate(c, seconds):
    if c.flops:
        return f"{c.flops / seconds / 1e12:.1f} TFLOP/s"
    return f"{c.bytes / seconds / 1e9:.0f} GB/s" if c.bytes else ""


def record(name, c, **what):
    """With DEEPC_GPU the figures stand beside those without."""
    if os.environ.get("DEEPC_GPU"):
        name += f", DEEPC_GPU={os.environ['DEEPC_GPU']}"
    if os.environ.get("DEEPC_BENCH_RECORD"):
        with open(os.environ["DEEPC_BENCH_RECORD"], "a") as f:
            f.write(json.dumps({"bench": name, "case": c.label, **what}) + "\n")


def measure(name, c, sides, options, tolerance, best):
    """False: a peer is missing."""
    with tempfile.TemporaryDirectory(prefix="deepc-bench-") as folder:
        with open(f"{folder}/manifest.lua", "w") as f:
            f.write("return {}")
        try:
            mine = prepare(c, sides[0], folder, tolerance, None)
        except frame.Missing as e:
            why = re.sub(r"^deepc: (\S+\.lua:\d+: )?", "", str(e))
            print(f"{name} {c.label}: not yet: {why}", flush=True)
            record(name, c, note=f"not yet: {why}")
            return True
        note = sides[0].ask("note")[5:]
        ready, lack = [sides[0]], ""
        for side in sides[1:]:
            try:
                prepare(c, side, folder, tolerance, mine)
                ready.append(side)
            except frame.Missing as e:
                print(f"{name} {c.label}: MISSING {e}", flush=True)
                lack = f" MISSING {side.name}"
        counts = {side.name: frame.iterations(side, options.ms / 1e3) for side in ready}
        times = frame.rounds(ready, counts, options.rounds)
    mine = times["deepc"]
    limit = best.get("sum" if c.fields.get("reads") else "copy") if c.bytes else None
    share = f"{100 * c.bytes / mine / limit:.0f} %" if limit else ""
    peers = {p: [frame.show_time(t), f"{t / mine:.2f}"] for p, t in times.items() if p != "deepc"}
    print(f"{name} {c.label}: deepc {frame.show_time(mine)}" +
          "".join(f", {x}" for x in (show_rate(c, mine), share and f"{share} of a {'sum' if c.fields.get('reads') else 'copy'}") if x) +
          "".join(f"; {p} {t}, ratio {r}" for p, (t, r) in peers.items()) + (f" ({note})" if note else ""), flush=True)
    record(name, c, deepc=frame.show_time(mine), rate=show_rate(c, mine), share=share, peers=peers, note=note + lack)
    return not lack


def main(name, cases, peers, tolerance=1e-3):
    for i, c in enumerate(cases):
        c.index = i
    options = frame.read_options(name, "1", rounds=5, ms=200)
    if options.side:
        frame.serve(cases, lambda c, given: anew(peers[options.side], c, given))
        return
    chosen = [p for p in peers if re.search(options.peer, p)]
    if importlib.util.find_spec("torch") is None or importlib.util.find_spec("numpy") is None:
        print(f"skip: {sys.executable} has no PyTorch: deepc alone is measured")
        chosen = []
    best = bandwidth() if any(c.bytes for c in cases) else {}
    print(f"bench {name}: medians of {options.rounds} rounds of about {options.ms:g} ms a side" + "".join(
        f"; a {k} reaches {v / 1e9:.0f} GB/s" for k, v in best.items()), flush=True)
    cases = [c for c in cases if re.search(options.case, c.label)]
    deepc = {math: start(name, "deepc", math) for math in {math_of(c): None for c in cases}}
    others = [start(name, p) for p in chosen]
    whole = True
    for c in cases:
        mine = [deepc[math_of(c)]] + [s for s in others if re.search(c.peers, s.name)]
        whole = measure(name, c, mine, options, c.tolerance or tolerance, best) and whole
    for side in [*deepc.values(), *others]:
        side.go()
        print(f"  {side.name}: {side.ask('versions')}" if whole else f"  {side.name}")
        side.close()
    if not whole:
        raise SystemExit(f"{name}: a peer is missing")
