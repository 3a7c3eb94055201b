/* deepc cache: where compiled kernels are kept, how many, and how much room they take. */
#include "vm/program/cache_main.h"

#include "jit/jit.h"
#include "vm/program/say.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void print_size(const char *before, uint64_t bytes)
{
    dc_sayf(stdout, "%s%.1f MiB", before, (double)bytes / (1 << 20));
}

int dc_vm_cache(int argc, char **argv)
{
    const bool clear = argc == 1 && strcmp(argv[0], "--clear") == 0;
    dc_cache_report r;
    const char *bad;
    dc_opts opt;
    if (argc > 0 && !clear) {
        dc_sayf(stderr, "usage: deepc cache [--clear]\n");
        return 1;
    }
    dc_opts_init(&opt, &bad);
    dc_cache_look(&opt, clear, &r);
    if (r.path[0] == '\0') {
        dc_sayf(stdout, "no cache: DEEPC_CACHE is off, or there is no HOME\n");
        return 0;
    }
    if (r.why[0] != '\0') {
        dc_sayf(stderr, "deepc: the cache %s is not used: %s\n", r.path, r.why);
        return 1;
    }
    dc_sayf(stdout, "%s: %" PRIu32 " program%s, ", r.path, r.files, r.files == 1 ? "" : "s");
    print_size("", r.bytes);
    print_size(" of at most ", r.most);
    dc_sayf(stdout, "\n");
    return 0;
}
