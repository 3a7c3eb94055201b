#!/usr/bin/env python3
"""Small tokenizers of each kind, trained by the Python packages, and what the packages make of awkward texts.

    python scripts/tokenizer_peers.py train        writes tests/lua/tokenizers/*.json and *.model
    python scripts/tokenizer_peers.py tables       writes tests/lua/tokenizers/*.gz: texts, ids, places, decoded texts
    python scripts/tokenizer_peers.py chats         writes tests/lua/tokenizers/chats.gz: what transformers makes of templates
    python scripts/tokenizer_peers.py cases FILE OUT [SEED [N]]   the same of any file, with N random texts
    python scripts/tokenizer_peers.py patterns     writes tests/lua/tokenizers/patterns.gz: where regular expressions cut
    python scripts/tokenizer_peers.py patterns OUT SEED N   the same of all code points, and with N random expressions, for
                                                   deepc tests/lua/tokenizers/patterns.lua OUT

needs the packages tokenizers, sentencepiece and transformers; `bible` (Debian: bible-kjv) for training.
tests/lua/test_tokenizers.lua and test_chat.lua read the tables.
"""
import gzip
import os
import random
import struct
import subprocess
import sys
import tempfile

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import AddedToken

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/lua/tokenizers")

AWKWARD = [
    "", " ", "  ", "Hello world", "Hello, y'all! How are you 😁 ?", "I'm don't WE'LL we've THEY'RE 'S 's'",
    "a\tb\nc\r\nd\x0b\x0c\x85\xa0e\u2003f\u3000g\u200b\u200d", "👩‍👩‍👧‍👦 family 🏳️‍🌈 🇩🇪",
    "e\u0301 é ö o\u0308 \u1e69 s\u0323\u0307 s\u0307\u0323 ﬁ ﬀ Å Å", "中文字符 日本語テキスト 한국어 각 \u1100\u1161\u11a8",
    "مرحبا بالعالم عَرَبِيّ", "नमस्ते दुनिया க்ஷ", "x" * 300, "ab" * 200, " " * 100 + "x", "\n" * 50,
    "1234567890 12 3 4567 ½ ² ٣٤ Ⅷ", "foo_bar.baz(qux)[0] += 1; // comment\n\tif (x) { return; }",
    "<|im_start|>user\nhi<|im_end|>\n", "[CLS] a [SEP] [MASK] [mask] b[MASK]c", "<s>x</s><unk> <mask> <mask>x <pad>",
    "\x00\x01\x02 \x1b[0m \x7f \ufffd \ufeff", "İstanbul ıI ΑΣ ὈΔΥΣΣΕΎΣ ẞ ß Ǆ", "▁a ▁▁b _c",
    "  leading and trailing  ", "a\u0300\u0301\u0302\u0303 \u0300x", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟘𝟙", "naïve café résumé", "''s 'ſ",
    "<0x41> <0x0A>", "...!!??--", "untokenizable supercalifragilistic", "http://example.org/a?b=c&d=e#f",
    "\u202e\u2066abc\u2069", "0.1e-5 3.14159", "ﷺ ㌀ ㎏ ℡", "A" * 101, "a" * 100, "क" * 101,
    "wordy word words sword <word> word", "In the beginning God created the heaven and the earth.",
]


def random_text(r):
    out = []
    for _ in range(r.randrange(1, 40)):
        x = r.random()
        if x < 0.35:
            out.append(chr(r.randrange(32, 127)))
        elif x < 0.5:
            out.append(r.choice(" \t\n\r\xa0\u2003'.,-_▁"))
        elif x < 0.6:
            out.append(chr(r.randrange(0xA0, 0x250)))
        elif x < 0.7:
            out.append(chr(r.randrange(0x300, 0x370)))
        elif x < 0.8:
            out.append(chr(r.choice([r.randrange(0x370, 0x600), r.randrange(0x600, 0x1000), r.randrange(0x1000, 0x2000)])))
        elif x < 0.86:
            out.append(chr(r.randrange(0x3000, 0xA000)))
        elif x < 0.9:
            out.append(chr(r.choice([r.randrange(0x1F300, 0x1FB00), r.randrange(0x1100, 0x1200),
                                     r.randrange(0xAC00, 0xD7A4), r.randrange(0xF900, 0xFB50)])))
        elif x < 0.97:
            out.append(r.choice(["the", "ing", " a", "Hello", "don't", "<|im_end|>", "[MASK]", "<mask>", "[SEP]", "##",
                                 "12", "é", "</s>", "<s>", "word"]))
        else:
            c = r.randrange(0x110000)
            while 0xD800 <= c < 0xE000:
                c = r.randrange(0x110000)
            out.append(chr(c))
    return "".join(out)


def texts(seed, n):
    r = random.Random(seed)
    return AWKWARD + [random_text(r) for _ in range(n)]


# ---- tables ----

def places(text, offsets):
    at = [0]
    for c in text:
        at.append(at[-1] + len(c.encode()))
    return [at[x] for pair in offsets for x in pair]


def of_json(path):
    t = Tokenizer.from_file(path)
    t.no_truncation()
    t.no_padding()

    def one(text):
        e = t.encode(text)
        return e.ids, places(text, e.offsets), t.decode(e.ids)
    return one


def of_model(path):
    import sentencepiece
    sp = sentencepiece.SentencePieceProcessor(model_file=path)

    def one(text):
        ids = sp.encode(text)
        return ids, [], sp.decode(ids)
    return one


def write(path, to, seed, n):
    one = of_model(path) if path.endswith(".model") else of_json(path)
    with gzip.GzipFile(to, "wb", mtime=0) if to.endswith(".gz") else open(to, "wb") as f:
        for text in texts(seed, n):
            ids, where, decoded = one(text)
            for s in (text.encode(), struct.pack("<%dI" % len(ids), *ids), struct.pack("<%dI" % len(where), *where),
                      decoded.encode()):
                f.write(struct.pack("<I", len(s)) + s)


# ---- training ----

def corpus():
    bible = subprocess.run(["bible", "-f", "gen1:1-exo10:1"], stdout=subprocess.PIPE, check=True).stdout.decode()
    lines = [line.split(" ", 1)[1] for line in bible.splitlines() if " " in line]
    return lines + [t for t in AWKWARD if len(t) < 90] * 3


def train(name, model, trainer, **parts):
    t = Tokenizer(model)
    post = parts.pop("post_processor", None)
    added = parts.pop("added", [])
    for key, part in parts.items():
        setattr(t, key, part)
    t.train_from_iterator(corpus(), trainer)
    t.add_tokens(added)
    if post:
        t.post_processor = post(t)
    path = "%s/%s.json" % (FOLDER, name)
    t.save(path, pretty=False)
    Tokenizer.from_file(path)


def bpe(**more):
    return trainers.BpeTrainer(vocab_size=500, show_progress=False, **more)


CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
O200K = ("[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+")


def template(single, pair, *names):
    return lambda t: processors.TemplateProcessing(single=single, pair=pair,
                                                   special_tokens=[(n, t.token_to_id(n)) for n in names])


def train_all():
    byte = pre_tokenizers.ByteLevel
    alphabet = byte.alphabet()
    train("gpt2", models.BPE(), bpe(initial_alphabet=alphabet, special_tokens=["<|endoftext|>"]),
          pre_tokenizer=byte(add_prefix_space=False), decoder=decoders.ByteLevel(),
          post_processor=lambda t: processors.ByteLevel(trim_offsets=False))
    train("roberta", models.BPE(), bpe(initial_alphabet=alphabet, special_tokens=["<s>", "<pad>", "</s>", "<unk>"]),
          pre_tokenizer=byte(add_prefix_space=True), decoder=decoders.ByteLevel(),
          added=[AddedToken("<mask>", lstrip=True, special=True), AddedToken("word", single_word=True, rstrip=True)],
          post_processor=lambda t: processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True,
                                                                add_prefix_space=True))
    for name, numbers, form in (("llama3", r"\p{N}{1,3}", None), ("qwen2", r"\p{N}", normalizers.NFC())):
        train(name, models.BPE(ignore_merges=name == "llama3"),
              bpe(initial_alphabet=alphabet, special_tokens=["<|im_start|>", "<|im_end|>"]),
              **({"normalizer": form} if form else {}),
              pre_tokenizer=pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(CL100K % numbers), "isolated"),
                                                     byte(add_prefix_space=False, use_regex=False)]),
              decoder=decoders.ByteLevel(),
              post_processor=template("<|im_start|> $A", "<|im_start|> $A <|im_start|>:1 $B:1", "<|im_start|>"))
    train("o200k", models.BPE(), bpe(initial_alphabet=alphabet),
          pre_tokenizer=pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(O200K), "removed", invert=True),
                                                 byte(add_prefix_space=False, use_regex=False)]),
          decoder=decoders.ByteLevel())
    train("bert", models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100),
          trainers.WordPieceTrainer(vocab_size=600, show_progress=False, limit_alphabet=200,
                                    special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]),
          normalizer=normalizers.BertNormalizer(), pre_tokenizer=pre_tokenizers.BertPreTokenizer(),
          decoder=decoders.WordPiece(),
          post_processor=lambda t: processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2)))
    train("llama2", models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True),
          bpe(special_tokens=["<unk>", "<s>", "</s>"] + ["<0x%02X>" % i for i in range(256)], limit_alphabet=90),
          normalizer=normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]),
          decoder=decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                     decoders.Strip(" ", 1, 0)]),
          post_processor=template("<s> $A", "<s> $A <s>:1 $B:1", "<s>"))
    train("unigram", models.Unigram(), trainers.UnigramTrainer(vocab_size=500, show_progress=False, unk_token="<unk>",
                                                              special_tokens=["<pad>", "</s>", "<unk>"]),
          normalizer=normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]),
          pre_tokenizer=pre_tokenizers.Metaspace(), decoder=decoders.Metaspace(),
          post_processor=template("$A </s>", "$A </s> $B </s>", "</s>"))
    train("t5", models.Unigram(), trainers.UnigramTrainer(vocab_size=400, show_progress=False, unk_token="<unk>",
                                                         special_tokens=["<pad>", "</s>", "<unk>"]),
          normalizer=normalizers.Precompiled(charsmap()), decoder=decoders.Metaspace(),
          pre_tokenizer=pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]),
          post_processor=template("$A </s>", "$A </s> $B </s>", "</s>"))
    train("words", models.WordLevel(unk_token="?"),
          trainers.WordLevelTrainer(vocab_size=400, show_progress=False, special_tokens=["?"]),
          normalizer=normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()]),
          pre_tokenizer=pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits()]))
    train("suffix", models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"),
          bpe(special_tokens=["<unk>"], end_of_word_suffix="</w>", limit_alphabet=80),
          normalizer=normalizers.Sequence([normalizers.Strip(), normalizers.NFKD()]),
          pre_tokenizer=pre_tokenizers.Sequence([
              pre_tokenizers.Metaspace(prepend_scheme="first", split=False),
              pre_tokenizers.Split("▁", "merged_with_previous"),
              pre_tokenizers.Punctuation("contiguous")]),
          decoder=decoders.BPEDecoder())


# ---- chats ----

# In the forms that families of models have: tokens around turns, a header, brackets with bos and eos, an own name for the
# assistant; then every part of the language that is known.
TEMPLATES = {
    "turns": "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
             "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    "default_system": "{% for m in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ 'sys: kind\n' }}"
                      "{% endif %}{{ m['role'] ~ ': ' ~ m['content'] }}\n{% endfor %}",
    "header": "{% set rest = messages %}{% for m in rest %}{% set c = '<|h|>' + m['role'] + '<|/h|>\n\n' + m['content'] | "
              "trim + '<|eot|>' %}{% if loop.index0 == 0 %}{% set c = bos_token + c %}{% endif %}{{ c }}{% endfor %}",
    "brackets": """{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}{% set sys = messages[0]['content'] %}
{% else %}
{% set rest = messages %}{% set sys = false %}
{% endif %}
{% for m in rest %}
    {% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('turns have to alternate') }}{% endif %}
    {% if loop.index0 == 0 and sys %}{% set text = '<<' + sys + '>>' + m.content %}{% else %}{% set text = m.content %}{% endif %}
    {% if m['role'] == 'user' %}{{ bos_token + '[INST] ' + text.strip() + ' [/INST]' }}
    {% elif m['role'] == 'assistant' %}{{ ' ' + text.strip() + ' ' + eos_token }}
    {% endif %}
{% endfor %}
""",
    "model": """{{ bos_token }}
{%- for m in messages -%}
    {%- set role = 'model' if m.role == 'assistant' else m.role -%}
    {{ '<start>' + role + '\n' }}
    {%- if m.content is string -%}
        {{ m.content | trim }}
    {%- else -%}
        {%- for part in m.content if part.type == 'text' %}{{ part.text }}{% endfor -%}
    {%- endif -%}
    {{ '<end>\n' }}
{%- endfor -%}
""",
    "tools": """{%- if tools is not none %}
    {{- "tools: " }}
    {%- for t in tools %}
        {{- t | tojson(indent=2) }}{{ ", " if not loop.last }}
        {%- for key, value in t.function.items() if key != "parameters" %} {{ key }}={{ value }}{% endfor %}
    {%- endfor %}
{%- endif %}
{%- set ns = namespace(index=0, last=-1) %}
{%- for m in messages[::-1] %}{% if m.role == "user" and ns.last < 0 %}{% set ns.last = messages | length - 1 - loop.index0 %}{% endif %}
{%- endfor %}
{%- set asked = messages | selectattr("role", "equalto", "user") | list %}
{%- for m in messages %}
    {%- if m.tool_calls is defined and m.tool_calls %}
        {%- for call in m.tool_calls %}{{- call.function | tojson }}{% endfor %}
    {%- elif 'tool' == m['role'] %}
        {{- "(" + (m.content | string)[:-1] + ")" }}
    {%- else %}
        {{- m.role[0] | upper }}{{ ns.index }}{% set ns.index = ns.index + 1 %} {{ m.content.split('</think>')[-1].lstrip('\n') }}
    {%- endif %}
    {{- '!' if m == asked[-1] and loop.index0 == ns.last }}
{%- endfor %}
""",
    "language": r'''{# comment #}
{% macro part(name, sep=', ', end='.') -%}
  <{{ name }}{{ sep }}{{ end }}>
{%- endmacro %}
  {% set items = ['a', "b", 3, 4.5, true, none] %}
{{ part('x') }}{{ part('y', end='!') }}{{ part(name='z', sep='') }}
{% for i in items %}
  {% if i is none %}{% continue %}{% endif %}
  {{- loop.index }}:{{ i }}{{ ',' if not loop.last }}
{% else %}none{% endfor %}
{% for k, v in {'b': 1, 'c': [1, 2]}.items() %}{{ k }}={{ v | tojson }};{% endfor %}
{% set block %}inner {{ 1 + 2 * 3 - 4 // 3 ** 2 % 5 }} {{ -2 | abs }} {{ 7 / 2 }} {{ 'ab' * 2 }} {{ 1 ~ 'x' ~ 2.0 }}{% endset %}
[{{ block | upper }}] {{ block | length }} {{ 'é' | length }} {{ [1,2,3][1:] | join('-') }} {{ 'hello'[1:3] }} {{ 'hello'[::-1] }}
{{ not true or false and true }} {{ 1 < 2 < 3 }} {{ 'a' in 'abc' }} {{ 4 not in [1, 2] }} {{ other is defined }} {{ x | default('d') }}
{{ ' a b '.strip() | title }} {{ 'a,b,c'.split(',') | last }} {{ 'a b'.replace('a', 'c') }} {{ 'Abc'.startswith('A') }} {{ "x\ty" }}
{{ messages | map(attribute='role') | join(' ') }} {{ range(3) | list | tojson }} {{ range(1, 7, 2) | join }}
{%+ if true %}  plus{% endif %}
   {% if true -%}   minus   {%- endif %}
{{ "quote \" and ' \n" | tojson }} {{ {'a': {'b': [1, 'x', none, true]}} | tojson(indent=2) }}
{% for m in messages if m.role == 'user' %}{{ loop.index0 }}{{ loop.length }}{{ m.content | trim | indent(3) }}{% if loop.index == 2 %}{% break %}{% endif %}{% endfor %}
{% generation %}gen{% endgeneration %}
{{ messages[0].get('nothing', 'no') }} {{ messages[0]['role'] if messages[0]['role'] is string else 'x' }} {{ [3, 1, 2] | first }}
''',
}
CHATS = [
    [{"role": "user", "content": "Hello"}],
    [{"role": "system", "content": "You are  kind. "}, {"role": "user", "content": " Hi\nthere "},
     {"role": "assistant", "content": "<think>\nhm\n</think>\n\nYes é"}, {"role": "user", "content": "And?"}],
    [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}],
    [{"role": "user", "content": "weather?"},
     {"role": "assistant", "content": "", "tool_calls": [{"function": {"arguments": {"city": "Paris"}, "name": "weather"}}]},
     {"role": "tool", "content": "sunny"}, {"role": "assistant", "content": "It is sunny"}],
]
TOOLS = [{"function": {"description": "The weather", "name": "weather", "parameters": {"required": ["city"]}}}]


def lua(x):
    if x is None:
        return "nil"
    if isinstance(x, (bool, int, float)):
        return str(x).lower()
    if isinstance(x, str):
        return '"%s"' % "".join(c if " " <= c <= "~" and c not in '"\\' else "".join("\\%03d" % b for b in c.encode())
                                for c in x)
    if isinstance(x, list):
        return "{%s}" % ",".join(map(lua, x))
    return "{%s}" % ",".join("[%s]=%s" % (lua(k), lua(v)) for k, v in x.items())


def write_chats():
    from transformers.utils.chat_template_utils import _compile_jinja_template
    cases = []
    for name, source in TEMPLATES.items():
        for messages in CHATS:
            for tools in (None, TOOLS):
                case = dict(name=name, messages=messages, tools=tools, prompt=tools is None)
                try:
                    case["text"] = _compile_jinja_template(source).render(
                        messages=messages, tools=tools, documents=None, add_generation_prompt=case["prompt"], bos_token="<s>",
                        eos_token="</s>")
                except Exception as e:
                    case["error"] = str(e)
                cases.append(case)
    with gzip.GzipFile(FOLDER + "/chats.gz", "wb", mtime=0) as f:
        f.write(("return %s, %s\n" % (lua(TEMPLATES), lua(cases))).encode())


# ---- regular expressions ----

CLASSES = r"""\w \W \d \D \s \S \h \H [\w] [\W] [^\w] [^\W] [^\S] [^\s] [[:alnum:]] [[:alpha:]] [[:ascii:]] [[:blank:]] [[:cntrl:]]
[[:digit:]] [[:graph:]] [[:lower:]] [[:print:]] [[:punct:]] [[:space:]] [[:upper:]] [[:xdigit:]] [[:word:]] [[:^alpha:]] \p{L}
\P{L} \p{^L} \p{Lu} \p{Ll} \p{Lt} \p{Lm} \p{Lo} \p{M} \p{Mn} \p{Mc} \p{Me} \p{N} \p{Nd} \p{Nl} \p{No} \p{P} \p{Pc} \p{Pd} \p{Ps}
\p{Pe} \p{Pi} \p{Pf} \p{Po} \p{S} \p{Sm} \p{Sc} \p{Sk} \p{So} \p{Z} \p{Zs} \p{C} \p{Cc} \p{Cf} \p{Co} \p{Cn} \p{Han} \p{Hiragana}
\p{Katakana} \p{Hangul} \p{Latin} \p{Greek} \p{Cyrillic} \p{Arabic} \p{Hebrew} \p{Thai} \p{Devanagari} \p{Common} \p{Inherited}
\p{Tibetan} \p{Word} \P{Word} \p{Punct} \p{PosixPunct} \p{Alpha} \p{Upper} \p{Lower} \p{Any} \p{Assigned} . \N \O \R \v (?m).
[^\r\n\p{L}\p{N}] [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]] [^(\s|[.,!?…。，、।۔،])] (?i)k (?i)s (?i)[a-z] (?i)[^a-z] (?i)µ (?i)σ
(?i)\x{3c9} (?i)\s (?i)[^\p{L}] (?i)\p{Nd} (?i)\x{1c88} (?i)\x{a7cb} [\x{0}-\x{10ffff}] [^\x{0}-\x{7f}] [一-龥] [\u4e00-\u9fff]
(?<=\w)\b (?<!\p{L})\p{L} [\p{L}\p{M}]+ [^\p{L}\p{M}]+ \b \B""".split()
ATOMS = r"""a|b|A|s|t| |\n|\s|\S|\p{L}|\p{N}|[ab]|[^a]|[\r\n]|.|é|1|\d|\w|\W|[^\s\p{L}]|[a-c&&[^b]]|[[:punct:]\s]|[^a[bc]]|\h|\R|\x41|'|[\w-]|
(?i:s)|(?i:[a-c])|(?m:.)""".replace("\n(", "(").split("|")
PLACES = r"^ $ \b \B \A \z \Z \G".split()
REPEATS = "* + ? {2} {1,2} {,2} {2,} *? +? ?? *+ ++ ?+ {2}+ {1,2}? {2}? {1,2}+ +*".split()
CHARACTERS = ["a", "b", "A", "B", "s", "S", "t", " ", "\n", "\r\n", "é", "É", "1", "²", "ſ", "\u212a", "中", "\u0301", "\u2028", "\x85",
              "'", "-", "_", ".", "Ⓐ", "c", "\t", "\u1c89"]


def random_pattern(r, depth=0):
    out = ""
    for _ in range(r.randrange(1, 4)):
        x = r.random()
        if x < 0.1:
            out += r.choice(PLACES)
            continue
        if x < 0.13:
            out += "(?i)"
            continue
        if x < 0.4 and depth < 3:
            opened = r.choice(["(?:", "(", "(?>", "(?=", "(?!", "(?<=", "(?<!", "(?i:"])
            inner = r.choice(ATOMS[:15]) if "<" in opened else random_pattern(r, depth + 1)
            out += opened + inner + ")"
            if opened[2:] in ("=", "!", "<=", "<!"):
                continue
        else:
            out += r.choice(ATOMS)
        if r.random() < 0.35:
            out += r.choice(REPEATS)
    return out + "|" + random_pattern(r, depth + 1) if r.random() < 0.25 and depth < 3 else out


def code_points(every):
    codes = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    if every:
        return "".join(map(chr, codes))
    kinds = [pre_tokenizers.Split(Regex(p), "removed") for p in (r"\p{Lu}", r"\p{Ll}", r"\p{L}", r"\p{M}", r"\p{N}", r"\p{Z}",
                                                               r"\p{P}", r"\p{S}", r"\p{Cn}", r"\p{Han}", r"\p{Common}")]
    text, edges = "".join(map(chr, codes)), set(range(0x180))
    for kind in kinds:
        for _, (a, b) in kind.pre_tokenize_str(text):
            edges.update((max(a - 1, 0), a, b - 1, min(b, len(codes) - 1)))
    return "".join(chr(codes[i]) for i in sorted(edges))


def cuts(pattern, text):
    """How many pieces, and a number made of where they are; None: the package refuses the expression."""
    try:
        split = pre_tokenizers.Split(Regex(pattern), "isolated")
    except Exception:
        return None
    pieces = [x for _, x in split.pre_tokenize_str(text)]
    h = 0
    for x in places(text, pieces):
        h = (h * 31 + x) % 2**32
    return struct.pack("<II", len(pieces), h)


def write_patterns(to, every, seed, n):
    r = random.Random(seed)
    all_points = code_points(every)
    with gzip.GzipFile(to, "wb", mtime=0) if to.endswith(".gz") else open(to, "wb") as f:
        def put(pattern, text, shown):
            found = cuts(pattern, text)
            if found is not None:
                for s in (pattern.encode(), shown.encode()):
                    f.write(struct.pack("<I", len(s)) + s)
                f.write(found)
        for k, pattern in enumerate(CLASSES):
            put(pattern, all_points, all_points if k == 0 else "")  # "": the first text
        for _ in range(n):
            pattern = random_pattern(r)
            for _ in range(2):
                text = "".join(r.choice(CHARACTERS) for _ in range(r.randrange(1, 14)))
                put(pattern, text, text)


def main():
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if what == "train":
        train_all()
        train_models()
    elif what == "chats":
        write_chats()
    elif what == "models":
        train_models()
    elif what == "tables":
        for name in sorted(os.listdir(FOLDER)):
            if name.endswith((".json", ".model")):
                write("%s/%s" % (FOLDER, name), "%s/%s.gz" % (FOLDER, name), 7, 40)
    elif what == "patterns":
        if len(sys.argv) > 2:
            write_patterns(sys.argv[2], True, int(sys.argv[3]), int(sys.argv[4]))
        else:
            write_patterns(FOLDER + "/patterns.gz", False, 1, 150)
    elif what == "cases":
        write(sys.argv[2], sys.argv[3], int((sys.argv + ["1"])[4]), int((sys.argv + ["1", "2000"])[5]))
    else:
        sys.exit(__doc__)


# A small map of characters, as SentencePiece compiles it: code points in hexadecimal, and what they become.
RULES = ["FF%02X\t%X" % (c - 0x20, c) for c in range(0x21, 0x7F)] + [
    "9\t20", "A\t20", "D\t20", "D A\t20", "A0\t20", "3000\t20", "200B\t", "65 301\tE9", "6F 308\tF6", "FB01\t66 69", "FB00\t66 66",
    "2153\t31 2044 33", "AD\t", "130\t69 307", "41\t61", "42\t62", "212B\tE5"]


def with_rules(train):
    with tempfile.TemporaryDirectory() as folder:
        rules, text = folder + "/rules", folder + "/text"
        with open(rules, "w") as f:
            f.write("\n".join(RULES) + "\n")
        with open(text, "w") as f:
            f.write("\n".join(line.replace("\n", " ") for line in corpus()))
        return train(folder, text, dict(input=text, vocab_size=440, minloglevel=2, hard_vocab_limit=False), rules)


def charsmap():
    import sentencepiece

    def make(folder, text, common, rules):
        sentencepiece.SentencePieceTrainer.train(model_prefix=folder + "/m", normalization_rule_tsv=rules, **common)
        from sentencepiece import sentencepiece_model_pb2
        m = sentencepiece_model_pb2.ModelProto()
        m.ParseFromString(open(folder + "/m.model", "rb").read())
        return m.normalizer_spec.precompiled_charsmap
    return with_rules(make)


def train_models():
    import sentencepiece

    def make(folder, text, common, rules):
        for name, more in dict(
                sp_unigram=dict(model_type="unigram", normalization_rule_tsv=rules, user_defined_symbols=["word", "<mask>"]),
                sp_bpe=dict(model_type="bpe", byte_fallback=True, normalization_rule_name="identity",
                            remove_extra_whitespaces=False, split_digits=True),
                sp_suffix=dict(model_type="bpe", normalization_rule_tsv=rules, treat_whitespace_as_suffix=True,
                               user_defined_symbols=["ing"], character_coverage=0.98)).items():
            sentencepiece.SentencePieceTrainer.train(model_prefix="%s/%s" % (FOLDER, name), **common, **more)
            os.remove("%s/%s.vocab" % (FOLDER, name))
    with_rules(make)


if __name__ == "__main__":
    main()
