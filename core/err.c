#include "core/err.h"

#include "core/job.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const dc_err_row rows[] = {
#define ERR(id, code, status, text, hint) [DC_ERR_##id] = {code, DC_E_##status, text, hint},
#include "core/err.def"
};

const dc_err_row *dc_err_row_of(dc_err_id id)
{
    return &rows[id];
}

/* Copies a word into the record's own text, cutting what does not fit. */
static const char *keep_word(dc_err *e, size_t *used, const char *word)
{
    if (word == NULL)
        return NULL;
    const size_t room = sizeof e->text - *used;
    if (room < 2)
        return "";
    char *to = e->text + *used;
    size_t n = strlen(word);
    if (n > room - 1)
        n = room - 1;
    memcpy(to, word, n);
    to[n] = '\0';
    *used += n + 1;
    return to;
}

dc_status dc_fail(struct dc_job *j, dc_err_id id, const dc_fact *fact)
{
    dc_err *e = &j->err;
    if (e->status != DC_OK)
        return e->status;
    e->id = id;
    e->status = rows[id].status;
    if (fact != NULL) {
        size_t used = 0;
        e->fact = *fact;
        e->fact.op = keep_word(e, &used, fact->op);
        e->fact.word[0] = keep_word(e, &used, fact->word[0]);
        e->fact.word[1] = keep_word(e, &used, fact->word[1]);
    }
    return e->status;
}

dc_status dc_err_take(struct dc_job *j, const dc_err *from)
{
    if (j->err.status == DC_OK) {
        dc_fail(j, from->id, &from->fact);
        memcpy(j->err.hint, from->hint, sizeof j->err.hint);
    }
    return j->err.status;
}

dc_status dc_failf(struct dc_job *j, dc_err_id id, const char *op, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return dc_fail(j, id, &(dc_fact){.op = op, .word = {text}});
}

typedef struct sink {
    char *out;
    size_t size, n;
} sink;

static void put(sink *s, const char *text)
{
    for (; *text != '\0'; text++, s->n++)
        if (s->n + 1 < s->size)
            s->out[s->n] = *text;
}

static void put_field(sink *s, const dc_fact *f, int base, char kind, int i)
{
    char text[DC_TYPE_TEXT];
    switch (kind) {
    case 'a':
        snprintf(text, sizeof text, "%d", f->axis[i & 1] + base);
        break;
    case 'n':
        snprintf(text, sizeof text, "%" PRId64, f->num[i & 3]);
        break;
    case 't':
        dc_type_print(&f->type[i & 1], text, sizeof text);
        break;
    default:
        put(s, f->word[i & 1] ? f->word[i & 1] : "");
        return;
    }
    put(s, text);
}

int dc_err_render(const dc_err *e, int axis_base, char *out, size_t size)
{
    sink s = {out, size, 0};
    if (e->fact.op != NULL) {
        put(&s, e->fact.op);
        put(&s, ": ");
    }
    for (const char *t = rows[e->id].text; *t != '\0'; t++) {
        if (t[0] == '{' && t[1] != '\0' && t[2] >= '0' && t[2] <= '3' && t[3] == '}') {
            put_field(&s, &e->fact, axis_base, t[1], t[2] - '0');
            t += 3;
        } else {
            const char one[2] = {*t, '\0'};
            put(&s, one);
        }
    }
    if (size > 0)
        out[s.n < size ? s.n : size - 1] = '\0';
    return (int)s.n;
}
