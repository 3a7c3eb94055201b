/*
 * Which results of operations a script uses. One that nothing reads was most likely a condition: a tensor
 * is always true.
 */
#ifndef DC_DSL_BASE_USES_H
#define DC_DSL_BASE_USES_H

#include "core/base/vec.h"

#include <lua.h>

typedef struct dc_dsl dc_dsl;
typedef struct dc_handle dc_handle;

/* Results of one operation at one line. */
typedef struct dc_use {
    const char *where, *op; /* interned; static */
    uint32_t order, n;      /* of the first of them; how many */
    bool test;              /* they are of bool */
    bool used;
} dc_use;

/* While it is written one for each result; folded: one for each place, sorted by place. */
typedef struct dc_uses {
    DC_VEC(dc_use) at;
    bool folded;
} dc_uses;

/* h becomes a result of op at this place; test: it is a tensor of bool. */
void dc_uses_add(dc_uses *u, dc_handle *h, const char *op, const char *where, bool test);
/* h is an argument of the function traced; what: "argument 'x'", interned. */
void dc_uses_add_argument(dc_uses *u, dc_handle *h, const char *what, const char *where);
/* Something reads h. */
void dc_uses_mark(dc_handle *h);
void dc_uses_free(dc_uses *u);

typedef void dc_uses_tell(void *arg, const dc_use *use);

/*
 * The lazy results outside typed functions, for `deepc check`, which hears of all that is not used; and, where `made` is
 * not NULL, of each result as it is made.
 */
typedef struct dc_uses_watch {
    dc_uses lazy, seen;
    dc_uses_tell *tell;
    void (*made)(void *arg, const dc_handle *h, const char *op, const char *where);
    void (*note)(void *arg, const char *place, const char *op, const char *sentence,
                 const char *hint);
    void *arg;
} dc_uses_watch;

/*
 * Calls tell for each place whose results nothing used, in the order of the script, but for those that were
 * seen before; all are seen from then on. Empties u.
 */
void dc_uses_end(dc_uses *u, dc_uses *seen, dc_uses_tell *tell, void *arg);

/*
 * Results outside traces that nothing has read: a note where one of them goes, once for each place, unless one of the
 * same place was read before.
 */
enum { DC_USES_PLACES = 512 };
typedef struct dc_uses_places {
    struct {
        const char *place, *what;
    } known[DC_USES_PLACES]; /* by hash */
    bool silent;             /* no notes: `deepc check`, or the script has failed */
} dc_uses_places;

/*
 * Has this been told of this place, or is not to be? It has from here on; where there is no room for it, too. Both are
 * interned or static.
 */
bool dc_uses_is_known(dc_dsl *d, const char *place, const char *what);
/*
 * A note about op (NULL: none) at this place: once for each place and `what`, as there; of `deepc check` a warning. place
 * may be NULL: then there is none.
 */
void dc_uses_note(dc_dsl *d, const char *place, const char *what, const char *op,
                  const char *sentence, const char *hint);
/* h is a new value of bool, the result of this operation or typed function. */
void dc_uses_unread(dc_handle *h, const char *op);
void dc_uses_read(dc_handle *h);
void dc_uses_tell_unread(dc_handle *h);
/* Notes of all that is left, at the end of a script; and no notes from here on. */
void dc_uses_finish(dc_dsl *d, bool failed);

#endif
