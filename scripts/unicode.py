#!/usr/bin/env python3
"""Writes extras/llm/tokenizer/unicode_table.c: what tokenizers need to know of each code point.

    python scripts/unicode.py > extras/llm/tokenizer/unicode_table.c

Classes, lower case and decompositions are what the Python package `tokenizers` answers for each code point, since its
parts follow different versions of Unicode and texts have to be cut as it cuts them; combining classes are those of
unicodedata. The table is deflated; extras/llm/tokenizer/unicode.c has its layout.
"""
import struct
import sys
import unicodedata
import zlib

from tokenizers import Regex, normalizers, pre_tokenizers

CODES = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
CATEGORIES = ["Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs",
              "Co", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So"]
FLAGS = ["SPACE", "DROP", "BLANK", "PUNCT", "NUMERIC", "MARK", "ACCENT", "UPPER", "NFD", "NFKD", "SECOND", "WORD", "ALPHA",
         "LOWERCASE", "UPPERCASE"]
# In the order of dc_scripts in extras/llm/tokenizer/charset.c; 0 is any other.
SCRIPTS = ("Arabic Armenian Bengali Bopomofo Cherokee Common Coptic Cyrillic Devanagari Ethiopic Georgian Greek Gujarati "
           "Gurmukhi Han Hangul Hebrew Hiragana Inherited Kannada Katakana Khmer Lao Latin Malayalam Mongolian Myanmar Oriya "
           "Sinhala Syriac Tamil Telugu Thaana Thai Tibetan").split()


def matched(pattern):
    """Code points that the pattern matches."""
    split, out = pre_tokenizers.Split(Regex(pattern), "removed"), set()
    for i in range(0, len(CODES), 256):
        block = CODES[i:i + 256]
        kept = set()
        for _, (a, b) in split.pre_tokenize_str("".join(map(chr, block))):
            kept.update(range(a, b))
        out.update(c for k, c in enumerate(block) if k not in kept)
    return out


def cuts(pre_tokenizer):
    return {c for c in CODES if len(pre_tokenizer.pre_tokenize_str("a" + chr(c) + "a")) != 1}


def bert(**wanted):
    options = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return normalizers.BertNormalizer(**{**options, **wanted})


def mapped(normalizer):
    return {c: s for c in CODES for s in [normalizer.normalize_str(chr(c))] if s != chr(c)}


def combining(nfd, c):
    """The class of a mark; 0 where the package's Unicode does not have it yet: it is not put before U+0345 then."""
    k = unicodedata.combining(chr(c))
    moved = k == 240 or k and nfd.normalize_str("a\u0345" + chr(c)) != "a\u0345" + chr(c)
    return k if moved else 0


def main():
    category = {}
    for name in CATEGORIES[1:]:
        if name != "Cs":
            for c in matched(r"\p{%s}" % name):
                category[c] = CATEGORIES.index(name)
    clean, lower = mapped(bert(clean_text=True)), mapped(normalizers.Lowercase())
    nfd, nfkd = mapped(normalizers.NFD()), mapped(normalizers.NFKD())
    hangul = range(0xAC00, 0xD7A4)
    for c in hangul:
        del nfd[c], nfkd[c]
    nfkd = {c: s for c, s in nfkd.items() if nfd.get(c) != s}
    pairs = {}
    for c in nfd:
        one = unicodedata.decomposition(chr(c)).split()
        if len(one) == 2 and unicodedata.normalize("NFC", chr(c)) == chr(c):
            pairs[int(one[0], 16), int(one[1], 16)] = c
    sets = dict(
        SPACE=matched(r"\s"),
        DROP={c for c, s in clean.items() if s == ""},
        BLANK={c for c, s in clean.items() if s == " "} | {0x20},
        PUNCT=cuts(pre_tokenizers.Punctuation()),
        NUMERIC=cuts(pre_tokenizers.Digits()),
        MARK={c for c, s in mapped(normalizers.StripAccents()).items() if s == ""},
        ACCENT={c for c, s in mapped(bert(strip_accents=True)).items() if s == ""},
        UPPER=set(lower),
        NFD=set(nfd), NFKD=set(nfkd),
        SECOND={b for _, b in pairs} | set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3)),
        ALPHA=matched("[[:alpha:]]"), LOWERCASE=matched("[[:lower:]]"), UPPERCASE=matched("[[:upper:]]"),
        WORD={c for c in CODES if len(pre_tokenizers.Whitespace().pre_tokenize_str("a" + chr(c) + "a")) == 1},
    )
    sets = {name: sets[name] for name in FLAGS}
    script = {}
    for i, name in enumerate(SCRIPTS):
        script.update(dict.fromkeys(matched(r"\p{%s}" % name), i + 1))
    of_script = [(c, script.get(c, 0)) for c in range(0x110000) if c == 0 or script.get(c, 0) != script.get(c - 1, 0)]
    rows, ranges, before = {}, [], None
    for c in range(0x110000):
        row = category.get(c, 0) | combining(normalizers.NFD(), c) << 8
        for i, name in enumerate(FLAGS):
            row |= (c in sets[name]) << 16 + i
        k = rows.setdefault(row, len(rows))
        if k != before:
            ranges.append(c << 8 | k)
            before = k
    assert len(rows) <= 256
    pool, decomposed = [], []
    for c, compatible, s in sorted([(c, 0, s) for c, s in nfd.items()] + [(c, 1, s) for c, s in nfkd.items()]):
        decomposed += [c, compatible, len(s)]
        pool += map(ord, s)
    two = [(c, ord(s[0])) for c, s in sorted(lower.items()) if len(s) == 1]
    assert [c for c, s in lower.items() if len(s) > 1] == [0x130]
    composed = [x for (a, b), c in sorted(pairs.items()) for x in (a, b, c)]
    # Tables by their columns, each value less the one before it.
    parts = [(1, list(rows)), (2, [x for r in ranges for x in (r >> 8, r & 255)]), (2, [x for p in two for x in p]),
             (3, decomposed), (1, pool), (3, composed), (2, [x for s in of_script for x in s])]
    words = [len(part) // columns for columns, part in parts]
    for columns, part in parts:
        for k in range(columns):
            column = part[k::columns]
            words += [(x - y) % 2**32 for x, y in zip(column, [0] + column)]
    plain = struct.pack("<%dI" % len(words), *words)
    # Bytes of the same significance together deflate better.
    packed = zlib.compress(b"".join(plain[i::4] for i in range(4)), 9)
    print("/* Written by scripts/unicode.py; unicode.c has the layout. */")
    print('#include "extras/llm/tokenizer/unicode.h"\n')
    print("/* clang-format off */")
    print("const uint32_t dc_unicode_words = %d, dc_unicode_packed = %d;" % (len(words), len(packed)))
    print("const unsigned char dc_unicode_table[] = {")
    for i in range(0, len(packed), 32):
        print("".join("%d," % b for b in packed[i:i + 32]))
    print("};")
    print(len(rows), "rows", len(ranges), "ranges", len(words), "words", len(packed), "bytes", file=sys.stderr)


main()
