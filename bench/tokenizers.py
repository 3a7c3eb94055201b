"""Tokenizers: 1 MB of English text to ids and back, whole and line by line, beside the Python package, on one thread.

    scripts/bench tokenizers [--case PATTERN] [--rounds N]

The text is that of bible-kjv (Debian). Byte-level BPE is SmolLM2's, of its GGUF file, WordPiece MiniLM's tokenizer.json, both
in DEEPC_MODELS, or ~/.cache/models; the others are the small ones of tests/lua/tokenizers. Ids have to be the same.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

import frame

sys.path = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]  # for the package

os.environ["TOKENIZERS_PARALLELISM"] = "false"
HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.environ.get("DEEPC_MODELS", os.path.expanduser("~/.cache/models"))
FOLDER = os.path.join(tempfile.gettempdir(), "deepc-bench-tokenizers")
SMALL = os.path.join(HERE, "../tests/lua/tokenizers")
FILES = {"SmolLM2": f"{FOLDER}/smollm2.json", "MiniLM": f"{MODELS}/minilm/tokenizer.json",
         "Llama 2's kind": f"{SMALL}/llama2.json", "Unigram": f"{SMALL}/unigram.json"}

CASES = [frame.Case(f"{model}, {kind}", kind=kind, file=file, text=f"{FOLDER}/text")
         for model, file in FILES.items() for kind in ("whole", "lines", "decode")]


def make_files():
    os.makedirs(FOLDER, exist_ok=True)
    if not os.path.exists(f"{FOLDER}/text"):
        bible = subprocess.run(["bible", "-f", "gen1:1-rev22:21"], stdout=subprocess.PIPE, check=True).stdout
        with open(f"{FOLDER}/text", "wb") as f:
            f.write(bible[:1000000])
    found = glob.glob(f"{MODELS}/smollm2/*.gguf")
    if found and not os.path.exists(FILES["SmolLM2"]):
        from gguf import GGUFReader
        fields = GGUFReader(found[0]).fields
        tokens, merges = (fields["tokenizer.ggml." + k].contents() for k in ("tokens", "merges"))
        digits = {"type": "Digits", "individual_digits": True}
        byte = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
        whole = {"version": "1.0", "added_tokens": [], "normalizer": None, "post_processor": None, "decoder": byte,
                 "pre_tokenizer": {"type": "Sequence", "pretokenizers": [digits, byte]},
                 "model": {"type": "BPE", "vocab": {t: i for i, t in enumerate(tokens)}, "merges": merges}}
        with open(FILES["SmolLM2"], "w") as f:
            json.dump(whole, f)


def inputs(c, rng):
    import numpy as np
    make_files()
    return {"unused": np.zeros(1, dtype=np.float32)}


def package_side(c, _):
    import numpy as np
    import tokenizers
    if not os.path.exists(c.file):
        raise frame.Missing(c.file)
    t = tokenizers.Tokenizer.from_file(c.file)
    t.no_truncation()
    t.no_padding()
    with open(c.text) as f:
        text = f.read()
    lines, ids = text.splitlines(keepends=True), t.encode(text, add_special_tokens=False).ids

    def total(lists):
        return np.array([sum(map(sum, lists)) % 1000003], dtype=np.float32)

    def run(n):
        for _ in range(n):
            if c.kind == "whole":
                out = [t.encode(text, add_special_tokens=False).ids]
            elif c.kind == "lines":
                out = [t.encode(line, add_special_tokens=False).ids for line in lines]
            else:
                out = [t.decode(ids).encode()]
        return {"sum": total(out)}

    return run


if __name__ == "__main__":
    frame.main("tokenizers", CASES, inputs, {"tokenizers": package_side}, tolerance=0, threads="1", rounds=3)
