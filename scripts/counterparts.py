#!/usr/bin/env python3
"""Reads names, one a line, and prints those that PyTorch, JAX, Flax or Optax do not have; then runs the Python of the first
table of docs/coming-from.md and compares what it gives: scripts/counterparts --check."""
import functools
import importlib
import re
import sys

ROOTS = {"torch": "torch", "jax": "jax", "flax": "flax", "optax": "optax"}
versions, missing = {}, {}


@functools.lru_cache(None)
def module(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def exists(name):
    """Whether a dotted name is a module, or something in one."""
    if name.startswith("jax.Array."):  # an abstract class, which does not list all that its arrays have
        return hasattr(module("jax.numpy").zeros(1), name[len("jax.Array."):])
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        here = module(".".join(parts[:cut]))
        if here is not None:
            for part in parts[cut:]:
                if not hasattr(here, part):
                    return False
                here = getattr(here, part)
            return True
    return False


wrong = count = 0
for name in sorted(set(sys.stdin.read().split())):
    root = name.split(".")[0]
    if root not in ROOTS:
        print(f"{name}: of none of these packages")
        wrong += 1
    elif module(ROOTS[root]) is None:
        missing[root] = missing.get(root, 0) + 1
    else:
        versions[root] = module(ROOTS[root]).__version__
        count += 1
        if not exists(name):
            print(f"{name}: does not exist")
            wrong += 1


def differences():
    """Rows of the table: (code of PyTorch, code of JAX, what both give)."""
    with open("docs/coming-from.md", encoding="utf-8") as f:
        text = f.read()
    for line in text[:text.index("\n## A step")].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if len(cells) == 5 and re.fullmatch("`[^`]*`", cells[4]):
            yield [cell[1:-1] if re.fullmatch("`[^`]*`", cell) else None for cell in cells[1:3]] + [cells[4][1:-1]]


def same(value, text):
    return abs(float(value) - float({"true": 1, "false": 0}.get(text, text))) < 1e-6


values = {}
if module("torch"):
    import torch
    values[0] = {"torch": torch, "F": torch.nn.functional, "x": torch.arange(6.0).reshape(2, 3), "y": torch.tensor([0, 2])}
if module("jax"):
    import jax
    import jax.numpy as jnp
    values[1] = {"jax": jax, "jnp": jnp, "x": jnp.arange(6.0).reshape(2, 3), "y": jnp.array([0, 2])}
for row in differences():
    for i, names in values.items():
        if row[i]:
            count += 1
            result = eval(row[i], names)
            if not same(result, row[2]):
                print(f"{row[i]}: gives {result}, not {row[2]}")
                wrong += 1
for root, names in missing.items():
    print(f"skip: {root} is not installed, {names} names")
print("with " + ", ".join(f"{k} {v}" for k, v in versions.items()))
print(f"{count - wrong} passed, {wrong} failed" + (f", {sum(missing.values())} skipped" if missing else ""))
sys.exit(1 if wrong else 0 if count else 77)
