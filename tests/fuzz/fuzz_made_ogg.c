/*
 * Ogg files with Vorbis, mostly valid (made.h): the three headers with codebooks, floors, residues, mappings and modes,
 * packets of one or two sizes of blocks in pages with lacing, positions and checksums that agree, other streams between.
 * libsndfile decodes them: of a file in which no channel has a floor every sample is 0, and all have as many frames as
 * the last page says. Where it is not installed a file is refused with its name.
 */
#include <string.h>

#include "tests/fuzz/made.h"

enum { CHANNELS = 6, PACKETS = 12, PAGE = 255, SERIAL = 77, OTHER = 1234 };

/* Some files that it refuses libsndfile forgets to free. */
const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
    return "leak:libvorbis.so\nleak:libsndfile.so\nleak:libogg.so\n";
}

typedef struct bits {
    made *m; /* a packet of its own */
    unsigned held, n;
} bits;

typedef struct ogg {
    made *m;
    int channels, rate, small, large; /* exponents of sizes of blocks */
    bool modes;                       /* both sizes; else the small one */
    bool loud;                        /* channels have floors: samples are anything */
    uint32_t page;
    int64_t frames, last;
} ogg;

/* ---- packets: the lowest bits come first ------------------------------------------------------ */

static void put_bits(bits *b, uint64_t v, int n)
{
    for (int i = 0; i < n; i++) {
        b->held |= (unsigned)(v >> i & 1) << b->n;
        if (++b->n == 8) {
            made_byte(b->m, b->held);
            b->held = b->n = 0;
        }
    }
}

static void put_lied(bits *b, uint64_t right, int n)
{
    put_bits(b, made_number(b->m, right), n);
}

static void end_packet(bits *b)
{
    if (b->n > 0)
        put_bits(b, 0, 8 - (int)b->n);
}

/* ---- pages ------------------------------------------------------------------------------------ */

static uint32_t crc(const unsigned char *at, size_t n)
{
    uint32_t c = 0;
    for (size_t i = 0; i < n; i++) {
        c ^= (uint32_t)at[i] << 24;
        for (int k = 0; k < 8; k++)
            c = (c << 1) ^ ((c >> 31) != 0 ? 0x04c11db7u : 0);
    }
    return c;
}

enum { BEGINS = 2, ENDS = 4 };

static void put_page(ogg *o, unsigned flags, uint64_t position, const made *packet, int n)
{
    made *m = o->m;
    const size_t begin = m->n;
    unsigned char lacing[PAGE];
    int segments = 0;
    for (int i = 0; i < n; i++) {
        for (size_t left = packet[i].n;; left -= 255) {
            if (segments == PAGE)
                fuzz_finding("a page has no room for its packets");
            lacing[segments++] = left >= 255 ? 255 : (unsigned char)left;
            if (left < 255)
                break;
        }
    }
    made_text(m, "OggS");
    made_byte(m, (unsigned)made_number(m, 0));
    made_byte(m, (unsigned)made_number(m, flags));
    made_le(m, made_number(m, position), 8);
    made_le(m, made_number(m, SERIAL), 4);
    made_le(m, made_number(m, o->page++), 4);
    made_le(m, 0, 4);
    made_byte(m, (unsigned)made_number(m, (unsigned)segments));
    for (int i = 0; i < segments; i++)
        made_byte(m, (unsigned)made_number(m, lacing[i]));
    for (int i = 0; i < n; i++)
        made_put(m, packet[i].at, packet[i].n);
    /* the checksum is that of the bytes, lies included: else no lie gets further than it */
    const uint32_t sum = (uint32_t)made_number(m, crc(m->at + begin, m->n - begin));
    for (int i = 0; i < 4; i++)
        m->at[begin + 22 + (size_t)i] = (unsigned char)(sum >> 8 * i);
}

/* ---- headers ---------------------------------------------------------------------------------- */

static made identification(ogg *o)
{
    const made file = made_part_begin(o->m);
    made *m = o->m;
    made_text(m, "\1vorbis");
    made_le(m, made_number(m, 0), 4);
    made_byte(m, (unsigned)made_number(m, (unsigned)o->channels));
    made_le(m, made_number(m, (unsigned)o->rate), 4);
    made_le(m, made_number(m, 0), 4);
    made_le(m, made_number(m, 80000), 4);
    made_le(m, made_number(m, 0), 4);
    made_byte(m, (unsigned)made_number(m, (unsigned)(o->small | o->large << 4)));
    made_byte(m, (unsigned)made_number(m, 1));
    return made_part_end(o->m, &file);
}

static made comments(ogg *o)
{
    const made file = made_part_begin(o->m);
    made *m = o->m;
    const uint32_t n = made_below(m, 4);
    made_text(m, "\3vorbis");
    made_le(m, made_number(m, 4), 4);
    made_text(m, "made");
    made_le(m, made_number(m, n), 4);
    for (uint32_t i = 0; i < n; i++) {
        made_le(m, made_number(m, 7), 4);
        made_text(m, "TITLE=a");
    }
    made_byte(m, (unsigned)made_number(m, 1));
    return made_part_end(o->m, &file);
}

/* Four entries of two bits; with values where residues are to be made of them. */
static void put_book(bits *b, int dims, bool values)
{
    made *m = b->m;
    const bool ordered = made_once_in(m, 4), sparse = made_once_in(m, 4);
    put_lied(b, 0x564342, 24);
    put_lied(b, (unsigned)dims, 16);
    put_lied(b, 4, 24);
    put_bits(b, ordered, 1);
    if (ordered) {
        put_lied(b, 1, 5); /* lengths begin at 2 */
        put_lied(b, 4, 3); /* all of them */
    } else {
        put_bits(b, sparse, 1);
        for (int i = 0; i < 4; i++) {
            if (sparse)
                put_bits(b, 1, 1);
            put_lied(b, 1, 5);
        }
    }
    put_lied(b, values ? 1 : 0, 4);
    if (!values)
        return;
    put_lied(b, 788u << 21 | 1, 32); /* a float of 1 */
    put_lied(b, 788u << 21 | 1, 32);
    put_lied(b, 3, 4);
    put_lied(b, 0, 1);
    for (int i = 0; i < (dims == 1 ? 4 : 2); i++)
        put_lied(b, (unsigned)i, 4);
}

static void put_floor(bits *b)
{
    const uint32_t partitions = made_below(b->m, 4);
    put_lied(b, 1, 16);
    put_lied(b, partitions, 5);
    for (uint32_t i = 0; i < partitions; i++)
        put_lied(b, 0, 4);
    if (partitions > 0) { /* a class of one value, from the first book */
        put_lied(b, 0, 3);
        put_lied(b, 0, 2);
        put_lied(b, 1, 8);
    }
    put_lied(b, made_below(b->m, 4), 2);
    put_lied(b, 5, 4);
    for (uint32_t i = 0; i < partitions; i++)
        put_lied(b, 3 + i * 7, 5);
}

static void put_residue(bits *b, int half)
{
    const bool books = made_once_in(b->m, 2);
    put_lied(b, made_below(b->m, 3), 16);
    put_lied(b, 0, 24);
    put_lied(b, (unsigned)half, 24);
    put_lied(b, 7, 24);
    put_lied(b, 0, 6);
    put_lied(b, 0, 8);
    put_lied(b, books, 3);
    put_lied(b, 0, 1);
    if (books)
        put_lied(b, 1, 8);
}

static void put_mapping(ogg *o, bits *b)
{
    const bool coupled = o->channels > 1 && made_once_in(b->m, 2);
    int wide = 0;
    while (1 << wide < o->channels)
        wide++;
    put_lied(b, 0, 16);
    put_lied(b, 0, 1);
    put_bits(b, coupled, 1);
    if (coupled) {
        put_lied(b, 0, 8);
        put_lied(b, 0, wide);
        put_lied(b, 1, wide);
    }
    put_lied(b, 0, 2);
    put_lied(b, 0, 8);
    put_lied(b, 0, 8);
    put_lied(b, 0, 8);
}

static made setup(ogg *o)
{
    const made file = made_part_begin(o->m);
    bits b = {.m = o->m};
    made_text(o->m, "\5vorbis");
    put_lied(&b, 1, 8);
    put_book(&b, 1, false);
    put_book(&b, 1 + (int)made_below(o->m, 2), true);
    put_lied(&b, 0, 6);
    put_lied(&b, 0, 16);
    put_lied(&b, 0, 6);
    put_floor(&b);
    put_lied(&b, 0, 6);
    put_residue(&b, 1 << (o->small - 1));
    put_lied(&b, 0, 6);
    put_mapping(o, &b);
    put_lied(&b, o->modes, 6);
    for (int i = 0; i <= o->modes; i++) {
        put_lied(&b, (unsigned)i, 1);
        put_lied(&b, 0, 16);
        put_lied(&b, 0, 16);
        put_lied(&b, 0, 8);
    }
    put_lied(&b, 1, 1);
    end_packet(&b);
    return made_part_end(o->m, &file);
}

/* ---- sounds ----------------------------------------------------------------------------------- */

/* A block that is silent in each channel, or has any bits. */
static made audio(ogg *o, bool large, bool before, bool after)
{
    const made file = made_part_begin(o->m);
    bits b = {.m = o->m};
    put_lied(&b, 0, 1);
    if (o->modes)
        put_lied(&b, large, 1);
    if (large) {
        put_bits(&b, before, 1);
        put_bits(&b, after, 1);
    }
    for (int c = 0; c < o->channels; c++)
        put_lied(&b, o->loud, 1);
    for (uint32_t n = o->loud ? made_below(o->m, 100) : 0; n > 0; n--)
        put_bits(&b, made_below(o->m, 256), 8);
    end_packet(&b);
    return made_part_end(o->m, &file);
}

static void make(ogg *o)
{
    made packet[PACKETS], header[2];
    bool large[PACKETS + 1] = {false};
    const int n = 2 + (int)made_below(o->m, PACKETS - 1);
    made first = identification(o);
    put_page(o, BEGINS, 0, &first, 1);
    header[0] = comments(o);
    header[1] = setup(o);
    if (made_once_in(o->m, 2)) {
        put_page(o, 0, 0, header, 2);
    } else {
        put_page(o, 0, 0, &header[0], 1);
        put_page(o, 0, 0, &header[1], 1);
    }
    for (int i = 0; i < n; i++)
        large[i] = o->modes && made_once_in(o->m, 2);
    int from = 0;
    for (int i = 0; i < n; i++) {
        packet[i] = audio(o, large[i], i > 0 && large[i - 1], large[i + 1]);
        if (i > 0)
            o->frames += (1 << (large[i - 1] ? o->large : o->small)) / 4 +
                         (1 << (large[i] ? o->large : o->small)) / 4;
        if (i == n - 1 && made_once_in(o->m, 2)) /* the last block is cut */
            o->frames -= made_below(o->m, 16);
        if (i == n - 1 || (i > 1 && made_below(o->m, 4) == 3)) {
            put_page(o, i == n - 1 ? ENDS : 0, (uint64_t)o->frames, packet + from, i + 1 - from);
            from = i + 1;
        }
    }
}

/* ---- what is read ----------------------------------------------------------------------------- */

static dc_status read_sound(dc_job *j, const ogg *o)
{
    const float *got;
    DC_TRY(made_sound_read(j, o->m, o->rate, o->frames, o->channels, &got));
    for (int64_t i = 0; got != NULL && !o->loud && i < o->frames * o->channels; i++)
        if (got[i] != 0)
            fuzz_finding("sample %lld is not 0", (long long)i);
    return DC_OK;
}

static dc_status body(dc_job *j, void *arg)
{
    made m;
    made_begin(&m, &j->scratch, arg);
    ogg *o = DC_NEW(&j->scratch, ogg);
    o->m = &m;
    o->channels = 1 + (int)made_below(&m, CHANNELS);
    o->rate = 8000 + (int)made_below(&m, 50000);
    o->small = 6 + (int)made_below(&m, 4);
    o->large = o->small + (int)made_below(&m, 3);
    o->modes = made_once_in(&m, 2);
    o->loud = made_once_in(&m, 2);
    make(o);
    made_end(&m);
    return read_sound(j, o);
}

void fuzz_one(const fuzz_input *in)
{
    fuzz_protect(body, (void *)in);
}
