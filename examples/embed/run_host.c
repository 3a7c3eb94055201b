/*
 * A host without Lua: loads a function that a script exported and calls it.
 *
 *     deepc policy.lua policy.dcfn
 *     run_host policy.dcfn
 */
#include <deepc.h>
#include <stdio.h>
#include <stdlib.h>

/* Every byte goes through the host: here it is counted. Called by several threads at once. */
typedef struct memory {
    _Atomic size_t now, most;
} memory;

static void *allocate(void *ctx, void *block, size_t old_size, size_t new_size)
{
    memory *m = ctx;
    void *p = NULL;
    if (new_size == 0)
        free(block);
    else
        p = realloc(block, new_size);
    if (p != NULL || new_size == 0) {
        m->now += new_size - old_size;
        if (m->now > m->most)
            m->most = m->now;
    }
    return p;
}

static void list(const dc_function *fn)
{
    const char *name;
    dc_array a;
    printf("%s\n", dc_function_signature(fn));
    for (size_t v = 0; v < dc_function_variants(fn); v++)
        for (size_t i = 0; dc_function_argument(fn, v, i, &name, &a); i++) {
            printf("  variant %zu, argument %s:", v, name);
            for (int k = 0; k < a.rank; k++)
                printf(" %lld", (long long)a.dim[k]);
            printf("\n");
        }
}

int main(int argc, char **argv)
{
    static float points[4][2] = {{0, 0}, {0.3f, -0.2f}, {0.9f, 0.9f}, {-0.8f, 0.7f}};
    float inside[4];
    memory m = {0};
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *ctx = NULL;
    dc_function *fn = NULL;
    int status = EXIT_FAILURE;

    cfg.threads = 1;
    cfg.memory_limit = (size_t)16 << 20;
    cfg.alloc = allocate;
    cfg.alloc_ctx = &m;
    if (dc_open(&cfg, &ctx) != DC_OK ||
        dc_load(ctx, argc > 1 ? argv[1] : "policy.dcfn", &fn) != DC_OK)
        goto failed;
    list(fn);

    dc_array x = {DC_F32, 2, {4, 2}, points, sizeof points};
    dc_array y = {.data = inside, .bytes = sizeof inside};
    if (dc_call(fn, &x, 1, &y, 1) != DC_OK)
        goto failed;
    for (int i = 0; i < 4; i++)
        printf("%5.2f %5.2f  inside: %.2f\n", points[i][0], points[i][1], inside[i]);

    x.dim[0] = 3; /* what it was not exported for */
    if (dc_call(fn, &x, 1, &y, 1) == DC_OK)
        goto failed;
    printf("%s\n", dc_errmsg(ctx));
    status = inside[0] > 0.5f && inside[1] > 0.5f && inside[2] < 0.5f && inside[3] < 0.5f
                 ? EXIT_SUCCESS
                 : EXIT_FAILURE;
    goto done;

failed:
    fprintf(stderr, "run_host: %s\n", dc_errmsg(ctx));
done:
    dc_unload(fn);
    dc_close(ctx);
    printf("at most %zu KiB, %zu bytes are left\n", m.most / 1024, m.now);
    return m.now == 0 ? status : EXIT_FAILURE;
}
