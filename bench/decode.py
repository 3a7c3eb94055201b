"""A decoder as a chat meets it: SmolLM2-135M, beside llama.cpp on the same files.

    scripts/bench decode [--case PATTERN] [--threads 1,2] [--rounds N] [--ms N]

"token": one token behind 64 to 127 others; "prompt": 128 tokens into an empty cache. The tokens are drawn, not chosen, so both
sides read the same ones. Forms are those of the weights: the .gguf file in smollm2 of DEEPC_MODELS, or ~/.cache/models, is the
last, and `deepc convert` makes the others of it, once for this computer. Rates are those of the weights that are read. Logits are
compared: with quantised weights llama.cpp rounds what it multiplies them by to i8, and its logits are 4 % of the largest one off
the exact ones, of tokens that are drawn. deepc rounds it to 16 bits, and to i8 in the forms "+ i8". How deepc loads a form is LOAD in decode.lua. LLAMA_CPP_LIB_PATH names another
folder of llama.cpp's libraries, where those of the package use instructions that the computer refuses.
"""
import glob
import os
import subprocess
import tempfile

import frame

MODELS = os.environ.get("DEEPC_MODELS", os.path.expanduser("~/.cache/models"))
FOLDER = os.path.join(tempfile.gettempdir(), "deepc-bench-decode")
PARAMETERS, VOCABULARY, BEFORE, PROMPT = 134_515_008, 49152, 64, 128
BYTES = {"f32": 4, "f16": 2, "q8_0": 34 / 32, "q4_1": 20 / 32}
FORMS = [*BYTES, "q8_0 + i8", "q4_1 + i8"]
TOLERANCE = {"f32": 1e-3, "f16": 1e-2, "q8_0": 0.15, "q4_1": 0.15}


def file_of(form):
    """The file of a form, made where there is none."""
    found = glob.glob(f"{MODELS}/smollm2/*.Q4_1.gguf")
    if not found:
        raise SystemExit(f"decode: {MODELS}/smollm2 has no SmolLM2-135M-Instruct.Q4_1.gguf")
    if form == "q4_1":
        return found[0]
    file = f"{FOLDER}/{form}.gguf"
    if not os.path.exists(file):
        os.makedirs(FOLDER, exist_ok=True)
        subprocess.run([frame.deepc_program(), "convert", found[0], f"{file}.gguf", "--type", form], check=True)
        os.rename(f"{file}.gguf", file)
    return file


def case(form, rule):
    weights = form.split()[0]
    read = PARAMETERS * BYTES[weights]
    return frame.Case(f"{rule}, {form}", bytes=read if rule == "token" else 0,
                      flops=2 * (PARAMETERS - VOCABULARY * 576) * PROMPT if rule == "prompt" else 0, form=form, rule=rule,
                      before=BEFORE, prompt=PROMPT, file=file_of(weights), tolerance=TOLERANCE[weights])


CASES = [case(form, rule) for rule in ("token", "prompt") for form in FORMS]


def inputs(c, rng):
    import numpy as np
    return {"ids": rng.integers(100, VOCABULARY, PROMPT).astype(np.int32)}


def llama(file, threads):
    import llama_cpp
    return llama_cpp.Llama(model_path=file, n_ctx=256, n_batch=PROMPT, n_ubatch=PROMPT, n_threads=threads,
                           n_threads_batch=threads, verbose=False)


def llama_side(c, inputs):
    import llama_cpp
    import numpy as np
    net = llama(c.file, int(os.environ["OMP_NUM_THREADS"]))
    ids = inputs["ids"].tolist()

    def logits():
        pointer = llama_cpp.llama_get_logits_ith(net.ctx, -1)
        return {"y": np.ctypeslib.as_array(pointer, shape=(net.n_vocab(),)).copy()}

    if c.rule == "prompt":
        def read(n):
            for _ in range(n):
                net.reset()
                net.eval(ids)
            return logits()
        return read

    net.eval(ids[:BEFORE])

    def write(n):
        for _ in range(n):
            if net.n_tokens == PROMPT:
                net.n_tokens = BEFORE
            net.eval([ids[net.n_tokens]])
        return logits()

    return write


if __name__ == "__main__":
    frame.main("decode", CASES, inputs, {"llama.cpp": llama_side})
