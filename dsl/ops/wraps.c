/*
 * Numbers beside tensors of 8 and 16 bits: results that are not in the range of the dtype wrap, `x - 128` of u8 for half of
 * what x may be, where most want what is below 0.
 */
#include "dsl/base/uses.h"
#include "dsl/ops/apply.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct range {
    int64_t low, high;
} range;

static range range_of(dc_dtype t)
{
    const bool is_signed = dc_dtype_kind(t) == DC_KIND_SINT;
    const int64_t high = ((int64_t)1 << (dc_dtype_bits(t) - is_signed)) - 1;
    return (range){is_signed ? -high - 1 : 0, high};
}

static bool is_small(dc_dtype t)
{
    const dc_kind kind = dc_dtype_kind(t);
    return (kind == DC_KIND_SINT || kind == DC_KIND_UINT) && dc_dtype_bits(t) <= 16;
}

/* What -x, x - k, k - x, x + k make of all the values of x; false: another operation, or no number in it. */
static bool find_range(const dc_apply *a, range all, range *out)
{
    const bool left = a->n == 2 && a->in[0].h == NULL, right = a->n == 2 && a->in[1].h == NULL;
    const int64_t k = (int64_t)a->in[right].bits;
    if (a->n == 1 && strcmp(a->op, "neg") == 0)
        *out = (range){-all.high, -all.low};
    else if (left == right || k == 1) /* 1 - x of 0 and 1; x - 1 of what is counted from 1 */
        return false;
    else if (strcmp(a->op, "add") == 0)
        *out = (range){all.low + k, all.high + k};
    else if (strcmp(a->op, "sub") == 0)
        *out = right ? (range){all.low - k, all.high - k} : (range){k - all.high, k - all.low};
    else
        return false;
    return true;
}

/* Below 0 all counts; otherwise what wraps is to be a quarter of the values. */
bool dc_wraps_any(const dc_apply *a)
{
    const dc_dtype t = (dc_dtype)a->in[0].type.dtype;
    range made;
    if (a->n > 2 || !is_small(t))
        return false;
    const range all = range_of(t);
    const int64_t quarter = (all.high - all.low + 1) / 4;
    if (!find_range(a, all, &made))
        return false;
    return all.low - made.low >= (all.low == 0 ? 1 : quarter) || made.high - all.high >= quarter;
}

void dc_wraps_look(dc_dsl *d, const dc_apply *a, const dc_place *place)
{
    const dc_dtype t = (dc_dtype)a->in[0].type.dtype;
    const range all = range_of(t);
    char in[2][DC_TYPE_TEXT], sentence[3 * DC_TYPE_TEXT];
    range made = all;
    find_range(a, all, &made);
    for (int i = 0; i < a->n; i++)
        if (a->in[i].h != NULL)
            dc_type_print(&a->in[i].type, in[i], sizeof in[i]);
        else
            snprintf(in[i], sizeof in[i], "%" PRId64, (int64_t)a->in[i].bits);
    const bool below = made.low < all.low;
    snprintf(sentence, sizeof sentence, "%s: %s%s%s: what would be %s %" PRId64 " wraps", a->op,
             in[0], a->n > 1 ? " and " : "", a->n > 1 ? in[1] : "", below ? "below" : "above",
             below ? all.low : all.high);
    dc_uses_note(d, place->where, "wraps", a->op, sentence,
                 "x:cast \"i32\" or \"f32\" first keeps it");
}
