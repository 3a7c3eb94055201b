"""python tests/peers/peer.py DIR TABLE: what PyTorch, NumPy and SciPy make of the arguments in DIR, as a safetensors file."""
import json
import struct
import sys
import warnings

import numpy as np
import scipy
import scipy.linalg
import scipy.special
import scipy.stats
import torch
import torch.nn.functional as F

warnings.simplefilter("ignore")
torch.set_num_threads(1)
NAMES = {"BOOL": np.bool_, "I8": np.int8, "I16": np.int16, "I32": np.int32, "I64": np.int64, "U8": np.uint8,
         "U16": np.uint16, "U32": np.uint32, "U64": np.uint64, "F16": np.float16, "F32": np.float32, "F64": np.float64,
         "C64": np.complex64, "C128": np.complex128}
CODES = {np.dtype(v): k for k, v in NAMES.items()}


def read(path):
    with open(path, "rb") as f:
        data = f.read()
    n = struct.unpack("<Q", data[:8])[0]
    out = {}
    for name, row in json.loads(data[8:8 + n]).items():
        if name == "__metadata__":
            continue
        a, b = row["data_offsets"]
        raw = data[8 + n + a:8 + n + b]
        if row["dtype"] == "BF16":
            value = torch.frombuffer(bytearray(raw), dtype=torch.bfloat16).reshape(row["shape"])
        else:
            value = np.frombuffer(raw, NAMES[row["dtype"]]).reshape(row["shape"]).copy()
        out[name] = value
    return out


def write(path, tensors):
    header, parts, at = {}, [], 0
    for name in sorted(tensors):
        raw = tensors[name].tobytes()
        header[name] = {"dtype": CODES[tensors[name].dtype], "shape": list(tensors[name].shape),
                        "data_offsets": [at, at + len(raw)]}
        parts.append(raw)
        at += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def array(value):
    if isinstance(value, torch.Tensor):
        value = value.detach()
        value = value.resolve_conj().resolve_neg()
        value = value.to(torch.float32) if value.dtype in (torch.bfloat16, torch.float16) else value
        value = value.numpy()
    return np.ascontiguousarray(np.asarray(value)).reshape(np.shape(value))


def evaluate(text, scope):
    scope = dict(scope, torch=torch, F=F, np=np, scipy=scipy)
    try:
        code = compile(text.strip(), "peer", "eval")
    except SyntaxError:
        exec(compile(text, "peer", "exec"), scope)
        return scope["result"]
    return eval(code, scope)


def one(row, arguments):
    scope = {}
    for name in row["args"]:
        value = arguments[row["key"] + "/" + name]
        if not row["numpy"]:
            value = torch.as_tensor(value)
            if name in row["grads"]:
                value.requires_grad_(True)
        scope[name] = value
    torch.manual_seed(0)
    results = evaluate(row["peer"], scope)
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    out = {"result.%d" % (i + 1): array(y) for i, y in enumerate(results)}
    if row["grads"]:
        loss, at = 0, 0
        for y in results:
            if y.is_floating_point() or y.is_complex():
                w = torch.cos(torch.arange(at + 1, at + 1 + y.numel(), dtype=torch.float64))
                at += y.numel()
                part = y.reshape(-1) * w.to(y.dtype)
                loss = loss + (part.real if y.is_complex() else part).sum().double()
        if not loss.requires_grad:
            raise ValueError("the peer has no gradient: say grad = false")
        leaves = [scope[name] for name in row["grads"]]
        for name, leaf, g in zip(row["grads"], leaves, torch.autograd.grad(loss, leaves, allow_unused=True)):
            out["grad." + name] = array(torch.zeros_like(leaf) if g is None else g)
    return out


def main():
    directory, table = sys.argv[1:]
    arguments = read(directory + "/arguments.safetensors")
    tensors, failed = {}, 0
    for row in json.load(open(directory + "/list.json")):
        try:
            for name, value in one(row, arguments).items():
                tensors[row["key"] + "/" + name] = value
        except Exception as e:  # a wrong case must not hide the others
            print("%s: %s: %s" % (row["key"], type(e).__name__, e), file=sys.stderr)
            failed = 1
    write(table, tensors)
    return failed


sys.exit(main())
