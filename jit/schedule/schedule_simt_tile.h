/*
 * What the rules for contractions of thread groups share: schedule_simt_product.c looks at a contraction,
 * schedule_simt_tile.c has the moves that divide it among groups and threads and stage its operands, and
 * schedule_simt_mma.c uses them for matrix instructions.
 */
#ifndef DC_JIT_SCHEDULE_SCHEDULE_SIMT_TILE_H
#define DC_JIT_SCHEDULE_SCHEDULE_SIMT_TILE_H

#include "jit/base/gpu_tiles.h"
#include "jit/schedule/schedule_impl.h"
#include "jit/schedule/schedule_simt_run.h"

typedef struct dc_side { /* rows m or columns n of the result */
    uint32_t axis;
    int64_t extent;
    int64_t block, warps, lanes; /* rows of a tile; threads along them */
    uint32_t o;                  /* the loop over tiles */
    uint32_t part[5];            /* loops of a tile, in the order of its rows */
    int nparts;
    uint32_t warp, lane,
        own[2]; /* the same loops by what they are: threads, and what one of them has */
} dc_side;

typedef struct dc_factor { /* an operand of the products that are added up */
    uint32_t buf;          /* the largest parameter that it is made of; DC_NO_BUF: there is none */
    uint8_t dtype;         /* its elements' */
    bool alone;            /* nothing else reads it */
    bool plain;            /* it is an element, casts aside */
    bool along_k, along_side; /* neighbours along k, m or n are neighbours in memory */
    int64_t vector,
        wide; /* elements that are copied at a time, 16 bytes of what is computed; of themselves */
} dc_factor;

typedef struct dc_simt_product {
    dc_sketch *s;
    dc_side m, n;
    uint32_t out[DC_SHAPE_AXES], red[DC_SHAPE_AXES]; /* others of the result; reductions, k last */
    int nout, nred;
    int64_t others; /* tiles of the result are so many times more */
    int64_t K, depth;
    uint32_t stage, k; /* loops over stages of so many terms, and in one of them */
    dc_factor a, b;
    bool atoms;  /* tiles lie in shared memory as wgmma reads them */
    uint8_t sum; /* dtype of the sums */
} dc_simt_product;

/* Reads the sum of a contraction. False: it is none. */
bool dc_simt_read_sum(dc_simt_product *q, const dc_shape *p, dc_operands *operands);
/* An operand whose axis m or n this is; of q sketch, reductions and the type of sums are read. */
dc_factor dc_simt_factor(const dc_simt_product *q, dc_vx v, uint32_t axis);

/* Multiprocessors of the device. */
int64_t dc_simt_units(const dc_sketch *s);

/* Groups that such tiles make, as rounds of all multiprocessors. */
int64_t dc_simt_rounds(const dc_simt_product *q, int64_t m, int64_t n);

/*
 * Where each side has been split: grid, stages, threads, and in a thread k round `inner`, the loops over what it has
 * itself in this order.
 */
bool dc_simt_make_loops(dc_simt_product *q, const dc_shape *p, const uint32_t inner[4]);
bool dc_simt_bind_threads(dc_simt_product *q);

/*
 * A tile of an operand in shared memory, which all threads copy along memory: [side][k] if by_rows, else [k][side];
 * elements, or what is computed of them.
 */
bool dc_simt_stage(dc_simt_product *q, const dc_factor *f, const dc_side *d, bool by_rows,
                   bool computed);

/*
 * Copies to tiles a and b of later stages go on while one is multiplied: of as many as there is memory for. Of the two,
 * b was copied last and is the first one in the loop.
 */
void dc_simt_run_ahead(dc_simt_product *q, uint32_t a, uint32_t b, int64_t most);

/*
 * schedule_simt_store.c: is anything that goes along the columns shorter than 4 bytes, and all that is stored does in runs of 4? Then,
 * between the loops and the threads, what follows the sums has them by runs of 4 columns: pairs of lanes exchange halves.
 */
bool dc_simt_exchange_pays(const dc_simt_product *q);
bool dc_simt_exchange(dc_simt_product *q, uint32_t sums);
/* Tiles, schedule_simt_ask.c */
typedef struct dc_tile_size {
    int64_t m, n;         /* of a group */
    int64_t down, across; /* of a warp, in what 32 threads have at least */
} dc_tile_size;

typedef struct dc_tile_form {
    int64_t rows, columns, most; /* what 32 threads have at least; how many times that at most */
    int64_t bytes;               /* of shared memory for each row and column of a tile, at least */
    const dc_tile_size *tile;    /* those to choose from, the most promising first */
    int n;
} dc_tile_form;

/* Tiles by the time that they take, of equal ones the first that was ranked. */
typedef struct dc_tile_choice {
    dc_tile_size tile[DC_KNOB_VALUES];
    int64_t time[DC_KNOB_VALUES];
    int n;
} dc_tile_choice;

void dc_simt_rank_tile(dc_tile_choice *c, const dc_tile_size *t, int64_t time);
/*
 * Those of matrix instructions, of a warp or of four, for which a group has enough shared memory: so many bytes for each row
 * and column of a tile.
 */
dc_tile_choice dc_simt_rank_matrices(const dc_simt_product *q, bool warpgroups, int64_t bytes);
/* The rule's choice, or what a search asks for instead where that fits. */
dc_tile_size dc_simt_ask_tile(const dc_simt_product *q, const dc_tile_form *f, dc_tile_size rule);
/* Terms of a stage, a multiple of `least`, each of so many bytes. */
int64_t dc_simt_ask_depth(const dc_simt_product *q, const dc_tile_size *t, int64_t rule,
                          int64_t least, int64_t size);
/* Of a ring; 1: there is none. */
int64_t dc_simt_ask_stages(const dc_simt_product *q, int64_t rule);

/* Rows and columns as warps, matrices of a warp and what a lane has of one, schedule_simt_mma.c */
bool dc_simt_split_matrices(dc_simt_product *q, const dc_tile_size *t);
/* The loops over what a thread has go inside the terms of one instruction and become that. */
bool dc_simt_make_matrices(dc_simt_product *q, const uint32_t inner[4], uint32_t which);

/* Products by instructions of four warps; *is tells whether they fit, and the device has them and they are asked for. */
bool dc_schedule_simt_wgmma(dc_simt_product *q, const dc_shape *p, bool *is);
/* Products by matrix instructions; *is tells whether they fit. */
bool dc_schedule_simt_mma(dc_simt_product *q, const dc_shape *p, bool *is);
/* Is there an instruction for its operands? */
bool dc_simt_has_matrices(const dc_simt_product *q);

#endif
