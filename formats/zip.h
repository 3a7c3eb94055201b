/*
 * Archives (zip, APPNOTE.TXT 6.3), as those of NumPy and PyTorch are: entries that are stored, deflated, or packed by bzip2 or
 * LZMA (formats/unpack.h), sizes beyond 4 GiB. The central directory says where entries are and how large; an entry's own header
 * is only stepped over. Entries of other kinds are there, and cannot be read.
 */
#ifndef DC_FORMATS_ZIP_H
#define DC_FORMATS_ZIP_H

#include "core/base/job.h"

#include <sys/stat.h>

enum {
    DC_ZIP_END = 22, /* bytes of the records of the format, without what varies */
    DC_ZIP_END64 = 56,
    DC_ZIP_LOCATOR64 = 20,
    DC_ZIP_ENTRY = 46,
    DC_ZIP_LOCAL = 30,
    DC_ZIP_STORED = 0, /* methods */
    DC_ZIP_DEFLATED = 8,
    DC_ZIP_BZIP2 = 12,
    DC_ZIP_LZMA = 14
};

typedef struct dc_zip_entry {
    const char *name;
    uint64_t at, packed, size; /* of its header; bytes there, and unpacked */
    uint32_t crc;
    unsigned method;
    bool encrypted, ends; /* the stream of LZMA tells where it ends */
} dc_zip_entry;

typedef struct dc_zip {
    char *path;
    const char *what; /* it is to be, for messages: "an npz file" */
    int fd;
    struct stat st;
    int64_t length;
    dc_zip_entry *entry; /* in the order of the file */
    uint32_t n;
    dc_arena arena; /* of names and entries */
} dc_zip;

/* FORMAT where the directory is not exactly that of an archive; `what` lives as long. */
dc_status dc_zip_open(dc_job *j, const char *path, const char *what, dc_zip **out);
void dc_zip_close(dc_zip *z); /* NULL is fine */

const dc_zip_entry *dc_zip_find(const dc_zip *z, const char *name); /* the first, or NULL */

/* Why an entry cannot be read here, a part of a sentence; NULL: it can. It lives as long as z. */
const char *dc_zip_unread(dc_zip *z, const dc_zip_entry *e);

/* Where the bytes of an entry begin; n bytes of the file, exactly. */
dc_status dc_zip_place(const dc_zip *z, dc_job *j, const dc_zip_entry *e, uint64_t *at);
dc_status dc_zip_read(const dc_zip *z, dc_job *j, uint64_t from, void *to, size_t n);

/*
 * The unpacked bytes of an entry, one behind the other. Fewer than asked for at its end, where FORMAT tells that they
 * differ from the archive's checksum. The stream belongs to the running entry of the job.
 */
typedef struct dc_zip_stream dc_zip_stream;
dc_status dc_zip_stream_open(const dc_zip *z, dc_job *j, const dc_zip_entry *e,
                             dc_zip_stream **out);
dc_status dc_zip_stream_read(dc_zip_stream *s, dc_job *j, void *to, size_t n, size_t *got);
void dc_zip_stream_close(dc_zip_stream *s, dc_job *j);

#endif
