"""Vectors of texts by all-MiniLM-L6-v2, beside PyTorch (transformers) and ONNX Runtime.

    scripts/bench embeddings [--case PATTERN] [--threads 1,2] [--rounds N] [--ms N]

The folder of the model is minilm in DEEPC_MODELS, or ~/.cache/models. One text of so many tokens, with a mask: the means of its
tokens' vectors, of length 1, as net:embed gives them. "of any length": a function that is compiled once for all lengths
up to 128, "tokens": once for this one. ONNX Runtime runs the graph that torch.onnx writes of transformers' model, with masks of
any size, after what its own optimizer for BERT makes of it.
"""
import os
import sys
import tempfile

import frame

sys.path = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]  # for tokenizers

MODELS = os.environ.get("DEEPC_MODELS", os.path.expanduser("~/.cache/models"))
FOLDER = f"{MODELS}/minilm"
WEIGHTS = 10_650_000  # of the layers; embeddings are looked up


def case(tokens, batch=1, most=0):
    label = f"{tokens} tokens" + (f", batch {batch}" if batch > 1 else "") + (", of any length" if most else "")
    return frame.Case(label, flops=2 * WEIGHTS * tokens * batch, folder=FOLDER, tokens=tokens, batch=batch, most=most)


CASES = [case(t) for t in (8, 32, 128)] + [case(t, most=128) for t in (8, 32, 128)] + [case(32, batch=8)]


def inputs(c, rng):
    import numpy as np
    return {"ids": rng.integers(1000, 30000, (c.batch, c.tokens)).astype(np.int32),
            "mask": np.ones((c.batch, c.tokens), dtype=np.int32)}


def torch_model(attention):
    import torch
    import transformers
    transformers.utils.logging.disable_progress_bar()
    net = transformers.AutoModel.from_pretrained(FOLDER, attn_implementation=attention)

    class Embed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, ids, mask):
            x = self.net(input_ids=ids, attention_mask=mask).last_hidden_state
            m = mask.unsqueeze(-1).to(x.dtype)
            y = (x * m).sum(1) / m.sum(1).clamp(min=1e-9)
            return torch.nn.functional.normalize(y, dim=1)

    return Embed().eval()


def torch_side(c, inputs):
    import torch
    net = torch_model("sdpa")
    ids, mask = (torch.from_numpy(inputs[name]).long() for name in ("ids", "mask"))

    def run(n):
        with torch.inference_mode():
            for _ in range(n):
                y = net(ids, mask)
        return {"y": y}

    return run


def onnx_file():
    """Written once for this computer, then read."""
    import torch
    file = os.path.join(tempfile.gettempdir(), "deepc-bench-minilm.onnx")
    if not os.path.exists(file):
        from onnxruntime.transformers import optimizer
        ids = torch.randint(1000, 30000, (2, 16))
        names, dims = ["ids", "mask"], {0: "batch", 1: "time"}
        torch.onnx.export(torch_model("eager"), (ids, torch.ones_like(ids)), file + ".raw", dynamo=False, opset_version=17,
                          input_names=names, output_names=["y"], dynamic_axes={name: dims for name in names})
        made = optimizer.optimize_model(file + ".raw", model_type="bert", num_heads=12, hidden_size=384, opt_level=1)
        made.save_model_to_file(file + ".made")
        os.rename(file + ".made", file)
    return file


def onnx_side(c, inputs):
    import numpy as np
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ["OMP_NUM_THREADS"])
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(onnx_file(), options, providers=["CPUExecutionProvider"])
    feed = {name: inputs[name].astype(np.int64) for name in ("ids", "mask")}

    def run(n):
        for _ in range(n):
            y, = session.run(None, feed)
        return {"y": y}

    return run


if __name__ == "__main__":
    frame.main("embeddings", CASES, inputs, {"torch": torch_side, "onnxruntime": onnx_side}, tolerance=1e-5)
