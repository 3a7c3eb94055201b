/*
 * Files about bugs. A few lines "word: text", then the module's text (core/ir/gtext.h):
 *
 *   # deepc --replay FILE runs this again
 *   error: broken promise at jit/plan/plan.c:99: ...
 *   version: 0.1.0
 *   device: cpu, x86-64-v4 26.2.1
 *   setting: DEEPC_OPT=0                       (those that are not the default)
 *   name: step
 *   counts: nfree 3 ncell 2 nresult 1 nset 2 ncheck 1
 *   set: 0 1
 *   module:
 *   func step(%1: f32[64, 784] "x", ...
 *
 * Values are not in it: neither parameters nor data leave the process this way.
 */
#define _POSIX_C_SOURCE 200809L /* open, getpid */
#include "jit/compile/bug_report.h"

#include "core/base/file.h"
#include "core/ir/gtext.h"
#include "jit/exec/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MOST_FILES = 1000 }; /* of one process */

typedef struct report {
    dc_rt *rt;
    const dc_err *err;
    const dc_exec *e;
    dc_text text;
    char path[300]; /* "" until it is written */
} report;

/* ---- the text -------------------------------------------------------------------------------- */

/* One line, whatever is in the text. */
static void line(dc_text *out, const char *word, const char *text)
{
    dc_text_printf(out, "%s: ", word);
    for (; *text != '\0'; text++)
        dc_text_printf(out, "%c", *text == '\n' ? ' ' : *text);
    dc_text_puts(out, "\n");
}

static void print_setting(void *ctx, const char *env, const char *dflt, const char *now,
                          const char *help)
{
    char text[400];
    DC_UNUSED(help);
    if (strcmp(dflt, now) == 0)
        return;
    snprintf(text, sizeof text, "%s=%s", env, now);
    line(ctx, "setting", text);
}

static dc_status print(dc_job *j, void *arg)
{
    report *r = arg;
    const dc_exec_desc *d = &r->e->desc;
    dc_device *device = r->rt->device;
    char text[700];
    DC_UNUSED(j);
    dc_text_puts(&r->text, "# deepc --replay FILE runs this again\n");
    dc_err_render(r->err, 1, text, sizeof text);
    line(&r->text, "error", text);
    line(&r->text, "version", r->rt->version != NULL ? r->rt->version : "unknown");
    snprintf(text, sizeof text, "%s, %s", r->rt->interpret ? "eval" : device->ops->name,
             device->ops->target(device)->name);
    line(&r->text, "device", text);
    dc_opts_each(&r->rt->opt, print_setting, &r->text);
    line(&r->text, "name", d->name);
    dc_text_printf(&r->text,
                   "counts: nfree %u ncell %u nresult %u nset %u ncheck %u nfixed %u once %d\n",
                   d->nfree, d->ncell, d->nresult, d->nset, d->ncheck, d->nfixed, d->once);
    dc_text_puts(&r->text, "set:");
    for (uint32_t i = 0; i < d->nset; i++)
        dc_text_printf(&r->text, " %u", d->set[i]);
    dc_text_puts(&r->text, "\nmodule:\n");
    dc_func_print(d->fn, &r->text);
    return DC_OK;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* A new file, never one that is there or that a link leads to; -1 if there can be none. */
static int create(report *r, const char *folder)
{
    for (int n = 1; n <= MOST_FILES; n++) {
        const int length =
            snprintf(r->path, sizeof r->path, "%s/deepc-bug-%ld-%d.txt", folder, (long)getpid(), n);
        if (length >= (int)sizeof r->path)
            return -1;
        const int fd = open(r->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

/* All of it, or no file. */
static bool write_file(report *r, const char *folder)
{
    const int fd = create(r, folder);
    bool whole = fd >= 0 && dc_file_write(fd, r->text.s, r->text.n);
    if (fd >= 0)
        whole = close(fd) == 0 && whole;
    if (fd >= 0 && !whole)
        unlink(r->path);
    if (!whole)
        r->path[0] = '\0';
    return whole;
}

/* What could be printed is better than nothing; so is another folder than the one asked for. */
static void write_somewhere(report *r)
{
    const char *wish = r->rt->opt.dump;
    if (!dc_opts_files(&r->rt->opt))
        return;
    if (r->text.n == 0 || (wish[0] != '\0' && write_file(r, wish)))
        return;
    write_file(r, dc_opts_temporary());
}

void dc_bug_report(dc_job *j, void *rt)
{
    report r = {.rt = rt, .err = &j->err, .e = j->about};
    dc_job own;
    if (r.e != NULL)
        r.rt = r.e->rt;
    if (r.e != NULL && r.e->desc.fn != NULL) { /* one of jit/exec/exec_commands.h has no function */
        dc_job_init(&own, &r.rt->opt, NULL);
        dc_protect(&own, print, &r);
        dc_job_fini(&own);
        write_somewhere(&r);
        dc_text_free(&r.text);
    }
    if (r.path[0] != '\0')
        snprintf(j->err.hint, sizeof j->err.hint,
                 "a mistake of deepc: deepc --replay %s shows it again. Please report it with that "
                 "file, which holds the function but no data",
                 r.path);
    const dc_rt *first = r.rt->first;
    if (first->on_bug != NULL)
        first->on_bug(first->on_bug_ctx, r.path[0] != '\0' ? r.path : NULL);
}
