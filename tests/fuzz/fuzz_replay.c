/* A file about a bug, replayed on the simulated CPU and the interpreter. */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include "vm/program/replay.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

/* Those that a file may set; the device is ours. */
static void reset_settings(void)
{
    static const char *const name[] = {"DEEPC_MATH",   "DEEPC_CHECK", "DEEPC_OPT",
                                       "DEEPC_TARGET", "DEEPC_SKIP",  "DEEPC_COMPILE",
                                       "DEEPC_COMPARE"};
    for (size_t i = 0; i < DC_COUNTOF(name); i++)
        unsetenv(name[i]);
    setenv("DEEPC_DEVICE", "sim:cpu", 1);
    setenv("DEEPC_THREADS", "1", 1);
    setenv("DEEPC_CACHE", "off", 1);
    setenv("DEEPC_MEMORY", "16M", 1);
}

/* What it prints is for people; what a test prints is counted. */
void fuzz_one(const fuzz_input *in)
{
    static int nowhere = -1;
    if (nowhere < 0)
        nowhere = open("/dev/null", O_WRONLY);
    reset_settings();
    fflush(stdout);
    const int out = dup(STDOUT_FILENO);
    dup2(nowhere, STDOUT_FILENO);
    dc_replay(fuzz_file(in->at, in->n));
    fflush(stdout);
    dup2(out, STDOUT_FILENO);
    close(out);
}
