#include "formats/flow.h"

#include <string.h>

dc_flowed dc_flow_moved(dc_flow *f, size_t nfrom, size_t nto, dc_flowed how)
{
    const bool could = f->nfrom > 0 && f->nto > 0, moved = nfrom != f->nfrom || nto != f->nto;
    if (nfrom > f->nfrom || nto > f->nto || (how == DC_FLOWED_SOME && could && !moved))
        return DC_FLOWED_WRONG;
    f->from += f->nfrom - nfrom;
    f->to += f->nto - nto;
    f->nfrom = nfrom;
    f->nto = nto;
    return how;
}

unsigned dc_flow_piece(size_t n)
{
    return n < 1u << 30 ? (unsigned)n : 1u << 30;
}

/* ---- zlib -------------------------------------------------------------------------------------- */

static void begin(z_stream *z, const dc_flow *f)
{
    memcpy(&z->next_in, &f->from, sizeof f->from); /* not const before zlib 1.2.14 */
    z->avail_in = dc_flow_piece(f->nfrom);
    z->next_out = f->to;
    z->avail_out = dc_flow_piece(f->nto);
}

static dc_flowed end(const z_stream *z, dc_flow *f, int code)
{
    return dc_flow_moved(f, f->nfrom - dc_flow_piece(f->nfrom) + z->avail_in,
                         f->nto - dc_flow_piece(f->nto) + z->avail_out,
                         code == Z_OK || code == Z_BUF_ERROR ? DC_FLOWED_SOME
                         : code == Z_STREAM_END              ? DC_FLOWED_ALL
                         : code == Z_MEM_ERROR               ? DC_FLOWED_MEMORY
                                                             : DC_FLOWED_DAMAGED);
}

dc_flowed dc_inflate(z_stream *z, dc_flow *f)
{
    begin(z, f);
    return end(z, f, inflate(z, Z_NO_FLUSH));
}

dc_flowed dc_deflate(z_stream *z, dc_flow *f, int flush)
{
    begin(z, f);
    return end(z, f, deflate(z, z->avail_in == f->nfrom ? flush : Z_NO_FLUSH));
}
