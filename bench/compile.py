"""From the definition of a network to the result of its first training step: tracing, compilation,
one step.

    scripts/bench compile [--case PATTERN] [--peer PATTERN] [--rounds N]

Each measurement is a process of its own that has imported what it needs and holds the inputs. `cold`
begins with empty caches on disk, `warm` finds in them what the process before it has written (deepc's
own cache, inductor's, jax's persistent cache, tinygrad's). LLVM's library is in the system's file
cache: it is opened once before anything is measured.
"""
import frame
import cnn
import gpt
import mlp


def renamed(net, case):
    case.net = case.fields["net"] = net
    case.label, case.later, case.peers = f"{net} {case.label}", None, "|".join(SIDES[net].PEERS)
    return case


SIDES = {"mlp": mlp, "cnn": cnn, "gpt": gpt}
CASES = [renamed("mlp", mlp.case("adam", (784, 128, 64, 10), 64)),
         *[renamed("cnn", c) for c in cnn.CASES if c.rule == "adam"], renamed("gpt", gpt.case(12))]


def inputs(c, rng):
    return SIDES[c.net].inputs(c, rng)


def peer(name):
    return lambda c, x: SIDES[c.net].PEERS[name](c, x)


PEERS = {name: peer(name) for name in ("torch.compile", "jax.jit", "tinygrad")}

if __name__ == "__main__":
    frame.main_fresh("compile", CASES, inputs, PEERS, tolerance=1e-3, threads="2")
