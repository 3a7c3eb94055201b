/*
 * LLVM in a process of its own (DEEPC_COMPILE=process): the program `deepc --compile-server`, started with
 * the first kernel and kept for the next ones. What LLVM does to a process - fatal errors, memory, hangs -
 * it does to that one.
 *
 * Invariants:
 * - The two are connected by one socket, the server's descriptor 0. Both ends are closed by exec, neither
 *   raises SIGPIPE. The end of file ends the server; it ends too when its parent is another one, which a child
 *   of fork that keeps the socket would hide, and by an alarm when it hangs after its host has died.
 * - A server belongs to one compilation at a time: to the `spare` ones, or to the thread that talks to it. One
 *   whose answer is not whole and well formed is killed with its group and reaped, and never used again.
 * - After MOST_LOST of those in a context, none is started any more.
 * - A child of fork closes its copies of descriptors and neither kills nor waits for what is its parent's.
 *
 * A message is a head and then its bytes: the text of a module, or an object, or a sentence. Both ends are of
 * one machine and one build.
 */
#ifndef DC_BACKENDS_CPU_SERVER_H
#define DC_BACKENDS_CPU_SERVER_H

#include "backends/cpu/llvm.h"

typedef struct dc_servers dc_servers;

/* What a message is. */
enum {
    DC_SERVER_TEXT = 1, /* a request */
    DC_SERVER_OBJECT,   /* answers: what was made, */
    DC_SERVER_BUILD,    /* the compiler's words, */
    DC_SERVER_DEVICE    /* why there is no compiler */
};

#define DC_SERVER_MAGIC 0x31636c6c63706564u /* "depcllc1" */

typedef struct dc_server_head {
    uint64_t magic;
    uint32_t kind;
    uint32_t seconds; /* of a request: that it may take, 0: any time */
    uint64_t bytes;   /* that follow */
} dc_server_head;

/*
 * Finds the program: `wanted`, or the one that is installed with the library. Starts nothing. The strings of
 * conf outlive what is opened. DEVICE where there is no such program.
 */
dc_status dc_servers_open(dc_job *j, const dc_llvm_conf *conf, const char *wanted,
                          dc_servers **out);
void dc_servers_close(dc_servers *s);

/*
 * As dc_llvm_compile; by any number of threads. BUILD too when the process was lost or did not answer within
 * DEEPC_COMPILE_SECONDS; DEVICE when none can be started.
 */
dc_status dc_servers_compile(dc_servers *s, dc_job *j, const char *text, const void **object,
                             size_t *bytes);

/* The program's part: LIBRARY TRIPLE CPU LEVEL as arguments, requests from descriptor 0. Its exit status. */
int dc_server_main(int argc, char **argv);

#endif
