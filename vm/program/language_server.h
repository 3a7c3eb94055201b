/*
 * `deepc language-server`: the Language Server Protocol 3.17 on standard input and output. What it answers is decided by
 * stdlib/language/; here is the loop that reads, writes, waits and runs checks (vm/program/language_check.h).
 */
#ifndef DC_VM_PROGRAM_LANGUAGE_SERVER_H
#define DC_VM_PROGRAM_LANGUAGE_SERVER_H

/* Behind the word language-server; the status of the process. */
int dc_language_server_main(int argc, char **argv);

#endif
