/*
 * From a description to a tokenizer: its parts in build_steps.c and build_model.c, added tokens, special tokens of the
 * post-processor. Every field is read or refused by its name.
 */
#include "core/base/path.h"
#include "extras/llm/tokenizer/impl.h"

#include <string.h>

/* ---- fields ----------------------------------------------------------------------------------- */

enum { MOST_FIELDS = 64 };

dc_status dc_build_known(dc_building *b, const dc_jnode *o, const char *what,
                         const char *const *known)
{
    if (o->kind != DC_J_OBJECT)
        return dc_refuse(b, "%s is an object, not %s", what, dc_json_kind(o));
    if (o->n > MOST_FIELDS)
        return dc_refuse(b, "%s has %u fields, %d are the most", what, o->n, MOST_FIELDS);
    for (const dc_jnode *v = o->child; v != NULL; v = v->next) {
        bool found = strcmp(v->key, "type") == 0;
        for (const dc_jnode *w = v->next; w != NULL; w = w->next)
            if (strcmp(v->key, w->key) == 0)
                return dc_refuse(b, "%s has a field '%.60s' twice", what, v->key);
        for (const char *const *k = known; !found && *k != NULL; k++)
            found = strcmp(v->key, *k) == 0;
        if (!found)
            return dc_refuse(b, "%s has a field '%.60s', which is not known", what, v->key);
    }
    return DC_OK;
}

dc_status dc_build_flag(dc_building *b, const dc_jnode *o, const char *key, bool dflt, bool *out)
{
    const dc_jnode *v = dc_json_get(o, key);
    *out = dflt;
    if (v == NULL)
        return DC_OK;
    if (v->kind != DC_J_BOOL)
        return dc_refuse(b, "%s is true or false, not %s", key, dc_json_kind(v));
    *out = v->v.num != 0;
    return DC_OK;
}

dc_span dc_build_copy(dc_building *b, dc_span s)
{
    char *to = dc_arena_alloc(&b->t->keep, s.n + 1);
    memcpy(to, s.at, s.n);
    return (dc_span){to, s.n};
}

dc_status dc_build_text(dc_building *b, const dc_jnode *o, const char *key, dc_span *out)
{
    const dc_jnode *v = dc_json_get(o, key);
    if (v == NULL || v->kind != DC_J_STRING)
        return dc_refuse(b, "%s is a string, not %s", key, dc_json_kind(v));
    *out = dc_build_copy(b, (dc_span){v->v.s, v->n});
    return DC_OK;
}

dc_status dc_build_whole(dc_building *b, const dc_jnode *o, const char *key, int64_t least,
                         int64_t most, int64_t *out)
{
    const dc_jnode *v = dc_json_get(o, key);
    if (v == NULL || v->kind != DC_J_NUMBER)
        return dc_refuse(b, "%s is a number, not %s", key, dc_json_kind(v));
    if (!(v->v.num >= (double)least && v->v.num <= (double)most) ||
        v->v.num != (double)(int64_t)v->v.num)
        return dc_refuse(b, "%s is a whole number of %d to %d, not %g", key, (int)least, (int)most,
                         v->v.num);
    *out = (int64_t)v->v.num;
    return DC_OK;
}

/* ---- added tokens ----------------------------------------------------------------------------- */

enum { MOST_ADDED_BYTES = 1024 };

static dc_status read_added(dc_building *b, const dc_jnode *v, dc_added *a)
{
    static const char *const known[] = {"id",     "content",    "single_word", "lstrip",
                                        "rstrip", "normalized", "special",     NULL};
    int64_t id;
    DC_TRY(dc_build_known(b, v, "an added token", known));
    DC_TRY(dc_build_whole(b, v, "id", 0, INT32_MAX, &id));
    DC_TRY(dc_build_text(b, v, "content", &a->text));
    DC_TRY(dc_build_flag(b, v, "special", false, &a->special));
    DC_TRY(dc_build_flag(b, v, "normalized", !a->special, &a->normalized));
    DC_TRY(dc_build_flag(b, v, "single_word", false, &a->single_word));
    DC_TRY(dc_build_flag(b, v, "lstrip", false, &a->lstrip));
    DC_TRY(dc_build_flag(b, v, "rstrip", false, &a->rstrip));
    if (a->text.n > MOST_ADDED_BYTES)
        return dc_refuse(b, "the added token %d has %zu bytes, %d are the most", (int)id, a->text.n,
                         MOST_ADDED_BYTES);
    a->id = (uint32_t)id;
    return DC_OK;
}

static dc_status read_all_added(dc_building *b, const dc_jnode *list)
{
    dc_tokenizer *t = b->t;
    if (list == NULL)
        return DC_OK;
    if (list->kind != DC_J_LIST)
        return dc_refuse(b, "added_tokens is a list, not %s", dc_json_kind(list));
    t->added = DC_NEW_ARRAY(&t->keep, dc_added, list->n + 1);
    for (const dc_jnode *v = list->child; v != NULL; v = v->next) {
        dc_tokenizer_look(t, 64);
        DC_TRY(read_added(b, v, &t->added[t->nadded++]));
    }
    return DC_OK;
}

/* All tokens by number: the model's, and added ones. */
static dc_status number_all(dc_building *b, const dc_vocab *own)
{
    dc_tokenizer *t = b->t;
    uint32_t size = own->size;
    for (uint32_t i = 0; i < t->nadded; i++) {
        const uint32_t most = own->size + t->nadded * 8 + (1 << 16);
        if (t->added[i].id >= most)
            return dc_refuse(
                b, "the added token '%.60s' has the id %u: that is far above the number of tokens",
                t->added[i].text.at, t->added[i].id);
        size = t->added[i].id >= size ? t->added[i].id + 1 : size;
    }
    dc_vocab_init(&t->all, &t->keep, size, (size_t)own->size + t->nadded);
    for (uint32_t id = 0; id < own->size; id++) {
        dc_tokenizer_look(t, 16);
        if (own->token[id].at != NULL && dc_vocab_add(&t->all, own->token[id], id) != id)
            t->all.token[id] = own->token[id]; /* a list may have a text twice */
    }
    t->added_of = DC_NEW_ARRAY(&t->keep, uint32_t, (size_t)size + 1);
    for (uint32_t i = 0; i < t->nadded; i++) {
        const dc_added *a = &t->added[i];
        const dc_span there = t->all.token[a->id];
        if (there.at != NULL &&
            (there.n != a->text.n || memcmp(there.at, a->text.at, there.n) != 0))
            return dc_refuse(b, "the id %u is that of two tokens, '%.60s' and '%.60s'", a->id,
                             there.at, a->text.at);
        const uint32_t id = dc_vocab_add(&t->all, a->text, a->id);
        if (id != a->id && there.at == NULL)
            return dc_refuse(b, "the token '%.60s' has two ids, %u and %u", a->text.at, id, a->id);
        t->added_of[a->id] = i + 1;
    }
    return DC_OK;
}

/* Those of one kind into a tree of their texts, as they are or normalized. */
static dc_status plant(dc_building *b, bool normalized, dc_trie *trie, bool *has)
{
    dc_tokenizer *t = b->t;
    size_t bytes = 0;
    if (b->list != NULL && b->list->sentencepiece && !b->list->find_special)
        return DC_OK;
    for (uint32_t i = 0; i < t->nadded; i++)
        bytes += t->added[i].normalized == normalized ? t->added[i].text.n * 8 + 64 : 0;
    if (bytes >= 1 << 24)
        return dc_refuse(b, "added tokens of so many bytes are too many");
    dc_trie_init(trie, &t->keep, bytes);
    t->work = dc_regex_work(bytes);
    for (uint32_t i = 0; i < t->nadded; i++) {
        dc_added *a = &t->added[i];
        dc_piece p = {.s = a->text.at, .n = a->text.n, .first = true};
        if (a->normalized != normalized)
            continue;
        if (normalized)
            p = dc_normalize(t, p);
        DC_TRY(b->job->err.status);
        if (p.n > a->text.n * 8 + 64)
            return dc_refuse(b, "the added token '%.60s' becomes %zu bytes when it is normalized",
                             a->text.at, p.n);
        if (p.n != a->text.n || memcmp(p.s, a->text.at, p.n) != 0)
            a->shown = dc_build_copy(b, (dc_span){p.s, p.n});
        if (p.n > 0) {
            dc_trie_add(trie, p.s, p.n, i);
            *has = true;
        }
    }
    return DC_OK;
}

/* ---- special tokens around texts -------------------------------------------------------------- */

static void push_part(dc_template *m, dc_part part)
{
    m->part[m->n++] = part;
    m->ntoken += part.kind == DC_PART_TOKEN;
}

/* ["[SEP]", 102] */
static dc_status read_named(dc_building *b, const dc_jnode *o, const char *key, uint32_t *id)
{
    const dc_jnode *v = dc_json_get(o, key);
    if (v == NULL || v->kind != DC_J_LIST || v->n != 2 || v->child->kind != DC_J_STRING ||
        v->child->next->kind != DC_J_NUMBER)
        return dc_refuse(b, "%s of the post-processor is a token and its id", key);
    const double n = v->child->next->v.num;
    if (!(n >= 0 && n < b->t->all.size) || n != (double)(uint32_t)n)
        return dc_refuse(b, "%s of the post-processor has the id %g, and tokens have 0 to %u", key,
                         n, b->t->all.size - 1);
    *id = (uint32_t)n;
    return DC_OK;
}

/* BERT's: [CLS] a [SEP] b [SEP]; RoBERTa's: <s> a </s> </s> b </s>. */
static dc_status read_two(dc_building *b, const dc_jnode *v, bool roberta)
{
    static const char *const known[] = {"sep", "cls", "trim_offsets", "add_prefix_space", NULL};
    static const char *const of_bert[] = {"sep", "cls", NULL};
    dc_tokenizer *t = b->t;
    uint32_t sep = 0, cls = 0;
    DC_TRY(dc_build_known(b, v, "the post-processor", roberta ? known : of_bert));
    DC_TRY(read_named(b, v, "sep", &sep));
    DC_TRY(read_named(b, v, "cls", &cls));
    if (roberta) {
        DC_TRY(dc_build_flag(b, v, "trim_offsets", true, &t->trim));
        DC_TRY(dc_build_flag(b, v, "add_prefix_space", true, &t->trim_prefix));
    }
    t->single.part = DC_NEW_ARRAY(&t->keep, dc_part, 3);
    t->pair.part = DC_NEW_ARRAY(&t->keep, dc_part, 6);
    const uint8_t second = roberta ? 0 : 1;
    const dc_part first = {DC_PART_TOKEN, cls, 0}, text = {DC_PART_TEXT, 0, 0},
                  end = {DC_PART_TOKEN, sep, 0}, pair = {DC_PART_PAIR, 0, second},
                  last = {DC_PART_TOKEN, sep, second};
    push_part(&t->single, first);
    push_part(&t->single, text);
    push_part(&t->single, end);
    push_part(&t->pair, first);
    push_part(&t->pair, text);
    push_part(&t->pair, end);
    if (roberta)
        push_part(&t->pair, end);
    push_part(&t->pair, pair);
    push_part(&t->pair, last);
    return DC_OK;
}

enum { MOST_PARTS = 1000 };

static dc_status read_special(dc_building *b, const dc_jnode *specials, const dc_jnode *name,
                              uint8_t type, dc_template *m)
{
    const dc_jnode *s =
        name != NULL && name->kind == DC_J_STRING ? dc_json_get(specials, name->v.s) : NULL;
    const dc_jnode *ids = dc_json_get(s, "ids");
    if (ids == NULL || ids->kind != DC_J_LIST)
        return dc_refuse(
            b, "the post-processor names a token '%.60s' that is not in its special_tokens",
            name != NULL && name->kind == DC_J_STRING ? name->v.s : "");
    if (ids->n > MOST_PARTS || m->n + ids->n > MOST_PARTS)
        return dc_refuse(b, "the post-processor adds more than %d tokens", MOST_PARTS);
    dc_part *grown = DC_NEW_ARRAY(&b->t->keep, dc_part, m->n + ids->n + 1);
    if (m->n > 0)
        memcpy(grown, m->part, m->n * sizeof *grown);
    m->part = grown;
    for (const dc_jnode *v = ids->child; v != NULL; v = v->next) {
        if (v->kind != DC_J_NUMBER || !(v->v.num >= 0 && v->v.num < b->t->all.size) ||
            v->v.num != (double)(uint32_t)v->v.num)
            return dc_refuse(
                b, "the special token '%.60s' of the post-processor has an id that no token has",
                name->v.s);
        push_part(m, (dc_part){DC_PART_TOKEN, (uint32_t)v->v.num, type});
    }
    return DC_OK;
}

static dc_status read_template(dc_building *b, const dc_jnode *list, const dc_jnode *specials,
                               bool two, dc_template *m)
{
    int64_t type;
    if (list == NULL || list->kind != DC_J_LIST)
        return dc_refuse(b, "%s of the post-processor is a list, not %s", two ? "pair" : "single",
                         dc_json_kind(list));
    if (list->n > 100)
        return dc_refuse(b, "%s of the post-processor has %u parts, 100 are the most",
                         two ? "pair" : "single", list->n);
    m->part = DC_NEW_ARRAY(&b->t->keep, dc_part, 1);
    for (const dc_jnode *v = list->child; v != NULL; v = v->next) {
        const dc_jnode *special = dc_json_get(v, "SpecialToken"),
                       *text = dc_json_get(v, "Sequence");
        const dc_jnode *of = special != NULL ? special : text, *id = dc_json_get(of, "id");
        if (of == NULL)
            return dc_refuse(
                b, "a part of the post-processor is neither a Sequence nor a SpecialToken");
        DC_TRY(dc_build_whole(b, of, "type_id", 0, 255, &type));
        if (special != NULL) {
            DC_TRY(read_special(b, specials, id, (uint8_t)type, m));
            continue;
        }
        if (!dc_json_is(id, "A") && !(two && dc_json_is(id, "B")))
            return dc_refuse(b, "a Sequence of the post-processor is A%s", two ? " or B" : "");
        dc_part *grown = DC_NEW_ARRAY(&b->t->keep, dc_part, m->n + 1);
        if (m->n > 0)
            memcpy(grown, m->part, m->n * sizeof *grown);
        m->part = grown;
        push_part(m,
                  (dc_part){dc_json_is(id, "A") ? DC_PART_TEXT : DC_PART_PAIR, 0, (uint8_t)type});
    }
    return DC_OK;
}

static dc_status read_post(dc_building *b, const dc_jnode *v, int depth)
{
    static const char *const of_bytes[] = {"add_prefix_space", "trim_offsets", "use_regex", NULL};
    static const char *const of_template[] = {"single", "pair", "special_tokens", NULL};
    static const char *const of_list[] = {"processors", NULL};
    const dc_jnode *type = dc_json_get(v, "type"), *list = dc_json_get(v, "processors");
    dc_tokenizer *t = b->t;
    if (dc_json_is(type, "ByteLevel")) {
        DC_TRY(dc_build_known(b, v, "the post-processor", of_bytes));
        DC_TRY(dc_build_flag(b, v, "trim_offsets", true, &t->trim));
        return dc_build_flag(b, v, "add_prefix_space", true, &t->trim_prefix);
    }
    if (dc_json_is(type, "Sequence") && list != NULL && list->kind == DC_J_LIST && depth < 8) {
        DC_TRY(dc_build_known(b, v, "the post-processor", of_list));
        for (const dc_jnode *one = list->child; one != NULL; one = one->next)
            DC_TRY(read_post(b, one, depth + 1));
        return DC_OK;
    }
    if (t->single.n > 0)
        return dc_refuse(b, "a post-processor that adds tokens after another one is not known");
    if (dc_json_is(type, "BertProcessing") || dc_json_is(type, "RobertaProcessing"))
        return read_two(b, v, dc_json_is(type, "RobertaProcessing"));
    if (dc_json_is(type, "TemplateProcessing")) {
        const dc_jnode *specials = dc_json_get(v, "special_tokens");
        DC_TRY(dc_build_known(b, v, "the post-processor", of_template));
        DC_TRY(read_template(b, dc_json_get(v, "single"), specials, false, &t->single));
        return read_template(b, dc_json_get(v, "pair"), specials, true, &t->pair);
    }
    return dc_refuse(b, "the post-processor '%.60s' is not known",
                     type != NULL && type->kind == DC_J_STRING ? type->v.s : "");
}

dc_status dc_build_post(dc_building *b, const dc_jnode *v)
{
    return v != NULL ? read_post(b, v, 0) : DC_OK;
}

/* ---- what a file asks for besides ------------------------------------------------------------- */

static dc_status read_truncation(dc_building *b, const dc_jnode *v)
{
    static const char *const known[] = {"max_length", "strategy", "stride", "direction", NULL};
    const dc_jnode *direction = dc_json_get(v, "direction");
    int64_t most;
    if (v == NULL)
        return DC_OK;
    DC_TRY(dc_build_known(b, v, "truncation", known));
    DC_TRY(dc_build_whole(b, v, "max_length", 0, INT32_MAX, &most));
    b->t->info.most = most;
    if (direction != NULL && !dc_json_is(direction, "Right"))
        return dc_refuse(b, "truncation at the left is not known");
    return DC_OK;
}

static dc_status read_padding(dc_building *b, const dc_jnode *v)
{
    static const char *const known[] = {
        "strategy", "direction", "pad_to_multiple_of", "pad_id", "pad_type_id", "pad_token", NULL};
    dc_tokenizer_info *info = &b->t->info;
    if (v == NULL)
        return DC_OK;
    DC_TRY(dc_build_known(b, v, "padding", known));
    DC_TRY(dc_build_whole(b, v, "pad_id", 0, INT32_MAX, &info->pad));
    info->pad_left = dc_json_is(dc_json_get(v, "direction"), "Left");
    return DC_OK;
}

/* ---- the whole -------------------------------------------------------------------------------- */

/* Bytes of characters are made by the model itself where the last cut asks for them. */
static void choose_bytes(dc_tokenizer *t, const dc_jnode *model)
{
    uint32_t maps = 0;
    dc_steps *c = &t->cutter;
    for (uint32_t i = 0; i < t->normalizer.n; i++)
        maps += t->normalizer.at[i].kind == DC_STEP_BYTES;
    for (uint32_t i = 0; i < c->n; i++)
        maps += c->at[i].kind == DC_STEP_BYTES;
    const dc_jnode *before = dc_json_get(model, "continuing_subword_prefix"),
                   *behind = dc_json_get(model, "end_of_word_suffix");
    const bool plain = (before == NULL || before->n == 0) && (behind == NULL || behind->n == 0);
    if (maps == 1 && c->n > 0 && c->at[c->n - 1].kind == DC_STEP_BYTES && plain &&
        (dc_json_is(dc_json_get(model, "type"), "BPE") || dc_json_get(model, "merges") != NULL)) {
        t->model.bytes = true;
        c->n--;
    }
}

static dc_status build(dc_building *b, const dc_jnode *root)
{
    static const char *const known[] = {
        "version",       "truncation",     "padding", "added_tokens", "normalizer",
        "pre_tokenizer", "post_processor", "decoder", "model",        NULL};
    dc_tokenizer *t = b->t;
    const dc_jnode *model = dc_json_get(root, "model");
    DC_TRY(dc_build_known(b, root, "a tokenizer", known));
    if (model == NULL)
        return dc_refuse(b, "there is no model");
    DC_TRY(dc_unicode_new(b->job, &t->keep, &t->u));
    DC_TRY(dc_build_normalizer(b, dc_json_get(root, "normalizer")));
    DC_TRY(dc_build_cutter(b, dc_json_get(root, "pre_tokenizer")));
    DC_TRY(dc_build_decoder(b, dc_json_get(root, "decoder")));
    choose_bytes(t, model);
    DC_TRY(read_all_added(b, dc_json_get(root, "added_tokens")));
    DC_TRY(dc_build_model(b, model));
    DC_TRY(number_all(b, &t->spelled));
    DC_TRY(plant(b, false, &t->raw, &t->has_raw));
    DC_TRY(plant(b, true, &t->normal, &t->has_normal));
    DC_TRY(dc_build_post(b, dc_json_get(root, "post_processor")));
    DC_TRY(read_truncation(b, dc_json_get(root, "truncation")));
    return read_padding(b, dc_json_get(root, "padding"));
}

static void release(void *t)
{
    dc_tokenizer_free(t);
}

dc_status dc_tokenizer_new(dc_job *j, const char *name, char *json, size_t n,
                           const dc_token_list *list, dc_tokenizer **out)
{
    const dc_jnode *root;
    dc_tokenizer *t = dc_xalloc(sizeof *t);
    dc_building b = {.job = j, .name = name, .t = t, .list = list};
    dc_job_defer(j, release, t);
    t->job = j;
    t->info = (dc_tokenizer_info){.most = -1, .pad = -1};
    dc_status status = dc_json_tree(j, name, json, n, &j->scratch, &root);
    if (status == DC_OK)
        status = build(&b, root);
    t->job = NULL;
    *out = status == DC_OK ? t : NULL;
    return dc_job_settle(j, t, status);
}

void dc_tokenizer_free(dc_tokenizer *t)
{
    if (t == NULL)
        return;
    dc_regex_close(t);
    for (size_t i = 0; i < DC_COUNTOF(t->write); i++) {
        dc_xfree(t->write[i].s);
        dc_xfree(t->write[i].from);
    }
    for (int i = 0; i < 2; i++) {
        DC_VEC_FREE(t->ids[i]);
        DC_VEC_FREE(t->ranges[i]);
    }
    DC_VEC_FREE(t->origin);
    DC_VEC_FREE(t->symbol);
    DC_VEC_FREE(t->heap);
    DC_VEC_FREE(t->halves);
    DC_VEC_FREE(t->best);
    DC_VEC_FREE(t->out);
    DC_VEC_FREE(t->types);
    DC_VEC_FREE(t->marks);
    DC_VEC_FREE(t->out_ranges);
    dc_text_free(&t->text);
    dc_arena_free(&t->keep);
    dc_xfree(t);
}

dc_tokenizer_info dc_tokenizer_about(const dc_tokenizer *t)
{
    return t->info;
}
