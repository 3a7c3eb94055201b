#include "core/base/log.h"

#include "core/base/heap.h"
#include "core/base/number.h"
#include "core/base/shown.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = {
#define CH(id, name, help) name,
    DC_CHANNELS(CH)
#undef CH
};

const char *dc_log_channels(void)
{
#define CH(id, name, help) name " "
    return DC_CHANNELS(CH) "all";
#undef CH
}

const char *dc_log_select(dc_log *log, const char *words)
{
    log->on |= 1u << DC_CH_NOTE;
    for (const char *w = words; *w != '\0';) {
        const size_t n = strcspn(w, ", ");
        bool known = n == 0;
        if (n == 3 && memcmp(w, "all", 3) == 0) {
            log->on |= (1u << DC_CH__COUNT) - 1;
            known = true;
        }
        for (int i = 0; i < DC_CH__COUNT; i++)
            if (strlen(names[i]) == n && memcmp(w, names[i], n) == 0) {
                log->on |= 1u << i;
                known = true;
            }
        if (!known)
            return w;
        w += n;
        w += strspn(w, ", ");
    }
    return NULL;
}

void dc_logf(dc_log *log, dc_channel ch, const char *fmt, ...)
{
    if (!dc_log_on(log, ch) || log->write == NULL)
        return;
    char text[1024], line[1200];
    const int n = snprintf(line, sizeof line, "[%s] ", names[ch]);
    va_list ap;
    va_start(ap, fmt);
    dc_number_vformat(text, sizeof text, fmt, ap);
    va_end(ap);
    dc_shown_put(line + n, sizeof line - (size_t)n - 1, text, strlen(text), false);
    strcat(line, "\n");
    log->write(log->ctx, names[ch], line, strlen(line));
}

/* Lines in which something is escaped. */
static void write_shown(dc_log *log, dc_channel ch, const char *text, size_t n)
{
    const size_t m = dc_shown_put(NULL, 0, text, n, true);
    char *shown = dc_try_realloc(NULL, m + 1);
    if (shown == NULL) {
        dc_logf(log, ch, "there was no memory for this text");
        return;
    }
    dc_shown_put(shown, m + 1, text, n, true);
    log->write(log->ctx, names[ch], shown, m);
    dc_xfree(shown);
}

void dc_log_text(dc_log *log, dc_channel ch, const char *heading, const char *text)
{
    if (!dc_log_on(log, ch) || log->write == NULL)
        return;
    dc_logf(log, ch, "%s", heading);
    const size_t n = strlen(text);
    if (dc_shown_is_plain(text, n, true))
        log->write(log->ctx, names[ch], text, n);
    else
        write_shown(log, ch, text, n);
    if (n == 0 || text[n - 1] != '\n')
        log->write(log->ctx, names[ch], "\n", 1);
}

/* ---- lines kept for later -------------------------------------------------------------------- */

/* Before each text that is kept. */
typedef struct kept {
    const char *channel;
    size_t n;
} kept;

static bool reserve_text(dc_log_buffer *b, size_t more)
{
    if (b->size - b->n >= more)
        return true;
    const size_t size = 2 * b->size + more;
    char *grown = dc_try_realloc(b->text, size);
    if (grown == NULL)
        return false;
    b->text = grown;
    b->size = size;
    return true;
}

void dc_log_keep(void *buffer, const char *channel, const char *text, size_t n)
{
    dc_log_buffer *b = buffer;
    const kept k = {channel, n};
    if (!reserve_text(b, sizeof k + n)) {
        b->lost = true;
        return;
    }
    memcpy(b->text + b->n, &k, sizeof k);
    memcpy(b->text + b->n + sizeof k, text, n);
    b->n += sizeof k + n;
}

/* The sink may log, and so deliver, itself: the buffer is empty before it hears anything. */
void dc_log_deliver(dc_log_buffer *b, dc_log *to)
{
    const dc_log_buffer had = *b;
    kept k;
    *b = (dc_log_buffer){0};
    for (size_t at = 0; at < had.n && to->write != NULL; at += sizeof k + k.n) {
        memcpy(&k, had.text + at, sizeof k);
        to->write(to->ctx, k.channel, had.text + at + sizeof k, k.n);
    }
    if (had.lost)
        dc_logf(to, DC_CH_NOTE, "there was no memory for some of the lines before this one");
    dc_xfree(had.text);
}
