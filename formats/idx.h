/*
 * Reader of idx files, the format of MNIST and its relatives; plain or compressed with gzip.
 *
 * An idx file is: two zero bytes, a code of the element type, the number of axes, one big-endian
 * 32-bit size per axis, then the elements in row-major order
 * (http://yann.lecun.com/exdb/mnist/, "The IDX file format"). Only u8 elements (code 0x08) are
 * read.
 */
#ifndef DC_FORMATS_IDX_H
#define DC_FORMATS_IDX_H

#include "core/base/job.h"

/*
 * The whole file: *type gets u8 and the sizes, *data the elements, to be freed with dc_xfree. A file
 * that cannot be opened or read is FILE; one that is not exactly an idx file is FORMAT. Both name
 * the path and what is wrong. Nothing is allocated that the file is too short to fill.
 */
dc_status dc_idx_read(dc_job *j, const char *path, dc_type *type, void **data);

/* The same, but of more than `most` elements none is read, and *data is NULL. */
dc_status dc_idx_read_small(dc_job *j, const char *path, int64_t most, dc_type *type, void **data);

#endif
