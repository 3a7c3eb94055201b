/* Sorting what a file or a folder has, of which there may be millions, so that the job is looked at meanwhile. */
#ifndef DC_CORE_BASE_SORT_H
#define DC_CORE_BASE_SORT_H

#include "core/base/job.h"

/*
 * Elements that compare equal stay in their order. Where it is ended, or memory is short, they are left in any order, each
 * of them once.
 */
dc_status dc_sort(dc_job *j, void *at, size_t n, size_t size,
                  int (*compare)(const void *, const void *));

#endif
