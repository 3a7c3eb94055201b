/*
 * Types by their text, for tests that state what is inferred.
 */
#ifndef DC_TESTS_TYPETEXT_H
#define DC_TESTS_TYPETEXT_H

#include "core/base/type.h"

#include <stdlib.h>

#include "tests/t.h"

static dc_job job;
static dc_names *names;
static char text[1024];

static inline dc_type type(const char *s)
{
    dc_type t = {0};
    job.err = (dc_err){0};
    if (dc_type_parse(&job, names, &s, &t) != DC_OK) {
        printf("broken type %s\n", s);
        exit(1);
    }
    return t;
}

#endif
