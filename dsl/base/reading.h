/*
 * Files as tensors: what bindings of readers share. A reader asks for room when it knows the type (dc_room); what it puts
 * there is the tensor's own memory where that is the host's, else it is sent to the device afterwards.
 */
#ifndef DC_DSL_BASE_READING_H
#define DC_DSL_BASE_READING_H

#include "dsl/base/handle.h"
#include "formats/infile.h"

typedef struct dc_reading {
    dc_dsl *d;
    dc_handle *h; /* empty; becomes the tensor */
    dc_tensor *t;
    void *staged;
} dc_reading;

/* Pushes an empty handle for what is read from `path`. */
dc_reading dc_reading_new(lua_State *L, dc_dsl *d, const char *path);
/* In an entry: what a reader is given, and what comes after it. */
dc_room dc_reading_room(dc_reading *r);
dc_status dc_reading_end(dc_reading *r, dc_job *j);

#endif
