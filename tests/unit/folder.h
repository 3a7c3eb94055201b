/* A folder of a test's own, with whatever it puts there. */
#ifndef DC_TESTS_FOLDER_H
#define DC_TESTS_FOLDER_H

#include <stdbool.h>

bool folder_make(void);
bool folder_remove(void); /* with all that is in it */
const char *folder_root(void);
const char *folder_path(const char *name); /* of what lies in it; good for seven more */

/* How many things are in it (""), or in a folder of it; also those whose names begin with a dot. */
int folder_entries(const char *name);
bool folder_put(const char *name, const char *text); /* a file */
/* Does the file begin with this line? NULL: is there none? */
bool folder_has(const char *name, const char *text);

#endif
