/* Modules of deepc.so beside "deepc" itself: CMakeLists.txt lists them in a file that it makes. */
#ifndef DC_VM_BIND_H
#define DC_VM_BIND_H

#include "core/base/base.h"

struct lua_State;

/* `require NAME`, with "deepc" before it. Raises. */
int dc_bind_module(struct lua_State *L, const char *name);

#define DC_BIND_MODULE(opener, name)       \
    int opener(struct lua_State *L);       \
    DC_API int opener(struct lua_State *L) \
    {                                      \
        return dc_bind_module(L, name);    \
    }

#endif
