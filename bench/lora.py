"""A training step of adapters of low rank in SmolLM2-135M, beside PyTorch (transformers).

    scripts/bench lora [--case PATTERN] [--threads 1,2] [--rounds N] [--ms N]

Rank 8 beside the projections of queries and values, AdamW, f32; B is 0 and A drawn, the same for both. The tokens are drawn. The
first loss is compared, and the one after five steps. The model is the .gguf file in smollm2 of DEEPC_MODELS, or ~/.cache/models,
whose weights become f32 on both sides.
"""
import glob
import os
import sys

import frame

sys.path = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]  # for tokenizers

MODELS = os.environ.get("DEEPC_MODELS", os.path.expanduser("~/.cache/models"))
PARAMETERS, LAYERS, WIDTH, RANK = 134_515_008, 30, 576, 8


def case(batch, tokens):
    files = glob.glob(f"{MODELS}/smollm2/*.Q4_1.gguf")
    if not files:
        raise SystemExit(f"lora: {MODELS}/smollm2 has no SmolLM2-135M-Instruct.Q4_1.gguf")
    return frame.Case(f"{batch} x {tokens} tokens", flops=4 * PARAMETERS * batch * tokens, later=(5, 2e-3), file=files[0],
                      batch=batch, tokens=tokens, rank=RANK, rate=1e-3)


CASES = [case(1, 128), case(4, 64)]


def inputs(c, rng):
    import numpy as np
    return {"ids": rng.integers(100, 49152, (c.batch, c.tokens + 1)).astype(np.int32),
            "a": rng.uniform(-1, 1, (2 * LAYERS, WIDTH, RANK)).astype(np.float32) / WIDTH ** 0.5}


def torch_side(c, inputs):
    import torch
    import transformers
    transformers.utils.logging.disable_progress_bar()
    folder, name = os.path.split(c.file)
    net = transformers.AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32)
    net.requires_grad_(False)
    trained = []

    class Adapted(torch.nn.Module):
        def __init__(self, layer, a):
            super().__init__()
            self.layer = layer
            self.a = torch.nn.Parameter(torch.from_numpy(a).clone())
            self.b = torch.nn.Parameter(torch.zeros(c.rank, layer.out_features))
            trained.extend((self.a, self.b))

        def forward(self, x):
            return self.layer(x) + x @ self.a @ self.b * 2.0

    for i, layer in enumerate(net.model.layers):
        layer.self_attn.q_proj = Adapted(layer.self_attn.q_proj, inputs["a"][2 * i])
        layer.self_attn.v_proj = Adapted(layer.self_attn.v_proj, inputs["a"][2 * i + 1])
    opt = torch.optim.AdamW(trained, lr=c.rate, weight_decay=0.0)
    ids = torch.from_numpy(inputs["ids"]).long()

    def run(n):
        for _ in range(n):
            logits = net(ids[:, :-1], use_cache=False).logits
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
            opt.zero_grad()
            loss.backward()
            opt.step()
        return {"loss": loss}

    return run


if __name__ == "__main__":
    frame.main("lora", CASES, inputs, {"torch": torch_side}, tolerance=1e-4)
