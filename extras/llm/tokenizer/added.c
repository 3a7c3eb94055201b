/*
 * Added tokens: found in the text before anything else, the longest at each place from the left. Those marked as normalized
 * are found in what normalizing leaves.
 */
#include "extras/llm/tokenizer/impl.h"

/* Is the last character before a place, or the one at it, part of a word? */
static bool word_before(const dc_tokenizer *t, const dc_piece *p, size_t at)
{
    size_t length, from = at;
    if (at == 0)
        return false;
    do
        from--;
    while (from > 0 && at - from < 4 && ((unsigned char)p->s[from] & 0xc0) == 0x80);
    return dc_unicode_row(t->u, dc_utf8_next(p->s + from, at - from, &length)) & DC_UC_WORD;
}

static bool word_at(const dc_tokenizer *t, const dc_piece *p, size_t at)
{
    size_t length;
    return at < p->n && (dc_unicode_row(t->u, dc_char_at(p->s, p->n, at, &length)) & DC_UC_WORD);
}

static size_t blanks_before(const dc_tokenizer *t, const dc_piece *p, size_t at, size_t least)
{
    while (at > least) {
        size_t length, from = at;
        do
            from--;
        while (from > least && at - from < 4 && ((unsigned char)p->s[from] & 0xc0) == 0x80);
        if (!(dc_unicode_row(t->u, dc_utf8_next(p->s + from, at - from, &length)) & DC_UC_SPACE))
            break;
        at = from;
    }
    return at;
}

static size_t blanks_at(const dc_tokenizer *t, const dc_piece *p, size_t at)
{
    size_t length;
    while (at < p->n && (dc_unicode_row(t->u, dc_char_at(p->s, p->n, at, &length)) & DC_UC_SPACE))
        at += length;
    return at;
}

typedef void between(dc_tokenizer *t, dc_piece p);

static void send(dc_tokenizer *t, const dc_piece *p, size_t from, size_t to, between *then)
{
    if (to > from && t->job->err.status == DC_OK)
        then(t, (dc_piece){.s = p->s + from,
                           .n = to - from,
                           .from = p->from != NULL ? p->from + from : NULL,
                           .first = p->first && from == 0});
}

static void find_all(dc_tokenizer *t, const dc_trie *trie, const dc_piece *p, between *then)
{
    size_t done = 0, at = 0;
    while (at < p->n) {
        uint32_t place = 0;
        dc_tokenizer_look(t, trie->begins[(unsigned char)p->s[at]] ? 64 : 1);
        const size_t n = dc_trie_longest(trie, p->s + at, p->n - at, &place);
        if (n == 0) {
            at++;
            continue;
        }
        const dc_added *a = &t->added[place];
        size_t from = at, to = at + n;
        at = to;
        if ((a->special && !t->parse_special) ||
            (a->single_word && (word_before(t, p, from) || word_at(t, p, to))))
            continue;
        if (a->lstrip)
            from = blanks_before(t, p, from, done);
        from = from > done ? from : done;
        if (a->rstrip) /* what is done already was blanks, if it goes further */
            to = blanks_at(t, p, to > done ? to : done);
        send(t, p, done, from, then);
        dc_model_put(t, a->id, *p, from, to > from ? to - from : 0);
        done = to > done ? to : done;
    }
    send(t, p, done, p->n, then);
}

static void cut(dc_tokenizer *t, dc_piece p)
{
    dc_cut(t, 0, p);
}

static void normalized(dc_tokenizer *t, dc_piece p)
{
    p = dc_normalize(t, p);
    if (p.n == 0)
        return;
    if (t->has_normal)
        find_all(t, &t->normal, &p, cut);
    else
        dc_cut(t, 0, p);
}

void dc_added_encode(dc_tokenizer *t, dc_piece p)
{
    if (t->has_raw)
        find_all(t, &t->raw, &p, normalized);
    else if (p.n > 0)
        normalized(t, p);
}
