#!/bin/sh
# tokenizers 0.23.3: of two added tokens that normalizing makes one text of, such as "Bar" and "BAR" with the normalizer
# Lowercase, the one whose id a text gets changes from one process to the next, and from one tokenizer to the next that is
# read from the same file: the same program with the same file gives other ids.
#
# Added tokens are normalized by default, so both are looked for as "bar". One would expect the first or the last of the file
# to win; the ids come out of a hash map whose seed is new for each, and nothing tells that two tokens are one. id_to_token
# gives "bar" for both ids. With normalized=False, or one spelling, ids stay.
#
#     100 tokenizers of one file: some encode "bar" as [1], the others as [2]; decoded, both are "bar"
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check tokenizers==0.23.3
cat >run.py <<'PY'
import tokenizers
from tokenizers import AddedToken, Tokenizer, models, normalizers

t = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))
t.normalizer = normalizers.Lowercase()
t.add_tokens([AddedToken("Bar"), AddedToken("BAR")])
file = t.to_str()
found = {tuple(Tokenizer.from_str(file).encode("bar").ids) for _ in range(100)}
print("tokenizers", tokenizers.__version__)
print("ids of 'bar' with 100 tokenizers of one file:", sorted(found))
print("their texts:", [t.id_to_token(i) for i in (1, 2)], "their ids:", [t.token_to_id(s) for s in ("Bar", "BAR", "bar")])
t.add_tokens([AddedToken("Zip", normalized=False), AddedToken("ZIP", normalized=False)])
file = t.to_str()
print("not normalized:", {tuple(Tokenizer.from_str(file).encode("Zip").ids) for _ in range(100)})
PY
venv/bin/python run.py | tee seen.txt
cat >expected.txt <<'TXT'
tokenizers 0.23.3
ids of 'bar' with 100 tokenizers of one file: [(1,), (2,)]
their texts: ['bar', 'bar'] their ids: [1, 2, None]
not normalized: {(3,)}
TXT
cmp seen.txt expected.txt
