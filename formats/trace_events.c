#define _GNU_SOURCE /* syscall, gethostname */
#include "formats/trace_events.h"

#include "core/base/outfile.h"
#include "core/base/path.h"
#include "formats/flow.h"
#include "formats/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PIECE = 1 << 20 }; /* bytes of text that are written together */

typedef struct writer {
    dc_job *j;
    const dc_spans *s;
    const dc_trace_facts *f;
    const char *path;
    dc_outfile *file;
    dc_text *text;
    z_stream gz;
    uint64_t given, taken; /* bytes, by deflate and by the file */
    bool packed;
    unsigned char *room; /* PIECE bytes of what was compressed */
    bool any;            /* an event was written */
} writer;

/* ---- bytes ------------------------------------------------------------------------------------- */

static dc_status deflate_all(writer *w, int flush)
{
    dc_flow f = {.from = (const unsigned char *)w->text->s, .nfrom = w->text->n};
    dc_flowed how;
    bool grows; /* by more than deflate's blocks that are stored as they are */
    w->given += f.nfrom;
    do {
        f.to = w->room;
        f.nto = PIECE;
        how = dc_deflate(&w->gz, &f, flush);
        DC_TRY(dc_outfile_write(w->file, w->room, PIECE - f.nto));
        w->taken += PIECE - f.nto;
        grows = w->taken > w->given + w->given / 8 + PIECE;
    } while (f.nto == 0 && how == DC_FLOWED_SOME && !grows);
    if (f.nfrom == 0 && !grows && how == (flush == Z_FINISH ? DC_FLOWED_ALL : DC_FLOWED_SOME))
        return DC_OK;
    return dc_path_fail(w->j, DC_ERR_FILE, w->path,
                        "cannot be written: zlib does not pack the data whole");
}

static dc_status flush(writer *w, bool end)
{
    dc_status status = DC_OK;
    if (w->packed)
        status = deflate_all(w, end ? Z_FINISH : Z_NO_FLUSH);
    else if (w->text->n > 0)
        status = dc_outfile_write(w->file, w->text->s, w->text->n);
    w->text->n = 0;
    return status;
}

static void end_packing(void *z)
{
    deflateEnd(z);
}

/* ---- JSON -------------------------------------------------------------------------------------- */

/* Texts of scripts may be any bytes. */
static void put_string(writer *w, const char *s)
{
    const size_t n = w->text->n;
    if (dc_json_print(w->text, s))
        return;
    w->text->n = n;
    dc_text_puts(w->text, "\"");
    for (; *s != '\0'; s++) {
        const unsigned char c = (unsigned char)*s;
        if (c >= ' ' && c < 0x7f)
            dc_text_printf(w->text, "%s%c", c == '"' || c == '\\' ? "\\" : "", c);
        else
            dc_text_printf(w->text, "\\u%04x", c); /* as Latin-1 */
    }
    dc_text_puts(w->text, "\"");
}

static void put_us(writer *w, const char *key, uint64_t ns)
{
    dc_text_printf(w->text, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000, (unsigned)(ns % 1000));
}

/* Each rank is a process of the picture. */
static void begin_event(writer *w, const char *kind, int64_t thread)
{
    dc_text_printf(w->text, "%s{\"ph\":\"%s\",\"pid\":%d,\"tid\":%" PRId64, w->any ? ",\n" : "\n",
                   kind, w->f->rank + 1, thread);
    w->any = true;
}

static void put_fact(writer *w, int64_t thread, const char *what, const char *name)
{
    begin_event(w, "M", thread);
    dc_text_printf(w->text, ",\"name\":\"%s\",\"args\":{\"name\":", what);
    put_string(w, name);
    dc_text_puts(w->text, "}}");
}

static void put_order(writer *w, int64_t thread, int order)
{
    begin_event(w, "M", thread);
    dc_text_printf(w->text, ",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%d}}", order);
}

static void put_process(writer *w)
{
    char name[300];
    const dc_trace_facts *f = w->f;
    if (f->ranks != 1)
        snprintf(name, sizeof name, "rank %d on %s, %s", f->rank, f->host, f->device);
    else
        snprintf(name, sizeof name, "deepc %s, %s", f->version, f->device);
    put_fact(w, 0, "process_name", name);
}

/* ---- lanes ------------------------------------------------------------------------------------- */

/* Devices have small numbers, which no thread of a program has. */
static int64_t thread_of(const writer *w, uint32_t lane)
{
    const dc_span_lane *l = dc_spans_lane_at(w->s, lane);
    return l->thread != 0 ? l->thread : (int64_t)lane;
}

static void put_lanes(writer *w)
{
    static const char own[] = "deepc ";
    for (uint32_t i = 1; i <= dc_spans_lanes(w->s); i++) {
        const dc_span_lane *l = dc_spans_lane_at(w->s, i);
        const bool script = l->thread != 0 && l->thread == w->f->thread;
        const bool ours = strncmp(l->name, own, sizeof own - 1) == 0;
        const char *name = script ? "script" : l->name + (ours ? sizeof own - 1 : 0);
        put_fact(w, thread_of(w, i), "thread_name", name);
        put_order(w, thread_of(w, i), script ? 0 : l->thread == 0 ? 1 : 2);
    }
}

/* ---- spans ------------------------------------------------------------------------------------- */

static void put_text_argument(writer *w, const char *key, const char *text, const char **sign)
{
    if (text == NULL || text[0] == '\0')
        return;
    dc_text_printf(w->text, "%s\"%s\":", *sign, key);
    put_string(w, text);
    *sign = ",";
}

static void put_count(writer *w, const char *key, double value, const char **sign)
{
    if (!(value > 0))
        return;
    dc_text_printf(w->text, "%s\"%s\":%" PRId64, *sign, key, (int64_t)value);
    *sign = ",";
}

/* With three decimals, whatever the locale. */
static void put_rate(writer *w, const char *key, double value, const char **sign)
{
    if (!(value > 0) || value > 1e12)
        return;
    const uint64_t thousandths = (uint64_t)(value * 1000 + 0.5);
    dc_text_printf(w->text, "%s\"%s\":%" PRIu64 ".%03u", *sign, key, thousandths / 1000,
                   (unsigned)(thousandths % 1000));
    *sign = ",";
}

static void put_arguments(writer *w, const dc_span_name *n, const dc_span_time *x)
{
    const double ns = (double)(x->ended_ns - x->begun_ns);
    const char *sign = "";
    dc_text_puts(w->text, ",\"args\":{");
    put_text_argument(w, "lines", n->where, &sign);
    put_text_argument(w, "layer", n->layer, &sign);
    put_count(w, n->kind == DC_SPAN_CALL || n->kind == DC_SPAN_DATA ? "step" : "bytes",
              (double)x->number, &sign);
    put_count(w, "flops", n->flops, &sign);
    put_count(w, "bytes", x->number > 0 ? 0 : n->bytes, &sign);
    if (n->kind == DC_SPAN_KERNEL && ns > 0) {
        put_rate(w, "GFLOP/s", n->flops / ns, &sign);
        put_rate(w, "GB/s", n->bytes / ns, &sign);
    }
    dc_text_puts(w->text, "}");
}

/* "step #12": the viewers search in names. */
static void put_name(writer *w, const dc_span_name *n, const dc_span_time *x)
{
    const bool numbered = n->kind == DC_SPAN_CALL || n->kind == DC_SPAN_DATA;
    if (!numbered || x->number <= 0) {
        put_string(w, n->text);
        return;
    }
    put_string(w, n->text);
    w->text->n--; /* the quote */
    dc_text_printf(w->text, " #%" PRId64 "\"", x->number);
}

static void put_memory(writer *w, const dc_span_time *x)
{
    begin_event(w, "C", 0);
    dc_text_puts(w->text, ",\"name\":\"memory\"");
    put_us(w, "ts", x->begun_ns);
    dc_text_printf(w->text, ",\"args\":{\"bytes\":%" PRId64 "}}", x->number);
}

static void put_span(writer *w, const dc_span_time *x)
{
    const dc_span_name *n = dc_spans_name_at(w->s, x->name);
    if (n->kind == DC_SPAN_MEMORY) {
        put_memory(w, x);
        return;
    }
    begin_event(w, "X", thread_of(w, x->lane));
    dc_text_printf(w->text, ",\"cat\":\"%s\",\"name\":", dc_span_category(n->kind));
    put_name(w, n, x);
    put_us(w, "ts", x->begun_ns);
    put_us(w, "dur", x->ended_ns - x->begun_ns);
    put_arguments(w, n, x);
    dc_text_puts(w->text, "}");
}

/* ---- the file ---------------------------------------------------------------------------------- */

static void put_head(writer *w)
{
    dc_text_puts(w->text, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"program\":");
    put_string(w, "deepc");
    dc_text_puts(w->text, ",\"version\":");
    put_string(w, w->f->version);
    dc_text_puts(w->text, ",\"device\":");
    put_string(w, w->f->device);
    dc_text_puts(w->text, ",\"host\":");
    put_string(w, w->f->host);
    dc_text_printf(w->text, ",\"rank\":\"%d\",\"ranks\":\"%d\",\"spans_left_out\":\"%" PRIu64 "\"}",
                   w->f->rank, w->f->ranks, dc_spans_lost(w->s));
    dc_text_puts(w->text, ",\"traceEvents\":[");
}

static dc_status write_all(writer *w)
{
    put_head(w);
    put_process(w);
    put_lanes(w);
    for (uint64_t i = 0; i < dc_spans_count(w->s); i++) {
        dc_span_time x;
        if (dc_spans_at(w->s, i, &x))
            put_span(w, &x);
        if (w->text->n > PIECE - 4096)
            DC_TRY(flush(w, false));
    }
    dc_text_puts(w->text, "\n]}\n");
    return flush(w, true);
}

static bool is_packed(const char *path)
{
    const size_t n = strlen(path);
    return n > 3 && strcmp(path + n - 3, ".gz") == 0;
}

dc_status dc_trace_events_write(dc_job *j, const dc_spans *s, const dc_trace_facts *f,
                                const char *path)
{
    enum { GZIP = 16 + 15, FAST = 3 };
    writer *w = DC_NEW(&j->scratch, writer);
    *w = (writer){.j = j, .s = s, .f = f, .path = path, .packed = is_packed(path)};
    DC_TRY(dc_outfile_open(j, path, &w->file));
    w->text = dc_job_text(j);
    if (w->packed) {
        w->room = dc_arena_alloc(&j->scratch, PIECE);
        if (deflateInit2(&w->gz, FAST, Z_DEFLATED, GZIP, 8, Z_DEFAULT_STRATEGY) != Z_OK)
            return dc_fail_memory(j, PIECE);
        dc_job_defer(j, end_packing, &w->gz);
    }
    const dc_status status = write_all(w);
    if (w->packed)
        dc_job_settle(j, &w->gz, status);
    if (w->packed && status == DC_OK)
        deflateEnd(&w->gz);
    dc_job_text_end(j, w->text);
    DC_TRY(status);
    return dc_outfile_commit(w->file);
}

/* ---- of a context ------------------------------------------------------------------------------ */

static int rank_of(const dc_rt *rt)
{
    return rt->world != NULL ? dc_world_rank(rt->world) : rt->launched;
}

/* 0: not known. */
static int ranks_of(const dc_rt *rt)
{
    return rt->world != NULL ? dc_world_size(rt->world) : rt->launched_size;
}

/* Where the endings of the last name begin: ".json", ".json.gz". */
static size_t stem_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    const size_t name = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    size_t n = strlen(path);
    if (is_packed(path))
        n -= 3;
    for (size_t i = n; i > name + 1; i--)
        if (path[i - 1] == '.')
            return i - 1;
    return n;
}

/* The world need not be open yet: the launcher has told the rank. */
static const char *path_of(const dc_rt *rt, dc_job *j, const char *path)
{
    const size_t n = strlen(path) + 16, stem = stem_of(path);
    char *out = dc_arena_alloc(&j->scratch, n);
    if (ranks_of(rt) != 1)
        snprintf(out, n, "%.*s.%d%s", (int)stem, path, rank_of(rt), path + stem);
    else
        snprintf(out, n, "%s", path);
    return out;
}

/* Nothing is computed for a file that cannot be. */
static dc_status try_file(dc_job *j, const char *path)
{
    dc_outfile *f;
    DC_TRY(dc_path_allow(j, path));
    return dc_outfile_open(j, path, &f);
}

dc_status dc_trace_start(dc_rt *rt, dc_job *j, const char *path, uint64_t most)
{
    rt = rt->first;
    if (rt->trace_path != NULL)
        return dc_failf(j, DC_ERR_REENTER, "trace", "%s is being recorded already", rt->trace_path);
    const char *own = path_of(rt, j, path);
    DC_TRY(try_file(j, own));
    if (rt->log.spans == NULL)
        rt->log.spans = dc_spans_new();
    for (dc_rt *r = rt->next; r != NULL; r = r->next)
        r->log.spans = rt->log.spans;
    char *kept = dc_xalloc(strlen(own) + 1);
    strcpy(kept, own);
    if (!dc_spans_start(rt->log.spans, most)) {
        dc_xfree(kept);
        return dc_fail_memory(j, 0);
    }
    rt->trace_path = kept;
    return DC_OK;
}

dc_status dc_trace_stop(dc_rt *rt, dc_job *j, const char **path, uint64_t *count, uint64_t *lost)
{
    char host[256] = "";
    rt = rt->first;
    if (rt->trace_path == NULL)
        return dc_failf(j, DC_ERR_REENTER, "trace", "nothing is being recorded");
    gethostname(host, sizeof host - 1);
    const dc_trace_facts facts = {.version = rt->version != NULL ? rt->version : "",
                                  .device = rt->device_name,
                                  .host = host,
                                  .rank = rank_of(rt),
                                  .ranks = ranks_of(rt),
                                  .thread = (int64_t)syscall(SYS_gettid)};
    dc_spans_stop(rt->log.spans);
    *path = dc_arena_strdup(&j->scratch, rt->trace_path);
    dc_xfree(rt->trace_path);
    rt->trace_path = NULL;
    *count = dc_spans_count(rt->log.spans);
    *lost = dc_spans_lost(rt->log.spans);
    const dc_status status = dc_trace_events_write(j, rt->log.spans, &facts, *path);
    dc_spans_drop(rt->log.spans);
    return status;
}

static dc_status end_body(dc_job *j, void *arg)
{
    dc_rt *rt = arg;
    const char *path;
    uint64_t count, lost;
    DC_TRY(dc_trace_stop(rt, j, &path, &count, &lost));
    if (lost > 0)
        dc_logf(&rt->log, DC_CH_NOTE,
                "%s has the first %" PRIu64 " spans; %" PRIu64
                " more were left out: dc.trace(path, { spans = n }) keeps more",
                path, count, lost);
    return DC_OK;
}

bool dc_trace_end(dc_rt *rt)
{
    char why[600];
    if (rt->first->trace_path == NULL || dc_protect(&rt->job, end_body, rt) == DC_OK)
        return true;
    dc_err_render(&rt->job.err, 0, why, sizeof why);
    dc_logf(&rt->log, DC_CH_NOTE, "trace: %s", why);
    return false;
}
