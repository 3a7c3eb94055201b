/*
 * Files by URL: http and https through libcurl, which is opened at run time; file:// read here. A job with folders
 * (core/base/path.h) reaches no network, and files where it may.
 */
#ifndef DC_FORMATS_FETCH_H
#define DC_FORMATS_FETCH_H

#include "core/base/sha256.h"
#include "formats/infile.h"

/*
 * Writes what the URL gives to a file, whole or not at all. The digest is compared before: FORMAT where it is
 * another than `sha256`, unless that is NULL. FILE where it cannot be fetched, ALLOW where the job may not.
 */
dc_status dc_fetch(dc_job *j, const char *url, const char *path, const char *sha256);

/* The digest of a file; *there is false, and nothing fails, where there is none. */
dc_status dc_fetch_digest(dc_job *j, const char *path, bool *there, char out[DC_SHA256_TEXT]);

/* The folder for fetched files below the user's folder for caches, made where it is missing. "" where there is none. */
dc_status dc_fetch_folder(dc_job *j, const char **out);

#endif
