/*
 * JSON as a tree, for files whose parts may come in any order (formats/json.h reads those whose order is known). Strict
 * (RFC 8259): strings are valid UTF-8 with paired surrogates, and may have zero bytes; numbers are doubles.
 *
 * Bounds: 64 levels, DC_JSON_NODES values, 2 GiB of text; memory for all values is asked for at once, at most 48 bytes
 * for two of the text.
 */
#ifndef DC_FORMATS_JSONTREE_H
#define DC_FORMATS_JSONTREE_H

#include "core/base/job.h"

enum { DC_JSON_NODES = 1 << 24 };

typedef enum dc_jkind {
    DC_J_NULL,
    DC_J_BOOL,
    DC_J_NUMBER,
    DC_J_STRING,
    DC_J_LIST,
    DC_J_OBJECT
} dc_jkind;

typedef struct dc_jnode {
    dc_jkind kind;
    uint32_t n;                          /* values in it, bytes of a string */
    const struct dc_jnode *child, *next; /* the first value in it; the one behind it */
    const char *key;                     /* its name in an object; ends in '\0' */
    union {
        const char *s; /* ends in '\0' */
        double num;    /* of true 1 */
    } v;
    uint32_t nkey;
} dc_jnode;

/*
 * The tree, in the arena; its strings are in the text, which is changed. A failure is one of FORMAT about `name`: "NAME:
 * at byte 17: ...".
 */
dc_status dc_json_tree(dc_job *j, const char *name, char *text, size_t n, dc_arena *a,
                       const dc_jnode **out);

/* The value of this name, NULL where there is none or it is null. Of two the last. */
const dc_jnode *dc_json_get(const dc_jnode *object, const char *key);
bool dc_json_is(const dc_jnode *string,
                const char *text);           /* false for NULL and for what is no string */
const char *dc_json_kind(const dc_jnode *v); /* "a number" */

#endif
