/* Normalizers, pre-tokenizers and decoders, as descriptions name them. */
#include "core/base/path.h"
#include "extras/llm/tokenizer/impl.h"

#include <string.h>

typedef dc_status read_step(dc_building *b, const dc_jnode *v, dc_step *s);

/* A kind of step: its fields are known, and read by a function, or there are none. */
typedef struct row {
    const char *type;
    dc_step_kind kind;
    read_step *read;
    const char *known[6];
} row;

static dc_status read_choice(dc_building *b, const dc_jnode *o, const char *key,
                             const char *const *names, int dflt, int *out)
{
    const dc_jnode *v = dc_json_get(o, key);
    *out = dflt;
    if (v == NULL && dflt >= 0)
        return DC_OK;
    for (int i = 0; names[i] != NULL; i++)
        if (dc_json_is(v, names[i])) {
            *out = i;
            return DC_OK;
        }
    return dc_refuse(b, "%s is '%.60s', which is not known", key,
                     v != NULL && v->kind == DC_J_STRING ? v->v.s : dc_json_kind(v));
}

static dc_status read_behavior(dc_building *b, const dc_jnode *v, int dflt, dc_behavior *out)
{
    static const char *const names[] = {"Removed",        "Isolated",   "MergedWithPrevious",
                                        "MergedWithNext", "Contiguous", NULL};
    int k;
    DC_TRY(read_choice(b, v, "behavior", names, dflt, &k));
    *out = (dc_behavior)k;
    return DC_OK;
}

/* { "String": text } or { "Regex": text } */
static dc_status read_pattern(dc_building *b, const dc_jnode *o, dc_pattern *out)
{
    const dc_jnode *v = dc_json_get(o, "pattern"), *text = dc_json_get(v, "String"),
                   *regex = dc_json_get(v, "Regex");
    const dc_jnode *is = text != NULL ? text : regex;
    if (is == NULL || is->kind != DC_J_STRING || is->n == 0)
        return dc_refuse(b, "pattern is a String or a Regex");
    const dc_span s = dc_build_copy(b, (dc_span){is->v.s, is->n});
    if (text == NULL)
        return dc_pattern_regex(b->t, b->job, b->name, s, out);
    out->kind = DC_PATTERN_LITERAL;
    out->literal = s;
    return DC_OK;
}

/* ---- normalizers ------------------------------------------------------------------------------ */

static dc_status read_bert(dc_building *b, const dc_jnode *v, dc_step *s)
{
    DC_TRY(dc_build_flag(b, v, "clean_text", true, &s->clean));
    DC_TRY(dc_build_flag(b, v, "handle_chinese_chars", true, &s->chinese));
    DC_TRY(dc_build_flag(b, v, "lowercase", true, &s->lower));
    return dc_build_flag(b, v, "strip_accents", s->lower, &s->accents);
}

static dc_status read_prepend(dc_building *b, const dc_jnode *v, dc_step *s)
{
    return dc_build_text(b, v, "prepend", &s->text);
}

static dc_status read_replace(dc_building *b, const dc_jnode *v, dc_step *s)
{
    DC_TRY(read_pattern(b, v, &s->pattern));
    return dc_build_text(b, v, "content", &s->text);
}

static dc_status read_strip(dc_building *b, const dc_jnode *v, dc_step *s)
{
    DC_TRY(dc_build_flag(b, v, "strip_left", true, &s->left));
    return dc_build_flag(b, v, "strip_right", true, &s->right);
}

static int base64_digit(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

static dc_status read_charsmap(dc_building *b, const dc_jnode *v, dc_step *s)
{
    dc_span text;
    size_t n = 0;
    uint32_t bits = 0, have = 0;
    DC_TRY(dc_build_text(b, v, "precompiled_charsmap", &text));
    char *bytes = dc_arena_alloc(&b->job->scratch, text.n + 1);
    for (size_t i = 0; i < text.n && text.at[i] != '='; i++) {
        const int digit = base64_digit(text.at[i]);
        if (digit < 0)
            return dc_refuse(b, "precompiled_charsmap is no base64 at byte %zu", i);
        bits = bits << 6 | (uint32_t)digit;
        have += 6;
        if (have >= 8) {
            have -= 8;
            bytes[n++] = (char)(bits >> have & 255);
        }
    }
    return dc_charsmap_read(b, (dc_span){bytes, n}, &s->map);
}

/* Not of files: SentencePiece's own, with the map beside the description. */
static dc_status read_sentencepiece(dc_building *b, const dc_jnode *v, dc_step *s)
{
    if (b->list == NULL || !b->list->sentencepiece)
        return dc_refuse(b, "the normalizer 'SentencePiece' is not known");
    DC_TRY(dc_build_flag(b, v, "add_dummy_prefix", true, &s->dummy));
    DC_TRY(dc_build_flag(b, v, "remove_extra_whitespaces", true, &s->collapse));
    DC_TRY(dc_build_flag(b, v, "escape_whitespaces", true, &s->escape));
    DC_TRY(dc_build_flag(b, v, "treat_whitespace_as_suffix", false, &s->suffix));
    return b->list->charsmap.n > 0 ? dc_charsmap_read(b, b->list->charsmap, &s->map) : DC_OK;
}

static const row normalizers[] = {
    {"BertNormalizer",
     DC_STEP_BERT,
     read_bert,
     {"clean_text", "handle_chinese_chars", "strip_accents", "lowercase"}},
    {"NFC", DC_STEP_NFC, NULL, {NULL}},
    {"NFD", DC_STEP_NFD, NULL, {NULL}},
    {"NFKC", DC_STEP_NFKC, NULL, {NULL}},
    {"NFKD", DC_STEP_NFKD, NULL, {NULL}},
    {"Lowercase", DC_STEP_LOWER, NULL, {NULL}},
    {"StripAccents", DC_STEP_ACCENTS, NULL, {NULL}},
    {"Prepend", DC_STEP_PREPEND, read_prepend, {"prepend"}},
    {"Replace", DC_STEP_REPLACE, read_replace, {"pattern", "content"}},
    {"Strip", DC_STEP_STRIP, read_strip, {"strip_left", "strip_right"}},
    {"Nmt", DC_STEP_NMT, NULL, {NULL}},
    {"Precompiled", DC_STEP_CHARSMAP, read_charsmap, {"precompiled_charsmap"}},
    {"ByteLevel", DC_STEP_BYTES, NULL, {"add_prefix_space", "trim_offsets", "use_regex"}},
    {"SentencePiece",
     DC_STEP_SENTENCEPIECE,
     read_sentencepiece,
     {"add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces",
      "treat_whitespace_as_suffix"}},
};

/* ---- pre-tokenizers --------------------------------------------------------------------------- */

static dc_status read_bytes(dc_building *b, const dc_jnode *v, dc_step *s)
{
    DC_TRY(dc_build_flag(b, v, "add_prefix_space", true, &s->prefix));
    return dc_build_flag(b, v, "use_regex", true, &s->regex);
}

static dc_status read_split(dc_building *b, const dc_jnode *v, dc_step *s)
{
    DC_TRY(read_pattern(b, v, &s->pattern));
    DC_TRY(dc_build_flag(b, v, "invert", false, &s->invert));
    return read_behavior(b, v, -1, &s->behavior);
}

static dc_status read_digits(dc_building *b, const dc_jnode *v, dc_step *s)
{
    bool each;
    DC_TRY(dc_build_flag(b, v, "individual_digits", false, &each));
    s->behavior = each ? DC_SPLIT_ISOLATED : DC_SPLIT_CONTIGUOUS;
    return DC_OK;
}

/* Older files have add_prefix_space where newer ones say when. */
static dc_status read_meta(dc_building *b, const dc_jnode *v, dc_step *s)
{
    static const char *const names[] = {"never", "first", "always", NULL};
    bool prefix;
    int k;
    DC_TRY(dc_build_flag(b, v, "add_prefix_space", true, &prefix));
    DC_TRY(dc_build_flag(b, v, "split", true, &s->split));
    DC_TRY(dc_build_text(b, v, "replacement", &s->text));
    DC_TRY(read_choice(b, v, "prepend_scheme", names, prefix ? DC_PREPEND_ALWAYS : DC_PREPEND_NEVER,
                       &k));
    s->prepend = (dc_prepend)k;
    return s->text.n > 0 ? DC_OK : dc_refuse(b, "replacement is a character, not nothing");
}

static dc_status read_punctuation(dc_building *b, const dc_jnode *v, dc_step *s)
{
    return read_behavior(b, v, DC_SPLIT_ISOLATED, &s->behavior);
}

static dc_status read_delimiter(dc_building *b, const dc_jnode *v, dc_step *s)
{
    s->behavior = DC_SPLIT_REMOVED;
    s->pattern.kind = DC_PATTERN_LITERAL;
    DC_TRY(dc_build_text(b, v, "delimiter", &s->pattern.literal));
    return s->pattern.literal.n > 0 ? DC_OK : dc_refuse(b, "delimiter is a character, not nothing");
}

static dc_status read_length(dc_building *b, const dc_jnode *v, dc_step *s)
{
    return dc_build_whole(b, v, "length", 1, INT32_MAX, &s->stop);
}

static const row cutters[] = {
    {"ByteLevel", DC_STEP_CUT_BYTES, read_bytes, {"add_prefix_space", "trim_offsets", "use_regex"}},
    {"BertPreTokenizer", DC_STEP_CUT_BERT, NULL, {NULL}},
    {"Split", DC_STEP_CUT_SPLIT, read_split, {"pattern", "behavior", "invert"}},
    {"Digits", DC_STEP_CUT_DIGITS, read_digits, {"individual_digits"}},
    {"Metaspace",
     DC_STEP_CUT_META,
     read_meta,
     {"replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"}},
    {"Whitespace", DC_STEP_CUT_WORDS, NULL, {NULL}},
    {"WhitespaceSplit", DC_STEP_CUT_SPACES, NULL, {NULL}},
    {"Punctuation", DC_STEP_CUT_PUNCT, read_punctuation, {"behavior"}},
    {"CharDelimiterSplit", DC_STEP_CUT_SPLIT, read_delimiter, {"delimiter"}},
    {"FixedLength", DC_STEP_CUT_LENGTH, read_length, {"length"}},
};

/* ---- decoders --------------------------------------------------------------------------------- */

static dc_status read_wordpiece(dc_building *b, const dc_jnode *v, dc_step *s)
{
    DC_TRY(dc_build_text(b, v, "prefix", &s->text));
    return dc_build_flag(b, v, "cleanup", true, &s->clean);
}

static dc_status read_suffix(dc_building *b, const dc_jnode *v, dc_step *s)
{
    DC_TRY(dc_build_text(b, v, "suffix", &s->text));
    return s->text.n > 0 ? DC_OK : dc_refuse(b, "suffix is a text, not nothing");
}

static dc_status read_counts(dc_building *b, const dc_jnode *v, dc_step *s)
{
    DC_TRY(dc_build_text(b, v, "content", &s->text));
    DC_TRY(dc_build_whole(b, v, "start", 0, INT32_MAX, &s->start));
    DC_TRY(dc_build_whole(b, v, "stop", 0, INT32_MAX, &s->stop));
    return s->text.n > 0 ? DC_OK : dc_refuse(b, "content is a character, not nothing");
}

static dc_status read_ctc(dc_building *b, const dc_jnode *v, dc_step *s)
{
    DC_TRY(dc_build_text(b, v, "pad_token", &s->text));
    DC_TRY(dc_build_text(b, v, "word_delimiter_token", &s->word));
    DC_TRY(dc_build_flag(b, v, "cleanup", true, &s->clean));
    return s->text.n > 0 && s->word.n > 0
               ? DC_OK
               : dc_refuse(b, "pad_token and word_delimiter_token are texts, not nothing");
}

/* Not of files either: the piece that is unknown, what it is written as, and whether a text began with a blank. */
static dc_status read_of_sentencepiece(dc_building *b, const dc_jnode *v, dc_step *s)
{
    if (b->list == NULL || !b->list->sentencepiece)
        return dc_refuse(b, "the decoder 'SentencePiece' is not known");
    DC_TRY(dc_build_text(b, v, "unknown", &s->word));
    DC_TRY(dc_build_text(b, v, "surface", &s->text));
    DC_TRY(dc_build_flag(b, v, "strip", true, &s->dummy));
    return dc_build_flag(b, v, "all", true, &s->collapse);
}

static const row decoders[] = {
    {"ByteLevel", DC_STEP_OF_BYTES, NULL, {"add_prefix_space", "trim_offsets", "use_regex"}},
    {"WordPiece", DC_STEP_OF_WORDPIECE, read_wordpiece, {"prefix", "cleanup"}},
    {"Metaspace",
     DC_STEP_OF_META,
     read_meta,
     {"replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"}},
    {"BPEDecoder", DC_STEP_OF_BPE, read_suffix, {"suffix"}},
    {"Replace", DC_STEP_OF_REPLACE, read_replace, {"pattern", "content"}},
    {"ByteFallback", DC_STEP_OF_FALLBACK, NULL, {NULL}},
    {"Fuse", DC_STEP_OF_FUSE, NULL, {NULL}},
    {"Strip", DC_STEP_OF_STRIP, read_counts, {"content", "start", "stop"}},
    {"SentencePiece",
     DC_STEP_OF_SENTENCEPIECE,
     read_of_sentencepiece,
     {"unknown", "surface", "strip", "all"}},
    {"CTC", DC_STEP_OF_CTC, read_ctc, {"pad_token", "word_delimiter_token", "cleanup"}},
};

/* ---- lists of them ---------------------------------------------------------------------------- */

typedef struct kinds {
    const char *what, *list;
    const row *rows;
    size_t n;
} kinds;

static const row *find(const kinds *k, const dc_jnode *type)
{
    for (size_t i = 0; i < k->n; i++)
        if (dc_json_is(type, k->rows[i].type))
            return &k->rows[i];
    return NULL;
}

static dc_status add(dc_building *b, const kinds *k, const dc_jnode *v, dc_steps *to, int depth)
{
    const dc_jnode *type = dc_json_get(v, "type"), *list = dc_json_get(v, k->list);
    const char *const known_list[] = {k->list, NULL};
    if (dc_json_is(type, "Sequence")) {
        DC_TRY(dc_build_known(b, v, k->what, known_list));
        if (list == NULL || list->kind != DC_J_LIST || depth > 8)
            return dc_refuse(b, "%s is a list, not %s", k->list, dc_json_kind(list));
        for (const dc_jnode *one = list->child; one != NULL; one = one->next)
            DC_TRY(add(b, k, one, to, depth + 1));
        return DC_OK;
    }
    const row *r = find(k, type);
    if (r == NULL)
        return dc_refuse(b, "the %s '%.60s' is not known", k->what,
                         type != NULL && type->kind == DC_J_STRING ? type->v.s
                                                                   : dc_json_kind(type));
    DC_TRY(dc_build_known(b, v, r->type, r->known));
    if (to->n + 2 > DC_MOST_STEPS)
        return dc_refuse(b, "more than %d steps of the %s", DC_MOST_STEPS - 1, k->what);
    dc_step *s = &to->at[to->n++];
    s->kind = r->kind;
    if (r->read != NULL)
        DC_TRY(r->read(b, v, s));
    if (s->kind == DC_STEP_CUT_BYTES) /* bytes become characters behind it */
        to->at[to->n++].kind = DC_STEP_BYTES;
    return DC_OK;
}

static dc_status read_list(dc_building *b, const kinds *k, const dc_jnode *v, dc_steps *to)
{
    to->at = DC_NEW_ARRAY(&b->t->keep, dc_step, DC_MOST_STEPS);
    return v != NULL ? add(b, k, v, to, 0) : DC_OK;
}

dc_status dc_build_normalizer(dc_building *b, const dc_jnode *v)
{
    const kinds k = {"normalizer", "normalizers", normalizers, DC_COUNTOF(normalizers)};
    return read_list(b, &k, v, &b->t->normalizer);
}

dc_status dc_build_cutter(dc_building *b, const dc_jnode *v)
{
    const kinds k = {"pre-tokenizer", "pretokenizers", cutters, DC_COUNTOF(cutters)};
    return read_list(b, &k, v, &b->t->cutter);
}

dc_status dc_build_decoder(dc_building *b, const dc_jnode *v)
{
    const kinds k = {"decoder", "decoders", decoders, DC_COUNTOF(decoders)};
    return read_list(b, &k, v, &b->t->decoder);
}
