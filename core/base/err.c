/*
 * Records of failures: filled once, passed on. core/base/err_text.c makes text of them.
 */
#include "core/base/err.h"

#include "core/base/job.h"
#include "core/base/number.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const dc_err_row rows[] = {
#define ERR(id, code, status, text, hint) [DC_ERR_##id] = {code, DC_E_##status, text, hint},
#include "core/base/err.def"
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
    e->fact = fact != NULL ? *fact : (dc_fact){0};
    if (fact != NULL) {
        size_t used = 0;
        e->fact.op = keep_word(e, &used, fact->op);
        e->fact.word[0] = keep_word(e, &used, fact->word[0]);
        e->fact.word[1] = keep_word(e, &used, fact->word[1]);
    }
    return e->status;
}

void dc_err_at(struct dc_job *j, const char *where, const char *path)
{
    snprintf(j->err.where, sizeof j->err.where, "%s", where != NULL ? where : "");
    snprintf(j->err.path, sizeof j->err.path, "%s", path != NULL ? path : "");
}

static const char *moved(const char *p, const dc_err *to, const dc_err *from)
{
    const uintptr_t at = (uintptr_t)p, text = (uintptr_t)from->text;
    return at >= text && at < text + sizeof from->text ? to->text + (at - text) : p;
}

void dc_err_copy(dc_err *to, const dc_err *from)
{
    *to = *from;
    to->fact.op = moved(from->fact.op, to, from);
    for (size_t i = 0; i < DC_COUNTOF(to->fact.word); i++)
        to->fact.word[i] = moved(from->fact.word[i], to, from);
}

dc_status dc_err_take(struct dc_job *j, const dc_err *from)
{
    if (j->err.status == DC_OK) {
        dc_fail(j, from->id, &from->fact);
        memcpy(j->err.hint, from->hint, sizeof j->err.hint);
        dc_err_at(j, from->where, from->path);
    }
    return j->err.status;
}

dc_status dc_fail_memory(struct dc_job *j, uint64_t bytes)
{
    char size[DC_NUMBER_TEXT];
    if (dc_job_over_limit(j, bytes))
        return j->err.status;
    return dc_failf(j, DC_ERR_NOMEM, NULL, ": %s at once could not be had",
                    dc_number_bytes(bytes, size));
}

dc_status dc_failf(struct dc_job *j, dc_err_id id, const char *op, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    dc_number_vformat(text, sizeof text, fmt, ap);
    va_end(ap);
    return dc_fail(j, id, &(dc_fact){.op = op, .word = {text}});
}
