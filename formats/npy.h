/*
 * NumPy's files: .npy, one array; .npz, a zip archive of such files, stored or deflated.
 *
 * An .npy file is: "\x93NUMPY", a version (1.0 to 3.0), the length of the header (2 bytes, 4 from version 2 on), the
 * header - a literal of Python, {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } - and the elements
 * (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
 *
 * All dtypes are read and written; bf16, which NumPy does not have, as '<V2', what it makes of ml_dtypes' bfloat16.
 * Big-endian elements are turned round, Fortran's order of axes is made C's. Objects and records are not read: nothing
 * of a file is ever run. Several arrays may lie one behind the other in an .npy file, of which the first is read.
 */
#ifndef DC_FORMATS_NPY_H
#define DC_FORMATS_NPY_H

#include "formats/infile.h"

enum { DC_NPY_HEADER = 1 << 14 }; /* bytes of a header that is read, the length included */

typedef struct dc_npy_header {
    dc_type type;
    bool fortran; /* the first axis varies fastest */
    bool swap;    /* the bytes of an element are in the other order */
    size_t bytes; /* of the header: where the elements begin */
    /* Why the elements are not read - they are objects, texts, records, have too many axes - and their type there; else "". */
    char unread[100], descr[24];
} dc_npy_header;

/*
 * The header at the beginning of n bytes, which are all there are or at least DC_NPY_HEADER; FORMAT. `entry` is the name
 * inside an archive, or NULL.
 */
dc_status dc_npy_parse(dc_job *j, const char *path, const char *entry, const unsigned char *bytes,
                       size_t n, dc_npy_header *out);

/*
 * The elements where `room` wants them. FORMAT where they are not what the header says. *behind becomes the number of bytes that
 * follow them.
 */
dc_status dc_npy_read(dc_job *j, const char *path, const dc_room *room, int64_t *behind);

/* An archive: names of arrays without ".npy", in the order of the file. Each is read by its number. */
typedef struct dc_npz dc_npz;
dc_status dc_npz_open(dc_job *j, const char *path, dc_npz **out);
void dc_npz_close(dc_npz *z); /* NULL is fine */
uint32_t dc_npz_count(const dc_npz *z);
const char *dc_npz_name(const dc_npz *z, uint32_t i);
dc_status dc_npz_read(dc_npz *z, dc_job *j, uint32_t i, const dc_room *room);
/* Why the array is not read, a part of a sentence, which lives as long as z; NULL: it is. */
dc_status dc_npz_unread(dc_npz *z, dc_job *j, uint32_t i, const char **why);

typedef struct dc_npy_item {
    const char *name; /* of an archive's: without ".npy" */
    dc_type type;
    const void *data; /* on the host */
} dc_npy_item;

/* FORMAT for a dtype that the format does not have. */
dc_status dc_npy_check(dc_job *j, const char *path, const dc_npy_item *item);
/* Whole files or none (core/base/outfile.h). */
dc_status dc_npy_write(dc_job *j, const char *path, const dc_npy_item *item);
dc_status dc_npz_write(dc_job *j, const char *path, const dc_npy_item *item, uint32_t n,
                       bool compress);

#endif
