#include "formats/box.h"

size_t dc_box_count(const dc_box *b)
{
    size_t n = 1;
    for (int k = 0; k < b->rank; k++)
        n *= (size_t)b->dim[k];
    return n;
}

size_t dc_box_below(const dc_box *b, size_t x)
{
    size_t rest = 1, left = dc_box_count(b), below = 0;
    for (int k = 0; k < b->rank; k++)
        rest *= (size_t)b->whole[k];
    if (left == 0 || x >= rest)
        return left;
    for (int k = 0; k < b->rank; k++) {
        rest /= (size_t)b->whole[k];
        left /= (size_t)b->dim[k];
        const int64_t at = (int64_t)(x / rest) - b->start[k];
        x %= rest;
        if (at < 0)
            return below;
        if (at >= b->dim[k])
            return below + (size_t)b->dim[k] * left;
        below += (size_t)at * left;
    }
    return below;
}

size_t dc_box_place(const dc_box *b, size_t i)
{
    size_t place = 0, inner = 1;
    for (int k = b->rank; k-- > 0;) {
        place += ((size_t)b->start[k] + i % (size_t)b->dim[k]) * inner;
        i /= (size_t)b->dim[k];
        inner *= (size_t)b->whole[k];
    }
    return place;
}

size_t dc_box_run(const dc_box *b)
{
    size_t n = 1;
    for (int k = b->rank; k-- > 0;) {
        n *= (size_t)b->dim[k];
        if (b->dim[k] != b->whole[k])
            break;
    }
    return n > 0 ? n : 1;
}

dc_box_walk dc_box_begin(const dc_box *b, size_t from, size_t to)
{
    return (dc_box_walk){b, from, to, dc_box_run(b)};
}

bool dc_box_next(dc_box_walk *w, size_t *i, size_t *place, size_t *n)
{
    if (w->at >= w->to)
        return false;
    const size_t run = w->run - w->at % w->run, left = w->to - w->at;
    *i = w->at;
    *n = run < left ? run : left;
    *place = dc_box_place(w->box, w->at);
    w->at += *n;
    return true;
}
