"""A sweep over shapes and forms: products, convolutions, reductions, gathers and copies of odd sizes.

    scripts/bench shapes [--case PATTERN] [--threads 1,2] [--rounds N] [--ms N] [--all]

Each case belongs to a family: the same form in growing sizes. A line for each family with its worst ratio
to PyTorch eager; at the end the ten worst ratios to the peer, and the ten largest cliffs, sizes that take
more time than the next larger one of their family. --all prints a line for each case. Turns are short:
what looks bad is measured again before it is told.
"""
import statistics
import sys
import tempfile

import frame

WORST, AGAIN, RATIO, CLIFF = 10, 24, 0.8, 3.0


def family(name, form, *sizes, **fields):
    """Cases of one form; a size is a table of what differs, the smallest first."""
    cases = []
    for size in sizes:
        label = " ".join([name, "x".join(str(v) for v in size.values())])
        cases.append(frame.Case(label, family=name, form=form, **{**fields, **size}))
    return cases


def sized(*names):
    """sized("m", "k")((1, 2), (3, 4)): the tables of family."""
    return lambda *rows: [dict(zip(names, row if isinstance(row, tuple) else (row,))) for row in rows]


ROWS = range(1, 65)
SOME_ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 11, 16, 17, 23, 32, 33, 64)
ODD = (1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 32, 33, 63, 64, 65, 97, 127, 128, 129, 191, 192, 255, 256, 257, 383, 384,
       509, 512, 521)
SHORT = (1, 2, 3, 4, 5, 7, 8, 10, 12, 15, 16, 17, 20, 24, 28, 31, 32, 33, 48, 63, 64, 65, 100, 128, 251, 1000)

TYPES = ("f16", "bf16", "i8")


def products():
    m = sized("m")
    for turned in ("", "b"):
        what = " [out, in]" if turned else ""
        yield from family("rows" + what, "dot", *m(*ROWS), k=512, n=1024, turned=turned)
        for t in TYPES:
            yield from family(f"rows {t}{what}", "dot", *m(*SOME_ROWS), k=512, n=1024, turned=turned, bt=t)
    yield from family("rows i8 scaled [out, in]", "dot", *m(*SOME_ROWS), k=512, n=1024, turned="b", bt="i8", scale=True)
    yield from family("rows i8 by i8 [out, in]", "dot", *m(1, 2, 3, 8, 16, 64), k=512, n=512, turned="b", at="i8", bt="i8")
    yield from family("rows f16 by f16 [out, in]", "dot", *m(1, 2, 3, 8, 16, 64), k=512, n=512, turned="b", at="f16",
                      bt="f16", out="f32")
    square = [(s, s, s) for s in ODD]
    for turned in ("", "a", "b"):
        what = f" {turned} transposed" if turned else ""
        yield from family("square" + what, "dot", *sized("m", "k", "n")(*square), turned=turned)
    yield from family("columns", "dot", *sized("n")(*range(1, 18), 24, 31, 32, 33, 40, 64), m=512, k=512)
    yield from family("columns b transposed", "dot", *sized("n")(*range(1, 18), 31, 32, 33, 64), m=512, k=512, turned="b")
    yield from family("sums", "dot", *sized("k")(1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 64, 100, 257, 1000, 4099),
                      m=128, n=128)
    yield from family("gelu prologue", "dot", *m(1, 3, 8, 17, 64, 128, 129), k=512, n=512, before=True)
    yield from family("bias gelu residual", "dot", *m(1, 3, 8, 17, 64, 128, 129), k=512, n=512, after=True)
    yield from family("heads", "heads", *sized("t")(1, 2, 7, 16, 31, 64, 127, 128), b=4, h=6, d=64)
    batches = sized("b", "t")((1, 64), (1, 256), (4, 256), (8, 256))
    yield from family("weight gradient", "weight_gradient", *batches, k=384, n=384)
    yield from family("weight gradient wide", "weight_gradient", *sized("t")(8, 64, 100, 256), b=8, k=192, n=768)
    yield from family("weight gradient behind heads", "heads_gradient", *batches, h=6, d=64, n=384)


def convolutions():
    images = sized("c", "o", "s")
    yield from family("images 3x3", "conv", *images((512, 512, 4), (256, 256, 8), (128, 128, 16), (64, 64, 32)), b=2)
    yield from family("512 channels", "conv", *sized("s")(1, 2, 3, 4, 5, 6, 7, 8), b=1, c=512, o=512)
    yield from family("64 channels", "conv", *sized("s")(1, 2, 4, 5, 7, 8, 13, 14, 16, 28, 31, 56), b=1, c=64, o=64)
    yield from family("1x1", "conv", *sized("s")(1, 2, 4, 7, 14, 28), b=1, c=256, o=256, w=1)
    yield from family("channels", "conv", *sized("c")(1, 2, 3, 4, 7, 8, 16, 17, 31, 32, 64), b=8, o=32, s=28)
    yield from family("out channels", "conv", *sized("o")(1, 2, 3, 5, 8, 10, 16, 17, 31, 32, 33), b=8, c=32, s=28)
    yield from family("windows", "conv", *sized("w")(1, 2, 3, 5, 7, 11), b=4, c=16, o=16, s=28)
    yield from family("stride 2", "conv", *images((3, 32, 28), (64, 64, 14), (64, 64, 28)), b=4, stride=2)
    yield from family("groups", "conv", *sized("c", "o", "groups")((8, 8, 8), (32, 32, 32), (64, 64, 64)), b=4, s=28)
    yield from family("conv norm", "conv_norm", *images((1, 8, 28), (8, 8, 28), (16, 8, 56)), b=32)
    yield from family("conv flatten", "conv_flat", *images((1, 8, 28), (8, 8, 28), (16, 8, 56)), b=32)
    yield from family("conv softmax", "conv_softmax", *images((1, 8, 28), (8, 8, 28)), b=32)


def reductions():
    for form in ("sum", "max", "softmax", "norm", "mean_square"):
        rows = sized("r", "c")(*[(1 << 19) // c // 8 * 8 and ((1 << 19) // c, c) for c in SHORT])
        yield from family(form, form, *rows)
    yield from family("argmax", "argmax", *sized("r", "c")((65536, 4), (32768, 10), (4096, 100), (512, 1000)))
    yield from family("sum f16", "sum", *sized("r", "c")((65536, 3), (32768, 10), (8192, 32), (512, 1000)), at="f16")
    yield from family("sum of columns", "sum_columns", *sized("r", "c")((1 << 18, 1), (1 << 18, 2), (1 << 17, 3), (1 << 16, 7),
                      (1 << 15, 16), (1 << 14, 31), (1 << 13, 64), (1 << 11, 255), (512, 1024)))
    yield from family("sum of the middle", "sum_middle", *sized("r", "c", "d")((1024, 64, 3), (512, 64, 16), (64, 64, 100),
                      (4, 1024, 100)))
    yield from family("softmax of columns", "softmax_columns", *sized("r", "c")((3, 1 << 16), (10, 1 << 15), (100, 1000), (512, 1000)))


def gathers():
    yield from family("gather", "take", *sized("d")(1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 64, 100, 256), n=4096, r=10000)
    yield from family("gather of columns", "take_columns", *sized("d")(3, 17, 64, 100), n=512, r=1000)
    yield from family("gather product", "take_dot", *sized("m")(1, 2, 7, 8, 16, 22, 23, 24, 31, 32), k=256, n=256, r=1000)


def copies():
    for s in (63, 64, 65, 127, 255, 256, 509, 512, 1000):
        yield frame.Case(f"transpose {s}", family="transpose", form="transpose", r=s, c=s)
    yield from family("transpose long", "transpose", *sized("c")(1, 2, 3, 4, 7, 8, 16, 31, 64), r=16384)
    permuted = sized("perm")(*["213", "132", "321", "231", "312"])
    yield from family("permute 100x64x96", "permute", *permuted, d1=100, d2=64, d3=96)
    yield from family("permute 31x97x33", "permute", *permuted, d1=31, d2=97, d3=33)
    yield from family("permute 4096x3x32", "permute", *permuted, d1=4096, d2=3, d3=32)
    for t in TYPES:
        yield from family(f"cast to {t}", "cast", *sized("r", "c")((1, 100000), (3001, 33), (1000, 1000)), to=t)
        yield from family(f"cast from {t}", "cast", *sized("r", "c")((1, 100000), (3001, 33), (1000, 1000)), at=t, to="f32")
    for form in ("slice", "step", "flip", "pad", "concat", "roll", "broadcast", "outer"):
        yield from family(form, form, *sized("r", "c")((100003, 3), (10007, 31), (10007, 32), (1000, 257), (1000, 512)))
    yield from family("reshape add", "reshape_add", *sized("r", "c")((32 * 8, 784), (100, 1000)))
    yield from family("repeat", "repeat", *sized("r", "c")((3001, 3), (1000, 31), (1000, 64)))


CASES = [c for some in (products, convolutions, reductions, gathers, copies) for c in some()]
for case in CASES:
    for name, value in (("b", 1), ("turned", ""), ("at", "f32"), ("bt", "f32"), ("out", ""), ("scale", False), ("before", False),
                        ("after", False), ("w", 3), ("stride", 1), ("groups", 1)):
        if name not in case.fields:
            case.fields[name] = value
            setattr(case, name, value)

# ---- inputs ---------------------------------------------------------------------------------------

IDS = ("take", "take_columns", "take_dot")


def shapes(c):
    """Names and shapes of what a form takes; both sides take them in the order of the names."""
    if c.form in ("dot", "take_dot"):
        found = {"a": (c.k, c.m) if "a" in c.turned else (c.m, c.k), "b": (c.n, c.k) if "b" in c.turned else (c.k, c.n)}
        if c.scale or c.after:
            found["c"] = (c.n,)
        if c.after:
            found["d"] = (c.m, c.n)
        return {**found, "e": (c.r, c.n)} if c.form == "take_dot" else found
    if c.form == "heads":
        return {"a": (c.b, c.t, c.h * c.d), "b": (c.b, c.t, c.h * c.d), "c": (c.b, c.t, c.h * c.d)}
    if c.form == "weight_gradient":
        return {"a": (c.b, c.t, c.k), "b": (c.b, c.t, c.n), "c": (c.k, c.n)}
    if c.form == "heads_gradient":
        return {"a": (c.b, c.h, c.t, c.d), "b": (c.b, c.t, c.n), "c": (c.h * c.d, c.n)}
    if c.form.startswith("conv"):
        return {"a": (c.b, c.c, c.s, c.s), "b": (c.o, c.c // c.groups, c.w, c.w)}
    if c.form == "sum_middle":
        return {"a": (c.r, c.c, c.d)}
    if c.form == "permute":
        return {"a": (c.d1, c.d2, c.d3)}
    if c.form.startswith("take"):
        return {"a": (c.r, c.d)} if c.form == "take" else {"a": (c.n, c.r)}
    if c.form == "reshape_add":
        return {"a": (c.r, c.c), "b": (c.c // 4, 4)}
    if c.form in ("concat",):
        return {"a": (c.r, c.c), "b": (c.r, c.c)}
    if c.form in ("broadcast", "outer"):
        return {"a": (c.r, c.c) if c.form == "broadcast" else (c.r,), "b": (c.c,)}
    return {"a": (c.r, c.c)}


def inputs(c, rng):
    import numpy as np
    found = {}
    for name, shape in shapes(c).items():
        values = rng.standard_normal(shape).astype(np.float32)
        if {"a": c.at, "b": c.bt}.get(name) == "i8":
            values = np.rint(values * 3)
        if c.form == "argmax":  # no two alike
            values = rng.permuted(np.broadcast_to(np.arange(shape[1], dtype=np.float32), shape), axis=1)
        found[name] = values
    if c.form in IDS:
        found["ids"] = rng.integers(0, c.r, {"take": c.__dict__.get("n"), "take_columns": c.__dict__.get("d"),
                                             "take_dot": c.__dict__.get("m")}[c.form], dtype=np.int32)
    return found


# ---- the peer -------------------------------------------------------------------------------------

def torch_dot(c):
    import torch
    F = torch.nn.functional

    def f(a, b, *more):
        a, b = a.mT if "a" in c.turned else a, b.mT if "b" in c.turned else b
        if c.at == "i8":
            return a.int() @ b.int()
        if c.at == "f16":
            return a.float() @ b.float()
        if c.bt != "f32":
            b = b.float() * more[0] if c.scale else b.float()
        y = (F.gelu(a) if c.before else a) @ b
        return F.gelu(y + more[0]) + more[1] if c.after else y

    return f


def torch_heads(c):
    import torch

    def f(q, k, v):
        q, k, v = (x.view(c.b, c.t, c.h, c.d).transpose(1, 2) for x in (q, k, v))
        return (torch.softmax(q @ k.mT * c.d**-0.5, -1) @ v).transpose(1, 2).reshape(c.b, c.t, c.h * c.d)

    return f


def torch_forms(c):
    import torch
    F = torch.nn.functional

    def conv(a, b):
        return F.conv2d(a, b, padding=c.w // 2 if c.w % 2 else 0, stride=c.stride, groups=c.groups)

    def flat(a, b):
        return conv(a, b).reshape(c.b, c.o, -1)

    return {
        "dot": torch_dot(c), "heads": torch_heads(c),
        "weight_gradient": lambda a, b, w: a.reshape(-1, c.k).mT @ b.reshape(-1, c.n),
        "heads_gradient": lambda a, b, w: a.transpose(1, 2).reshape(c.b * c.t, -1).mT @ b.reshape(-1, c.n),
        "conv": conv, "conv_norm": lambda a, b: F.layer_norm(flat(a, b), (flat_size(c),)),
        "conv_flat": lambda a, b: flat(a, b) + 1, "conv_softmax": lambda a, b: flat(a, b).softmax(-1),
        "sum": lambda a: a.sum(1), "max": lambda a: a.amax(1), "softmax": lambda a: a.softmax(1),
        "norm": lambda a: F.layer_norm(a, (c.c,)), "mean_square": lambda a: (a * a).mean(1),
        "argmax": lambda a: a.argmax(1), "sum_columns": lambda a: a.sum(0), "sum_middle": lambda a: a.sum(1),
        "softmax_columns": lambda a: a.softmax(0), "take": lambda a, i: a[i], "take_columns": lambda a, i: a[:, i],
        "take_dot": lambda a, b, e, i: e[i] + a @ b, "transpose": lambda a: a.mT.contiguous(),
        "permute": lambda a: a.permute([int(p) - 1 for p in c.perm]).contiguous(),
        "cast": lambda a: a.to(torch_type(c.to)), "slice": lambda a: a[1:, 1:] + 1, "step": lambda a: a[::2] + 1,
        "flip": lambda a: a.flip(1), "pad": lambda a: F.pad(a, (1, 2)), "concat": lambda a, b: torch.cat((a, b), 1),
        "roll": lambda a: a.roll(1, 1), "broadcast": lambda a, b: a * b, "outer": lambda a, b: a[:, None] * b,
        "reshape_add": lambda a, b: a.reshape(c.r, -1, 4) + b,
        "repeat": lambda a: a[:, :, None].expand(-1, -1, 4).reshape(c.r, -1),
    }[c.form]


def flat_size(c):
    return (c.s // c.stride) ** 2


def torch_type(name):
    import torch
    return {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i8": torch.int8}[name]


def torch_side(c, inputs):
    import torch
    args = {name: torch.from_numpy(x) for name, x in inputs.items()}
    for name, t in (("a", c.at), ("b", c.bt)):
        if name in args:
            args[name] = args[name].to(torch_type(t))
    if "ids" in args:
        args["ids"] = args["ids"].long()
    f, values = torch_forms(c), [args[name] for name in sorted(args)]

    def run(n):
        with torch.no_grad():
            for _ in range(n):
                y = f(*values)
        return {"y": y.float()}

    return run


# ---- measuring ------------------------------------------------------------------------------------

class Sweep:
    def __init__(self, options, sides, seed):
        self.options, self.sides, self.seed, self.times = options, sides, seed, {}

    def measure(self, case, ms, rounds, first=True):
        """Keeps the medians of both sides; of two measurements the lower one of each side."""
        import numpy as np
        with tempfile.TemporaryDirectory(prefix="deepc-bench-") as folder:
            frame.save_inputs(folder, inputs(case, np.random.default_rng(self.seed + case.index)))
            mine = None
            for side in self.sides:
                mine = frame.prepare(case, case.label, side, folder, 2e-3, mine)
            counts = {side.name: frame.iterations(side, ms / 1e3) for side in self.sides}
            found = frame.rounds(self.sides, counts, rounds)
        new = (found["deepc"], found["torch"])
        old = self.times.get(case)
        self.times[case] = new if old is None else tuple(map(min, old, new))

    def ratio(self, case):
        mine, peer = self.times[case]
        return peer / mine

    def cliffs(self):
        """(times the next larger one, case, that), the largest first."""
        found, cases = [], list(self.times)
        for a, b in zip(cases, cases[1:]):
            if a.family == b.family:
                found.append((self.times[a][0] / self.times[b][0], a, b))
        return sorted(found, key=lambda x: -x[0])

    def worst(self):
        return sorted(self.times, key=self.ratio)

    def doubtful(self):
        return [c for c in self.worst()[:AGAIN] if self.ratio(c) < RATIO] + \
               [c for times, c, _ in self.cliffs()[:AGAIN] if times > CLIFF]

    def show(self, threads):
        print(f"worst ratios to the peer ({RATIO:g} is wanted), {len(self.times)} cases, "
              f"{sum(self.ratio(c) < RATIO for c in self.times)} below:")
        for c in self.worst()[:WORST]:
            print(f"  {self.ratio(c):.2f}  {self.line(c)}")
        cliffs = self.cliffs()
        print(f"largest cliffs (times the next larger one; at most {CLIFF:g} is wanted):")
        for times, a, b in cliffs[:WORST]:
            print(f"  {times:.2f}  {self.line(a)} against {frame.show_time(self.times[b][0])} of {b.label}")
        print(f"worst ratio {self.ratio(self.worst()[0]):.2f}, largest cliff {cliffs[0][0] if cliffs else 0:.2f}")

    def line(self, case):
        mine, peer = self.times[case]
        return f"{case.label}: deepc {frame.show_time(mine)}, torch {frame.show_time(peer)}"


def tell(sweep, cases):
    """A line for a family."""
    low = min(cases, key=sweep.ratio)
    mean = statistics.geometric_mean(sweep.ratio(c) for c in cases)
    print(f"{cases[0].family}: {len(cases)} sizes, ratio {mean:.2f} on average, lowest {sweep.ratio(low):.2f} ({sweep.line(low)})",
          flush=True)


def sweep_all(options, cases, seed, threads):
    report = frame.Report("shapes")
    cpus = set(sorted(frame.os.sched_getaffinity(0))[-threads:])
    sides = frame.start_sides("shapes", ["torch"], threads, cpus, report)
    if report.missing:
        report.end()
    sweep = Sweep(options, sides, seed)
    for i, case in enumerate(cases):
        sweep.measure(case, options.ms, options.rounds)
        if options.all:
            print(f"  {sweep.ratio(case):.2f}  {sweep.line(case)}", flush=True)
        if i + 1 == len(cases) or cases[i + 1].family != case.family:
            tell(sweep, [c for c in cases if c.family == case.family])
    for case in dict.fromkeys(sweep.doubtful()):
        sweep.measure(case, 4 * options.ms, 2 * options.rounds + 1)
    sweep.show(threads)
    for side in sides:
        side.end()


def main():
    every = "--all" in sys.argv
    sys.argv = [a for a in sys.argv if a != "--all"]
    options = frame.read_options("shapes", "1", rounds=3, ms=4)
    options.all = every
    seed = frame.begin("shapes", CASES, {"torch": torch_side}, options)
    if seed is None:
        return
    for t in [int(t) for t in options.threads.split(",")]:
        print(f"  {t} thread{'s' * (t > 1)}")
        sweep_all(options, [c for c in CASES if frame.re.search(options.case, c.label)], seed, t)


if __name__ == "__main__":
    main()
