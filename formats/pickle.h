/*
 * Pickles of Python, read without running anything: numbers, texts, lists, dictionaries, and what a table of known globals
 * makes of a call. Protocols 2 to 5, the binary opcodes.
 *
 * A value is a node of a graph: what a pickle shares is shared, and it may contain itself. Every opcode makes one node at
 * most, so there are no more of them than bytes.
 */
#ifndef DC_FORMATS_PICKLE_H
#define DC_FORMATS_PICKLE_H

#include "core/base/job.h"

/*
 * A call of OrderedDict or Counter is a table, of the pairs or of the table that it was called with. Python 2 has other names
 * for some modules; those of Python 3 are used.
 */
typedef enum dc_pickle_kind {
    DC_PICKLE_NONE,
    DC_PICKLE_BOOL,
    DC_PICKLE_INT,
    DC_PICKLE_BIG, /* an integer of more than 64 bits: f is near it */
    DC_PICKLE_REAL,
    DC_PICKLE_TEXT,   /* and bytes */
    DC_PICKLE_LIST,   /* and tuples, sets */
    DC_PICKLE_TABLE,  /* a dictionary: item[2*i] is a key, item[2*i + 1] its value */
    DC_PICKLE_GLOBAL, /* text is "module name" */
    DC_PICKLE_CALL,   /* item[0] was called with item[1], a list; what it means says the reader */
    DC_PICKLE_PERSISTENT /* item[0] is what a persistent id says */
} dc_pickle_kind;

typedef uint32_t dc_pickle_ref; /* a node */

typedef struct dc_pickle_node {
    dc_pickle_kind kind;
    union {
        bool b;
        int64_t i;
        double f;
        const char *text; /* in the pickle's memory; n bytes */
    };
    uint64_t n; /* of TEXT bytes */
    DC_VEC(dc_pickle_ref) item;
    uint32_t about; /* of the reader; 0 at first */
} dc_pickle_node;

typedef struct dc_pickle {
    DC_VEC(dc_pickle_node) node;
    dc_arena arena; /* of texts that are put together */
} dc_pickle;

void dc_pickle_free(dc_pickle *p);

/* Is a global of this name known? "collections OrderedDict". Others are refused with their name. */
typedef bool dc_pickle_known(const char *name);

/*
 * Reads one pickle from n bytes on, which stay where they are. *end becomes the first byte behind it. FORMAT; with
 * `truncated` set where the bytes end before the pickle does.
 */
dc_status dc_pickle_read(dc_job *j, const char *path, dc_pickle *p, const unsigned char *bytes,
                         size_t n, dc_pickle_known *known, size_t *end, bool *truncated,
                         dc_pickle_ref *root);

#endif
