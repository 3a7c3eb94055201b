#define _GNU_SOURCE /* mkostemp, mkdir */
#include "jit/compile/dump.h"

#include "core/base/file.h"
#include "jit/moves/move.h"
#include "jit/render/render.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static dc_status fail_file(dc_job *j, const char *path, int error)
{
    return dc_fail(j, DC_ERR_FILE, &(dc_fact){.op = "DEEPC_DUMP", .error = error, .word = {path, strerror(error)}});
}

dc_status dc_dump_open(dc_job *j, const char *folder)
{
    struct stat s;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return fail_file(j, folder, errno);
    if (stat(folder, &s) != 0)
        return fail_file(j, folder, errno);
    if (!S_ISDIR(s.st_mode))
        return fail_file(j, folder, ENOTDIR);
    return access(folder, W_OK | X_OK) == 0 ? DC_OK : fail_file(j, folder, errno);
}

/* ---- the text -------------------------------------------------------------------------------- */

static void heading(dc_text *out, const char *what)
{
    dc_text_printf(out, "\n==== %s\n", what);
}

static void print_nests(dc_entry *e, dc_text *out)
{
    heading(out, "nest as lowered");
    dc_text_puts(out, e->lowered);
    heading(out, "schedule");
    for (uint32_t i = 0; i < e->kernel->moves.n; i++) {
        dc_move_print(e->kernel, e->kernel->moves.at[i], out);
        dc_text_puts(out, "\n");
    }
    heading(out, "nest scheduled");
    dc_nest_print(e->kernel, out);
}

/* One that is joined of others has no nest; those of its parts are in dumps without bundles. */
static dc_status print_forms(dc_job *j, const dc_env *env, dc_entry *e, dc_text *out)
{
    const dc_flat *flat = e->flat;
    dc_text_printf(out, "%s for %s, positions %" PRId64 ", threads %u\n", e->base,
                   env->target->name, e->launch.positions, e->launch.threads);
    if (e->kernel != NULL)
        print_nests(e, out);
    heading(out, "flat");
    dc_flat_print(flat, out);
    heading(out, env->target->dialect);
    return dc_render(j, &flat, 1, env->target, out);
}

static uint64_t mix_text(uint64_t h, const char *text)
{
    for (; *text != '\0'; text++)
        h = dc_hash_mix(h, (unsigned char)*text);
    return h;
}

/* Of a kernel that is joined of others: its flat form. */
static uint64_t hash_parts(uint64_t h, const dc_flat *f)
{
    dc_job *j = dc_job_here();
    dc_text *text = dc_job_text(j);
    dc_flat_print(f, text);
    h = mix_text(h, text->s);
    dc_job_text_end(j, text);
    return h;
}

static uint64_t hash_of(dc_job *j, const dc_env *env, const dc_entry *e)
{
    uint64_t h = mix_text(0, e->text);
    h = mix_text(h, env->target->name);
    h = mix_text(h, env->target->dialect);
    h = mix_text(h, env->opt.math);
    h = mix_text(h, env->opt.skip);
    h = dc_hash_mix(h, (uint64_t)env->opt.opt);
    if (e->kernel == NULL)
        return hash_parts(h, e->flat);
    if (env->schedule != NULL)
        for (uint32_t i = 0; i < e->kernel->moves.n; i++)
            h = mix_text(h, dc_move_text(e->kernel, e->kernel->moves.at[i], &j->scratch));
    return h;
}

/* ---- the file -------------------------------------------------------------------------------- */

typedef struct writing {
    dc_text text;
    char temporary[400], path[400];
    int fd; /* -1 when closed */
} writing;

static void end_writing(void *what)
{
    writing *w = what;
    if (w->fd >= 0) { /* it did not come to an end */
        close(w->fd);
        unlink(w->temporary);
    }
    dc_text_free(&w->text);
}

/* Under another name first: several processes may write the same kernel. */
static dc_status write_file(dc_job *j, writing *w)
{
    w->fd = mkostemp(w->temporary, O_CLOEXEC);
    if (w->fd < 0)
        return fail_file(j, w->path, errno);
    fchmod(w->fd, 0644);
    if (!dc_file_write(w->fd, w->text.s, w->text.n))
        return fail_file(j, w->path, errno);
    const int fd = w->fd;
    w->fd = -1;
    if (close(fd) == 0 && rename(w->temporary, w->path) == 0)
        return DC_OK;
    const int error = errno;
    unlink(w->temporary);
    return fail_file(j, w->path, error);
}

dc_status dc_dump_kernel(dc_job *j, const dc_env *env, dc_entry *e)
{
    writing *w = DC_NEW(&j->scratch, writing);
    w->fd = -1;
    snprintf(w->path, sizeof w->path, "%s/%s-%016" PRIx64 ".txt", env->opt.dump, e->base,
             hash_of(j, env, e));
    snprintf(w->temporary, sizeof w->temporary, "%s/.deepc-XXXXXX", env->opt.dump);
    dc_job_defer(j, end_writing, w);
    dc_status status = print_forms(j, env, e, &w->text);
    if (status == DC_OK)
        status = write_file(j, w);
    dc_job_keep(j, w);
    end_writing(w);
    return status;
}
