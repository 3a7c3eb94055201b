"""A training step of GPT-2 on a GPU: letters, blocks, logits, cross entropy, gradients, AdamW.

    scripts/bench gpu-gpt [--tiny] [--case PATTERN] [--peer PATTERN] [--rounds N] [--ms N]

GPT-2 small has 12 blocks of width 768, 12 heads, 50257 letters and a head of its own: 124M parameters and 39M for the head.
bf16: products of bf16, everything else f32 (PyTorch's autocast). PyTorch's attention is its fused one; deepc's is several
kernels.
"""
import contextlib

import gpu_frame
import training

KINDS = {"qkv": (1, 3), "proj": (1, 1), "fc1": (1, 4), "fc2": (4, 1)}  # inputs, outputs in widths


def case(label, dtype, layers, width, heads, letters, time, batch):
    given = [("ids", (batch, time), "i32", letters), ("next", (batch, time), "i32", letters),
             ("embed", (letters, width), "f32", 0.04), ("place", (time, width), "f32", 0.04),
             ("head", (width, letters), "f32", 0.04)]
    for i in range(layers):
        for name, (a, b) in KINDS.items():
            given += [(f"{name}{i}", (a * width, b * width), "f32", 0.04), (f"{name}{i}_bias", (b * width,), "f32", 0.02)]
    weights = layers * 12 * width ** 2 + width * letters
    flops = batch * time * (6 * weights + 6 * layers * width * time)  # attention: the half that is needed
    return gpu_frame.case(f"{dtype} {label}, {batch} x {time}", given, turn=False, later=(2, 2e-2), flops=flops, dtype=dtype,
                          layers=layers, width=width, heads=heads, letters=letters, time=time, batch=batch,
                          tolerance=1e-2 if dtype == "bf16" else 1e-3)


if gpu_frame.TINY:
    CASES = [case("tiny", d, 1, 32, 2, 50, 16, 2) for d in ("f32", "bf16")]
else:
    CASES = [case("4 blocks of 256", d, 4, 256, 8, 8000, 256, 16) for d in ("f32", "bf16")]
    CASES += [case("GPT-2 small", "f32", 12, 768, 12, 50257, 1024, 4),
              case("GPT-2 small", "bf16", 12, 768, 12, 50257, 1024, 16)]


def torch_side(c, _, compiled=False):
    import torch
    from torch.nn import functional as F
    torch._dynamo.reset()
    torch.backends.cuda.matmul.allow_tf32 = False
    given, place = gpu_frame.inputs(c), gpu_frame.device()
    P = torch.nn.Parameter

    class Block(torch.nn.Module):
        def __init__(self, i):
            super().__init__()
            self.norm1, self.norm2 = torch.nn.LayerNorm(c.width), torch.nn.LayerNorm(c.width)
            for name, (a, b) in KINDS.items():
                layer = torch.nn.Linear(a * c.width, b * c.width)
                layer.weight, layer.bias = P(given[f"{name}{i}"].t().contiguous()), P(given[f"{name}{i}_bias"])
                setattr(self, name, layer)

        def forward(self, x):
            parts = self.qkv(self.norm1(x)).reshape(c.batch, c.time, 3, c.heads, -1).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=True)
            x = x + self.proj(y.transpose(1, 2).reshape(c.batch, c.time, c.width))
            return x + self.fc2(F.gelu(self.fc1(self.norm2(x)), approximate="tanh"))

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.place, self.head = P(given["embed"]), P(given["place"]), P(given["head"])
            self.blocks = torch.nn.Sequential(*[Block(i) for i in range(c.layers)])
            self.norm = torch.nn.LayerNorm(c.width)

        def forward(self, ids):
            return self.norm(self.blocks(F.embedding(ids, self.embed) + self.place)) @ self.head

    net = Model().to(place)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.0, **({} if compiled else {"fused": True}))
    ids, following = given["ids"].long(), given["next"].long().reshape(-1)

    def loss_of(x, y):
        with torch.autocast(place, torch.bfloat16) if c.dtype == "bf16" else contextlib.nullcontext():
            logits = net(x)
        return F.cross_entropy(logits.float().reshape(-1, c.letters), y)

    return gpu_frame.waited(training.torch_training(net, opt, loss_of, ids, following, compiled))


def torch_compile(c, inputs):
    return torch_side(c, inputs, compiled=True)


PEERS = {"torch eager": torch_side, "torch.compile": torch_compile}

if __name__ == "__main__":
    gpu_frame.main("gpu-gpt", CASES, PEERS)
