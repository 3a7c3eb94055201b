/* Schedules from files: what is read, what is refused, and that a printed schedule applies again. */
#define _POSIX_C_SOURCE 200809L
#include "jit/moves/move.h"
#include "jit/schedule/schedule_file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/nest_texts.h"

static void test_read(void)
{
    static const char text[] = "# schedules of two kernels\n\n"
                               "schedule D_64_10_k64     # a kernel's name\n"
                               "  split i1 32\r\n"
                               "\treorder   k\ti1.i   # with blanks\n"
                               "schedule E_64\n"
                               "schedule R_8\n"
                               "  unroll k";
    dc_schedule_file *f = NULL;
    uint32_t n = 9;
    if (!CHECK(dc_schedule_file_parse(&nest_job, "file", text, &f) == DC_OK)) {
        printf("    %s\n", nest_said());
        return;
    }
    const char *const *move = dc_schedule_file_find(f, "D_64_10_k64", &n);
    if (CHECK(move != NULL && n == 2)) {
        CHECK_STR(move[0], "split i1 32");
        CHECK_STR(move[1], "reorder k i1.i");
    }
    CHECK(dc_schedule_file_find(f, "E_64", &n) != NULL && n == 0);
    move = dc_schedule_file_find(f, "R_8", &n);
    CHECK(move != NULL && n == 1 && strcmp(move[0], "unroll k") == 0);
    CHECK(dc_schedule_file_find(f, "R_9", &n) == NULL && n == 0);
    dc_schedule_file_free(f);
    dc_schedule_file_free(NULL);
    CHECK(dc_schedule_file_parse(&nest_job, "file", "", &f) == DC_OK);
    CHECK(dc_schedule_file_find(f, "", &n) == NULL);
    dc_schedule_file_free(f);
}

static void test_refusals(void)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"split i 8", "line 1: file: 'schedule' and the name of a kernel expected: split i 8"},
        {"schedule", "line 1: file: 'schedule' and the name"},
        {"\nschedule a b", "line 2: file: one name of a kernel expected: a b"},
        {"schedule a\n  unroll k\nschedule b\nschedule a", "line 4: file: a second schedule: a"},
        {"schedule a\n\n  dance i 8", "line 3: file: "},
        {"schedule a\n  split i\n", "line 2: file: "},
        {"schedule a\n  split i many\n", "line 2: file: "},
        {"schedule a\n  unroll k 7\n", "line 2: file: "},
    };
    for (size_t i = 0; i < DC_COUNTOF(bad); i++) {
        dc_schedule_file *f = NULL;
        const dc_status s = dc_schedule_file_parse(&nest_job, "file", bad[i].text, &f);
        CHECK(s == DC_E_VALUE && nest_job.err.id == DC_ERR_PARSE && f == NULL);
        const char *error = nest_said();
        if (!CHECK(strncmp(error, bad[i].says, strlen(bad[i].says)) == 0))
            printf("    says '%s', should say '%s'\n", error, bad[i].says);
    }
    dc_schedule_file *none = NULL;
    CHECK(dc_schedule_file_parse(&nest_job, "file", "schedule a\n  stages x 3\n", &none) != DC_OK);
    CHECK(strstr(nest_said(), " stage nontemporal prefetch pipeline: stages x 3") != NULL);
    char line[5000] = "schedule ";
    memset(line + 9, 'a', sizeof line - 10);
    dc_schedule_file *f = NULL;
    CHECK(dc_schedule_file_parse(&nest_job, "file", line, &f) != DC_OK && f == NULL);
    CHECK(strstr(nest_said(), "line 1: file: a line that is too long") != NULL);
}

static bool write_file(const char *path, const char *text, size_t n)
{
    FILE *file = fopen(path, "w");
    return file != NULL && fwrite(text, 1, n, file) == n && fclose(file) == 0;
}

static void test_file(void)
{
    char path[] = "/tmp/test_schedfile.XXXXXX";
    const int fd = mkstemp(path);
    dc_schedule_file *f = NULL;
    uint32_t n;
    if (!CHECK(fd >= 0))
        return;
    close(fd);

    /* longer than what is read at once */
    dc_text text = {0};
    for (int i = 0; i < 2000; i++)
        dc_text_printf(&text, "schedule k%d\n  split i %d\n", i, i + 2);
    CHECK(write_file(path, text.s, text.n));
    CHECK(dc_schedule_file_read(&nest_job, path, &f) == DC_OK);
    const char *const *move = f != NULL ? dc_schedule_file_find(f, "k1999", &n) : NULL;
    CHECK(move != NULL && n == 1 && strcmp(move[0], "split i 2001") == 0);
    dc_schedule_file_free(f);
    dc_text_free(&text);

    CHECK(write_file(path, "schedule a\n  unroll\n", 20));
    CHECK(dc_schedule_file_read(&nest_job, path, &f) == DC_E_VALUE && f == NULL);
    CHECK(strstr(nest_said(), path) != NULL);
    CHECK(write_file(path, "schedule a\n\0 unroll i", 20));
    CHECK(dc_schedule_file_read(&nest_job, path, &f) == DC_E_FILE && f == NULL);
    CHECK(strstr(nest_said(), "not a text") != NULL);
    unlink(path);
    CHECK(dc_schedule_file_read(&nest_job, path, &f) == DC_E_FILE && f == NULL);
    CHECK(strstr(nest_said(), "No such file") != NULL);
    CHECK(dc_schedule_file_read(&nest_job, "/tmp", &f) == DC_E_FILE && f == NULL);
    nest_said();
}

/* A name that made words of a schedule too long comes back from its text. */
static void test_long_name(void)
{
    dc_kernel *k;
    dc_move m;
    const char *why = "";
    CHECK(dc_nest_parse(
              &nest_job,
              "kernel k(o: f32[64] out) {\n  for an.axis.with.a.name.of.many.letters in 64\n"
              "    o[an.axis.with.a.name.of.many.letters] = 1:f32\n}",
              &k) == DC_OK);
    CHECK(dc_move_apply_text(k, "split an.axis.with.a.name.of.many.letters 8", &why));
    CHECK(dc_move_apply_text(k, "vectorize an.axis.with.a.name.of.many.letters.i", &why));
    CHECK_STR(dc_move_text(k, k->moves.at[1], &k->arena),
              "vectorize an.axis.with.a.name.of.many.letters.i");
    /* by its handle: the axis that the first move made inside */
    m = (dc_move){.kind = DC_MOVE_GRID, .naxis = 1, .axis = {1}};
    CHECK(dc_move_apply(k, &m, &why));
    m.axis[0] = 0; /* split: no loop is over it */
    CHECK(!dc_move_apply(k, &m, &why) && strstr(why, "there is no loop over an.axis") != NULL);
    m.axis[0] = 99;
    CHECK(!dc_move_apply(k, &m, &why) && strstr(why, "an axis that was not made") != NULL);
    dc_kernel_free(k);
}

/* The moves of a kernel as text, read again, applied to the kernel as it was. */
static void test_again(void)
{
    static const char *const moves[] = {"split i 8", "unroll i.i"};
    static const char *const source = "kernel E_64(o: f32[64] out, x: f32[64]) {\n"
                                      "  for i in 64\n    o[i] = neg(x[i])\n}";
    dc_kernel *k, *again;
    dc_schedule_file *f = NULL;
    dc_text text = {0}, a = {0}, b = {0};
    const char *why = "";
    uint32_t n = 0;
    CHECK(dc_nest_parse(&nest_job, source, &k) == DC_OK);
    CHECK(dc_nest_parse(&nest_job, source, &again) == DC_OK);
    for (size_t i = 0; i < DC_COUNTOF(moves); i++)
        CHECK(dc_move_apply_text(k, moves[i], &why));
    dc_schedule_file_print(k, &text);
    CHECK_STR(text.s, "schedule E_64\n  split i 8\n  unroll i.i\n");
    CHECK(dc_schedule_file_parse(&nest_job, "printed", text.s, &f) == DC_OK);
    const char *const *move = dc_schedule_file_find(f, "E_64", &n);
    CHECK_EQ(n, 2);
    for (uint32_t i = 0; i < n; i++)
        CHECK(dc_move_apply_text(again, move[i], &why));
    dc_nest_print(k, &a);
    dc_nest_print(again, &b);
    CHECK_STR(b.s, a.s);
    dc_schedule_file_free(f);
    dc_kernel_free(k);
    dc_kernel_free(again);
    dc_text_free(&text);
    dc_text_free(&a);
    dc_text_free(&b);
}

static dc_status body(dc_job *j, void *arg)
{
    DC_UNUSED(j);
    DC_UNUSED(arg);
    test_read();
    test_refusals();
    test_file();
    test_again();
    test_long_name();
    return DC_OK;
}

int main(void)
{
    nest_open();
    if (!CHECK(dc_protect(&nest_job, body, NULL) == DC_OK))
        printf("    %s\n", nest_said());
    nest_close();
    return t_done();
}
