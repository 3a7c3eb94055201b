"""From a file to the first token, in new processes: SmolLM2-135M, beside llama.cpp and beside reading the file once.

    scripts/bench start [--case PATTERN] [--rounds N] [--threads N]

Loading, a prompt of 16 tokens and the logits behind it; importing is not counted. cold and warm are deepc's caches on disk; the file
is in memory for all. Forms of the weights are those of bench/decode.py.
"""
import decode
import frame

CASES = [frame.Case(form, form=form, rule="prompt", prompt=16, before=0, file=decode.file_of(form),
                    tolerance=decode.TOLERANCE[form]) for form in decode.BYTES]


def inputs(c, rng):
    import numpy as np
    return {"ids": rng.integers(100, decode.VOCABULARY, c.prompt).astype(np.int32)}


def read_side(c, inputs):
    def run(n):
        with open(c.file, "rb", buffering=0) as f:
            piece = bytearray(1 << 20)
            while f.readinto(piece):
                pass
    return run


if __name__ == "__main__":
    frame.main_fresh("start", CASES, inputs, {"llama_cpp": decode.llama_side, "os.read": read_side}, yardsticks=("os.read",))
