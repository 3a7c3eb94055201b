/*
 * Tells what an image of 28 x 28 bytes shows, by the function that export.lua wrote (docs/tutorial.md). No Lua here.
 *
 *     classify clothes.dcfn < boot.raw
 */
#include <deepc.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const names[10] = {"T-shirt", "trousers", "pullover", "dress", "coat",
                                      "sandal",  "shirt",    "sneaker",  "bag",   "ankle boot"};

int main(int argc, char **argv)
{
    unsigned char image[28 * 28];
    float p[10];
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *ctx = NULL;
    dc_function *fn = NULL;

    if (argc != 2 || fread(image, 1, sizeof image, stdin) != sizeof image) {
        fprintf(stderr, "classify clothes.dcfn < IMAGE, 784 bytes\n");
        return EXIT_FAILURE;
    }
    dc_array x = {DC_U8, 3, {1, 28, 28}, image, sizeof image};
    dc_array y = {.data = p, .bytes = sizeof p};
    if (dc_open(&cfg, &ctx) != DC_OK || dc_load(ctx, argv[1], &fn) != DC_OK ||
        dc_call(fn, &x, 1, &y, 1) != DC_OK) {
        fprintf(stderr, "classify: %s\n", dc_errmsg(ctx));
        dc_close(ctx);
        return EXIT_FAILURE;
    }
    int best = 0;
    for (int i = 1; i < 10; i++)
        if (p[i] > p[best])
            best = i;
    printf("%s\n", names[best]);
    dc_unload(fn);
    dc_close(ctx);
    return EXIT_SUCCESS;
}
