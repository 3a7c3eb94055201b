/* In libFuzzer's place: runs a target on every file of the folders that are its arguments. */
#define _DEFAULT_SOURCE /* scandir */

#include <dirent.h>
#include <stdint.h>
#include <stdlib.h>

#include "tests/t.h"

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t n);

static void run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    unsigned char *bytes = malloc(1 << 20);
    if (CHECK(f != NULL && bytes != NULL)) {
        const size_t n = fread(bytes, 1, 1 << 20, f);
        uint8_t *exact = malloc(n > 0 ? n : 1); /* reading past its end is seen */
        memcpy(exact, bytes, n);
        printf("%s\n", path); /* the last one is the one that crashed */
        fflush(stdout);
        CHECK_EQ(LLVMFuzzerTestOneInput(exact, n), 0);
        free(exact);
    }
    if (f != NULL)
        fclose(f);
    free(bytes);
}

int main(int argc, char **argv)
{
    static const uint8_t nothing[1] = {0};
    CHECK_EQ(LLVMFuzzerTestOneInput(nothing, 0), 0);
    for (int i = 1; i < argc; i++) {
        struct dirent **entry = NULL;
        const int n = scandir(argv[i], &entry, NULL, alphasort);
        CHECK(n > 2); /* a folder without inputs tests nothing */
        for (int k = 0; k < n; k++) {
            char path[1000];
            snprintf(path, sizeof path, "%s/%s", argv[i], entry[k]->d_name);
            if (entry[k]->d_name[0] != '.')
                run_file(path);
            free(entry[k]);
        }
        free(entry);
    }
    return t_done();
}
