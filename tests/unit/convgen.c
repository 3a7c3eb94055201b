#include "tests/unit/convgen.h"

static void shuffle(rng *r, int n, int64_t *perm)
{
    for (int i = n - 1; i > 0; i--) {
        const int k = rng_below(r, i + 1);
        const int64_t swap = perm[i];
        perm[i] = perm[k];
        perm[k] = swap;
    }
}

/* 1 mostly, else up to most. */
static int64_t seldom(rng *r, int most)
{
    return rng_below(r, 3) > 0 ? 1 : 1 + rng_below(r, most);
}

void convgen(rng *r, dc_conv *out, int64_t *input, int64_t *kernel)
{
    dc_conv c = dc_conv_plain(1 + (int)seldom(r, 3) % DC_CONV_DIMS);
    const int most = c.n == 3 ? 3 : 6;
    *(rng_below(r, 2) ? &c.groups : &c.batch_groups) = seldom(r, 3);
    if (rng_below(r, 2)) {
        shuffle(r, 2 + c.n, c.in);
        shuffle(r, 2 + c.n, c.kernel);
        shuffle(r, 2 + c.n, c.out);
    }
    const int64_t channels = 1 + rng_below(r, 3);
    input[c.in[0]] = c.batch_groups * (1 + rng_below(r, 2));
    input[c.in[1]] = c.groups * channels;
    kernel[c.kernel[0]] = c.groups * c.batch_groups * (1 + rng_below(r, 3));
    kernel[c.kernel[1]] = channels;
    for (int i = 0; i < c.n; i++) {
        dc_conv_dim *d = &c.dim[i];
        int64_t window, room;
        do {
            *d = (dc_conv_dim){.stride = seldom(r, 3),
                               .lo = rng_below(r, 4) - 1,
                               .hi = rng_below(r, 4) - 1,
                               .dilate_in = seldom(r, 3),
                               .dilate = seldom(r, 3),
                               .reversed = rng_below(r, 4) == 0};
            input[c.in[2 + i]] = 1 + rng_below(r, most);
            kernel[c.kernel[2 + i]] = 1 + rng_below(r, 3);
            window = (kernel[c.kernel[2 + i]] - 1) * d->dilate + 1;
            room = (input[c.in[2 + i]] - 1) * d->dilate_in + 1 + d->lo + d->hi;
        } while (room < window);
    }
    *out = c;
}
