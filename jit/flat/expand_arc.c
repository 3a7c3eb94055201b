/*
 * Expansions of asin, acos, atan and atan2: one polynomial each for a small argument, to which the others
 * come by identities. Coefficients are Chebyshev fits (scripts/minimax).
 */
#include "jit/flat/expand_impl.h"

#include <math.h>

/* (atan(z) / z - 1) / s and (asin(z) / z - 1) / s in s = z^2: z up to tan(1/2), up to 1/2. */
static const series atan_near_f32 = {6,
                                     {0.0379951210039, -0.0797141250278, 0.109500710326,
                                      -0.142748670394, 0.199997274262, -0.333333322068}};
static const series atan_near_f64 = {
    13,
    {-0.0072045823271236099221, 0.021839114073788347322, -0.035882048696277502318,
     0.045414058425388420739, -0.052183047961753112003, 0.058759548126666244582,
     -0.06666033712970614959, 0.076922653639941546777, -0.090909072625470952023,
     0.11111111063886143427, -0.14285714285078065301, 0.19999999999996620846,
     -0.3333333333333333035}};
static const series asin_near_f32 = {6,
                                     {0.0336908472906, 0.0171492382977, 0.0311006627504,
                                      0.0445994015269, 0.075000945435, 0.166666663374}};
static const series asin_near_f64 = {
    13,
    {0.02875785154818437861, -0.014851887352956896719, 0.01740087963582326964,
     0.005457506642064084984, 0.010322814369605942977, 0.011479177411895744813,
     0.013971212973930063087, 0.017352392720840923678, 0.022372172942151348849,
     0.030381944138531201894, 0.044642857146355430572, 0.074999999999984329325,
     0.16666666666666667827}};

/* pi / 4 and pi / 2 in two parts; a product of the first pi / 4 and a number up to 4 is exact. */
static const double quarter_f32[2] = {0x1.921fbp-1, 0x1.5110b4611a626p-23},
                    quarter_f64[2] = {0x1.921fb54442dp-1, 0x1.8469898cc5170p-49},
                    half_f32[2] = {0x1.921fb6p0, -0x1.777a5cf72cecep-25},
                    half_f64[2] = {0x1.921fb54442d18p0, 0x1.1a62633145c07p-54};

static dc_fv quarter(const use *u, int part)
{
    return flt_of(u, quarter_f32[part], quarter_f64[part]);
}

static dc_fv half_turn(const use *u, int part, double times)
{
    return flt_of(u, times * half_f32[part], times * half_f64[part]);
}

/*
 * The angle of the point (b, a), a and b not negative, b not 0; at (-b, a) where `left`, if there is that. In eighths of
 * a turn it is m of 0..4, and the arctangent of a number of -0.3 .. tan(1/2): from 1/2 on results have units twice as large.
 */
static dc_fv angle(const use *u, dc_fv a, dc_fv b, const dc_fv *left)
{
    const dc_fv steep = op2(u, DC_K_LT, b, a);
    const dc_fv low = pick(u, steep, b, a), high = pick(u, steep, a, b);
    const dc_fv near = op2(u, DC_K_LE, low, op2(u, DC_K_MUL, high, flt(u, 0.5463025)));
    const dc_fv z = op2(u, DC_K_DIV, pick(u, near, low, op2(u, DC_K_SUB, low, high)),
                        pick(u, near, high, op2(u, DC_K_ADD, low, high)));
    const dc_fv square = op2(u, DC_K_MUL, z, z);
    dc_fv r = fma3(u, op2(u, DC_K_MUL, z, square),
                   series_at(u, square, &atan_near_f32, &atan_near_f64), z);
    dc_fv m = pick(u, near, flt(u, 0), flt(u, 1));
    m = pick(u, steep, op2(u, DC_K_SUB, flt(u, 2), m), m);
    r = pick(u, steep, op1(u, DC_K_NEG, r), r);
    if (left != NULL) {
        m = pick(u, *left, op2(u, DC_K_SUB, flt(u, 4), m), m);
        r = pick(u, *left, op1(u, DC_K_NEG, r), r);
    }
    return fma3(u, m, quarter(u, 0), fma3(u, m, quarter(u, 1), r));
}

dc_fv dc_expand_atan(const use *u)
{
    const dc_fv x = u->in[0];
    return with_sign_of(u, angle(u, magnitude_of(u, x), flt(u, 1), NULL), x);
}

/* Both are scaled so that their sum does not overflow, and the ratio of small ones is one of normal numbers. */
dc_fv dc_expand_atan2(const use *u)
{
    const dc_fv y = u->in[0], x = u->in[1], one = flt(u, 1), infinite = flt(u, INFINITY);
    const int most = u->t == DC_F64 ? 1020 : 124, fraction = dc_dtype_fraction(u->t) + 1;
    dc_fv a = magnitude_of(u, y), b = magnitude_of(u, x);
    const dc_fv beyond = op2(u, DC_K_LT, a, b), high = pick(u, beyond, b, a);
    dc_fv by =
        pick(u, op2(u, DC_K_LT, flt(u, ldexp(1, most)), high), flt(u, ldexp(1, -fraction)), one);
    by = pick(u, op2(u, DC_K_LT, high, flt(u, ldexp(1, -most + fraction))),
              flt(u, ldexp(1, fraction)), by);
    const dc_fv corner =
        op2(u, DC_K_AND, op2(u, DC_K_EQ, a, infinite), op2(u, DC_K_EQ, b, infinite));
    a = pick(u, corner, one, op2(u, DC_K_MUL, a, by));
    b = pick(u, corner, one, op2(u, DC_K_MUL, b, by));
    b = pick(u, op2(u, DC_K_EQ, high, flt(u, 0)), one, b);
    const dc_dtype whole = signed_word(u);
    const dc_fv left = op2(u, DC_K_LT, as(u, x, whole), bits(u, whole, 0));
    const dc_fv r = with_sign_of(u, angle(u, a, b, &left), y);
    const dc_fv none = op2(u, DC_K_OR, op2(u, DC_K_NE, x, x), op2(u, DC_K_NE, y, y));
    return pick(u, none, flt(u, NAN), r);
}

/*
 * What asin and acos are made of: |x| or, above 1/2, s = sqrt((1 - |x|) / 2), whose arcsine is half of acos(|x|); and
 * what the arcsine of it is more. Beyond 1 the root is NaN.
 */
typedef struct arc {
    dc_fv far, s, more;
} arc;

static arc arc_of(const use *u, dc_fv size)
{
    arc r = {.far = op2(u, DC_K_LT, flt(u, 0.5), size)};
    const dc_fv rest = op2(u, DC_K_MUL, op2(u, DC_K_SUB, flt(u, 1), size), flt(u, 0.5));
    const dc_fv square = pick(u, r.far, rest, op2(u, DC_K_MUL, size, size));
    r.s = pick(u, r.far, op1(u, DC_K_SQRT, rest), size);
    r.more = op2(u, DC_K_MUL, op2(u, DC_K_MUL, r.s, square),
                 series_at(u, square, &asin_near_f32, &asin_near_f64));
    return r;
}

/* A multiple of pi / 2 = 1.5 + 0.07 less 2 * (s + more), the large parts first: of 1.5 that is exact, mostly. */
static dc_fv less_twice(const use *u, double times, const arc *r)
{
    const dc_fv two = flt(u, 2);
    const dc_fv large = op2(u, DC_K_SUB, flt(u, times * 1.5), op2(u, DC_K_MUL, r->s, two));
    const dc_fv small =
        op2(u, DC_K_SUB, op2(u, DC_K_MUL, r->more, two), flt(u, times * 0x1.21fb54442d184p-4));
    return op2(u, DC_K_SUB, large, small);
}

dc_fv dc_expand_asin(const use *u)
{
    const dc_fv x = u->in[0];
    const arc r = arc_of(u, magnitude_of(u, x));
    const dc_fv near = op2(u, DC_K_ADD, r.s, r.more);
    return with_sign_of(u, pick(u, r.far, less_twice(u, 1, &r), near), x);
}

dc_fv dc_expand_acos(const use *u)
{
    const dc_fv x = u->in[0], two = flt(u, 2);
    const arc r = arc_of(u, magnitude_of(u, x));
    const dc_fv signed_more = with_sign_of(u, r.more, x);
    const dc_fv near = op2(u, DC_K_SUB, half_turn(u, 0, 1),
                           op2(u, DC_K_ADD, x, op2(u, DC_K_SUB, signed_more, half_turn(u, 1, 1))));
    const dc_fv right = op2(u, DC_K_MUL, op2(u, DC_K_ADD, r.s, r.more), two);
    const dc_fv far = pick(u, op2(u, DC_K_LT, x, flt(u, 0)), less_twice(u, 2, &r), right);
    return pick(u, r.far, far, near);
}
