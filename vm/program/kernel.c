/*
 * deepc kernel FILE [--target NAME] [--schedule FILE | --naive] [--form FORM]
 *
 * Reads a kernel in nest form, as DEEPC_DEBUG=kernel prints it, or a file of DEEPC_DUMP, of which it
 * takes the nest as lowered. Schedules it for a target and prints one of its forms. Needs no device:
 * a text for CUDA is written anywhere.
 */
#include "vm/program/kernel.h"

#include "core/base/path.h"
#include "jit/jit.h"
#include "vm/program/say.h"

#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: deepc kernel FILE [--target NAME] [--schedule FILE | --naive] [--form FORM]\n"
    "  FILE        a kernel in nest form, or a file of DEEPC_DUMP\n"
    "  --target    cpu (the default), c11, opencl, cuda, sim:cpu, sim:opencl, sim:cuda\n"
    "  --schedule  moves from a file instead of those of the rules\n"
    "  --naive     no moves\n"
    "  --form      nest, schedule, flat, text (the default): what to print\n";

typedef struct command {
    const char *file;
    dc_form_request request;
    dc_text in, out;
} command;

static bool parse_arguments(command *c, int argc, char **argv)
{
    const char *form = "text";
    for (int i = 0; i < argc; i++) {
        const char **value = strcmp(argv[i], "--target") == 0     ? &c->request.target
                             : strcmp(argv[i], "--schedule") == 0 ? &c->request.schedule
                             : strcmp(argv[i], "--form") == 0     ? &form
                                                                  : NULL;
        if (strcmp(argv[i], "--naive") == 0)
            c->request.naive = true;
        else if (value != NULL && i + 1 < argc)
            *value = argv[++i];
        else if (argv[i][0] != '-' && c->file == NULL)
            c->file = argv[i];
        else
            return false;
    }
    return c->file != NULL && dc_form_find(form, &c->request.form);
}

static dc_status read_file(dc_job *j, command *c)
{
    char piece[4096];
    size_t n;
    FILE *in = fopen(c->file, "rbe");
    if (in == NULL)
        return dc_path_fail_errno(j, c->file, NULL);
    while ((n = fread(piece, 1, sizeof piece - 1, in)) > 0) {
        piece[n] = '\0';
        dc_text_puts(&c->in, piece);
    }
    const bool failed = ferror(in) != 0;
    fclose(in);
    return failed ? dc_fail(j, DC_ERR_FILE, &(dc_fact){.word = {c->file, "cannot be read"}})
                  : DC_OK;
}

/* The nest: all of the text, or that part of a file of DEEPC_DUMP (jit/compile/dump.c). */
static const char *find_nest(dc_text *in)
{
    static const char heading[] = "==== nest as lowered\n";
    if (in->s == NULL)
        return "";
    char *nest = strstr(in->s, heading);
    if (nest == NULL)
        return in->s;
    nest += sizeof heading - 1;
    char *next = strstr(nest, "\n====");
    if (next != NULL)
        next[1] = '\0';
    return nest;
}

static dc_status body(dc_job *j, void *arg)
{
    command *c = arg;
    DC_TRY(read_file(j, c));
    return dc_form_of(j, find_nest(&c->in), &c->request, &c->out);
}

int dc_vm_kernel(int argc, char **argv)
{
    command c = {.request = {.target = "cpu"}};
    dc_opts opt;
    dc_job j;
    const char *bad;
    if (!parse_arguments(&c, argc, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    dc_opts_init(&opt, &bad);
    dc_job_init(&j, &opt, NULL);
    const dc_status s = dc_protect(&j, body, &c);
    if (s == DC_OK) {
        fwrite(c.out.s, 1, c.out.n, stdout);
    } else {
        char text[700];
        dc_err_render(&j.err, 0, text, sizeof text);
        const bool named = j.err.id == DC_ERR_FILE; /* a file that cannot be read */
        dc_sayf(stderr, "deepc: %s%s%s\n", named ? "" : c.file, named ? "" : ": ", text);
    }
    dc_text_free(&c.in);
    dc_text_free(&c.out);
    dc_job_fini(&j);
    return s == DC_OK ? 0 : 1;
}
