#define _POSIX_C_SOURCE 200809L
#include "jit/schedule/schedule_file.h"

#include "core/base/path.h"
#include "jit/moves/move.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { MAX_LINE = 4096, MAX_BYTES = 1 << 24 };

typedef struct schedule {
    const char *kernel;
    DC_VEC(const char *) move;
} schedule;

struct dc_schedule_file {
    dc_arena arena; /* everything below that points */
    DC_VEC(schedule) schedule;
};

static void release(void *f)
{
    dc_schedule_file_free(f);
}

void dc_schedule_file_free(dc_schedule_file *f)
{
    if (f == NULL)
        return;
    dc_arena_free(&f->arena);
    dc_xfree(f);
}

/* The end of a path that would leave no room for the reason in the record. */
static const char *tail_of(const char *path)
{
    const size_t n = strlen(path), most = 200;
    return n > most ? path + n - most : path;
}

/* Parsing ------------------------------------------------------------------------------------ */

static dc_status refuse(dc_job *j, int64_t line, const char *name, const char *what,
                        const char *text)
{
    char words[480]; /* the longest of what is said is the list of all moves */
    snprintf(words, sizeof words, "%.80s: %.330s: %.60s", tail_of(name), what, text);
    return dc_fail(j, DC_ERR_PARSE, &(dc_fact){.num = {line}, .word = {words}});
}

static schedule *find(const dc_schedule_file *f, const char *kernel)
{
    for (uint32_t i = 0; i < f->schedule.n; i++)
        if (strcmp(f->schedule.at[i].kernel, kernel) == 0)
            return &f->schedule.at[i];
    return NULL;
}

/* Copies a line without its comment, blanks at both ends left out, each run of them as one. */
static bool trim(const char *s, const char *end, char *out, size_t size)
{
    size_t n = 0;
    bool blank = false;
    for (; s < end && *s != '#'; s++) {
        if (*s == ' ' || *s == '\t' || *s == '\r') {
            blank = n > 0;
            continue;
        }
        if (n + 3 > size)
            return false;
        if (blank)
            out[n++] = ' ';
        out[n++] = *s;
        blank = false;
    }
    out[n] = '\0';
    return true;
}

static dc_status parse_line(dc_job *j, dc_schedule_file *f, const char *name, int64_t line,
                            const char *text)
{
    static const char opening[] = "schedule ";
    dc_move move;
    const char *why = "";
    if (strncmp(text, opening, sizeof opening - 1) == 0) {
        const char *kernel = text + sizeof opening - 1;
        if (strchr(kernel, ' ') != NULL)
            return refuse(j, line, name, "one name of a kernel expected", kernel);
        if (find(f, kernel) != NULL)
            return refuse(j, line, name, "a second schedule", kernel);
        const schedule s = {.kernel = dc_arena_strdup(&f->arena, kernel)};
        DC_PUSH_IN(&f->arena, f->schedule, s);
        return DC_OK;
    }
    if (f->schedule.n == 0)
        return refuse(j, line, name, "'schedule' and the name of a kernel expected", text);
    if (!dc_move_parse(NULL, text, &move, &why))
        return refuse(j, line, name, why, text);
    const char *kept = dc_arena_strdup(&f->arena, text);
    DC_PUSH_IN(&f->arena, f->schedule.at[f->schedule.n - 1].move, kept);
    return DC_OK;
}

static dc_status parse_text(dc_job *j, dc_schedule_file *f, const char *name, const char *text)
{
    char line[MAX_LINE];
    for (int64_t number = 1; *text != '\0'; number++) {
        const char *end = strchr(text, '\n');
        if (end == NULL)
            end = text + strlen(text);
        if (!trim(text, end, line, sizeof line))
            return refuse(j, number, name, "a line that is too long", "");
        if (line[0] != '\0')
            DC_TRY(parse_line(j, f, name, number, line));
        text = *end == '\n' ? end + 1 : end;
    }
    return DC_OK;
}

dc_status dc_schedule_file_parse(dc_job *j, const char *name, const char *text,
                                 dc_schedule_file **out)
{
    dc_schedule_file *f = dc_xalloc(sizeof *f);
    *out = NULL;
    dc_job_defer(j, release, f);
    const dc_status s = parse_text(j, f, name, text);
    dc_job_keep(j, f);
    if (s != DC_OK) {
        dc_schedule_file_free(f);
        return s;
    }
    *out = f;
    return DC_OK;
}

/* Files -------------------------------------------------------------------------------------- */

static const char READING[] = "schedules cannot be read";

static dc_status cannot(dc_job *j, const char *path, const char *why)
{
    return dc_path_fail(j, DC_ERR_FILE, path, "%s: %s", READING, why);
}

static void close_file(void *file)
{
    fclose(file);
}

/* The content with a 0 behind it, in j->scratch. */
static dc_status read_all(dc_job *j, const char *path, FILE *file, char **out)
{
    size_t n = 0, room = 4096;
    char *text = dc_arena_alloc(&j->scratch, room);
    for (;;) {
        n += fread(text + n, 1, room - 1 - n, file);
        if (ferror(file))
            return dc_path_fail_errno(j, path, READING);
        if (n < room - 1)
            break;
        if (room >= MAX_BYTES)
            return cannot(j, path, "too large for a file of schedules");
        char *more = dc_arena_alloc(&j->scratch, room * 2);
        memcpy(more, text, n);
        text = more;
        room *= 2;
    }
    if (memchr(text, '\0', n) != NULL)
        return cannot(j, path, "not a text");
    *out = text;
    return DC_OK;
}

dc_status dc_schedule_file_read(dc_job *j, const char *path, dc_schedule_file **out)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    char *text = NULL;
    *out = NULL;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return dc_path_fail_errno(j, path, READING);
    dc_job_defer(j, close_file, file);
    dc_status s = read_all(j, path, file, &text);
    dc_job_keep(j, file);
    fclose(file);
    if (s == DC_OK)
        s = dc_schedule_file_parse(j, path, text, out);
    dc_arena_rewind(&j->scratch, mark);
    return s;
}

/* Use ---------------------------------------------------------------------------------------- */

const char *const *dc_schedule_file_find(const dc_schedule_file *f, const char *kernel, uint32_t *n)
{
    static const char *const none[1] = {NULL};
    const schedule *s = find(f, kernel);
    *n = s != NULL ? s->move.n : 0;
    if (s == NULL)
        return NULL;
    return s->move.n > 0 ? s->move.at : none;
}

void dc_schedule_file_print(const dc_kernel *k, dc_text *out)
{
    dc_text_printf(out, "schedule %s\n", k->name);
    for (uint32_t i = 0; i < k->moves.n; i++) {
        dc_text_puts(out, "  ");
        dc_move_print(k, k->moves.at[i], out);
        dc_text_puts(out, "\n");
    }
}
