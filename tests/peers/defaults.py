"""Reads names of PyTorch, one a line, and prints those that have defaults, with these: `name parameter=value ...`, a value
being a number, none, true, false, a 'text', a name of something or values in brackets. scripts/peers defaults."""
import ast
import importlib
import inspect
import re
import sys


def find(name):
    here = importlib.import_module("torch")
    parts = name.split(".")
    for i, part in enumerate(parts[1:], 2):
        if not hasattr(here, part):
            importlib.import_module(".".join(parts[:i]))
        here = getattr(here, part)
    return here


def from_text(text):
    """Of functions in C: what their description begins with, `name(input, dim=1, eps=1e-8) -> Tensor`."""
    head = re.match(r"\s*\w+\((.*?)\)\s*(?:->|:)", text or "", re.S)
    pairs = re.findall(r"(\w+)\s*=\s*([^,)]+)", head.group(1)) if head else []
    return {key: ast.literal_eval(value.strip()) for key, value in pairs}


def defaults(thing):
    import torch
    if inspect.isclass(thing) and issubclass(thing, torch.nn.RNNBase) and thing is not torch.nn.RNNBase:
        found = defaults(torch.nn.RNNBase)  # their own signature is (*args, **kwargs)
        layer = thing(1, 1)
        if thing is not torch.nn.LSTM:
            del found["proj_size"]
        return found | ({"nonlinearity": layer.nonlinearity} if hasattr(layer, "nonlinearity") else {})
    try:
        parameters = inspect.signature(thing).parameters
    except (ValueError, TypeError):
        return from_text(thing.__doc__)
    return {key: p.default for key, p in parameters.items() if p.default is not p.empty}


def shown(value):
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (tuple, list)):
        return "[" + ",".join(map(shown, value)) + "]"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return "'" + value + "'"
    return getattr(value, "__name__", type(value).__name__)


import torch  # noqa: E402

print(f"# PyTorch {torch.__version__.split('+')[0]}; scripts/peers defaults writes this")
for name in sorted(set(sys.stdin.read().split())):
    found = defaults(find(name))
    if found:
        print(name, *(f"{key}={shown(value)}" for key, value in found.items()))
