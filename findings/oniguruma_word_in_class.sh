#!/bin/sh
# Oniguruma, as the package tokenizers 0.23.3 has it: \w and [\w] are not the same characters. \w, \W, \b and \p{Word} outside of
# a class take U+00B2, U+00B3, U+00B9 and U+00BC to U+00BE (superscripts two, three and one, the fractions) for parts of
# words; [\w], [^\W], [\p{Word}] and [[:word:]] do not, nor does either take U+2460 for one, a digit in a circle.
#
# One would put a shorthand into brackets to add a character to it, as in [\w'], and expect it to keep what it had. It
# loses these six: of code points below U+0100 the shorthand by itself asks a table of its own. So a tokenizer whose pattern
# says \w+ and one that says [\w]+ cut "10m²" in two ways.
#
#     text  a 1 ² b     \w+: one piece     [\w]+: three pieces, a1 | ² | b
#
# The last line counts, over all of Unicode, characters of one and not of the other.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check tokenizers==0.23.3
cat >run.py <<'PY'
import tokenizers
from tokenizers import Regex, pre_tokenizers

CODES = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def pieces(pattern, text):
    return [text[a:b] for _, (a, b) in pre_tokenizers.Split(Regex(pattern), "isolated").pre_tokenize_str(text)]


def matched(pattern):
    split, out = pre_tokenizers.Split(Regex(pattern), "removed"), set()
    for i in range(0, len(CODES), 256):
        block = CODES[i:i + 256]
        kept = set()
        for _, (a, b) in split.pre_tokenize_str("".join(map(chr, block))):
            kept.update(range(a, b))
        out.update(c for k, c in enumerate(block) if k not in kept)
    return out


print("tokenizers", tokenizers.__version__)
for pattern in r"\b", r"\w+", r"[\w]+", r"[^\W]+", r"[[:word:]]+", r"\p{Word}+", r"[\p{Word}]+":
    print(pattern, "|".join(p.encode("unicode_escape").decode() for p in pieces(pattern, "a1\xb2b")))
alone, inside = matched(r"\w"), matched(r"[\w]")
print(r"in \w alone:", " ".join("%04X" % c for c in sorted(alone - inside)), r"in [\w] alone:", len(inside - alone))
print("U+2460:", 0x2460 in alone, 0x2460 in inside)
PY
venv/bin/python run.py | tee seen.txt
cat >expected.txt <<'TXT'
tokenizers 0.23.3
\b a1\xb2b
\w+ a1\xb2b
[\w]+ a1|\xb2|b
[^\W]+ a1|\xb2|b
[[:word:]]+ a1|\xb2|b
\p{Word}+ a1\xb2b
[\p{Word}]+ a1|\xb2|b
in \w alone: 00B2 00B3 00B9 00BC 00BD 00BE in [\w] alone: 0
U+2460: False False
TXT
cmp seen.txt expected.txt
