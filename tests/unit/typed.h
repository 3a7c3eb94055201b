/*
 * Values of one graph by their types as text, and what became of them, for tests of core/build/build.h.
 */
#ifndef DC_TESTS_TYPED_H
#define DC_TESTS_TYPED_H

#include "core/build/build.h"

#include "tests/unit/typetext.h"

static dc_module *module;
static dc_func *f;

static inline dc_val val(const char *s)
{
    const dc_type t = type(s);
    return (dc_val){dc_graph_param(f, &t, NULL), t};
}

/* The type of the value, or the sentence. What is made must agree with its node. */
static inline const char *told(dc_status status, const dc_val *v)
{
    if (status != DC_OK) {
        dc_err_render(&job.err, 1, text, sizeof text);
        job.err = (dc_err){0};
        return text;
    }
    const dc_type made = dc_node_type(f, v->ref);
    CHECK(dc_type_same(&made, &v->type));
    dc_type_print(&v->type, text, sizeof text);
    return text;
}

#endif
