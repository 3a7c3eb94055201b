/* What deepc.viz has in C. */
#ifndef DC_EXTRAS_VIZ_VIZ_PAGE_H
#define DC_EXTRAS_VIZ_VIZ_PAGE_H

#include "dsl/base/binding.h"

extern const dc_bindings dc_viz_page_bindings;

#endif
