/*
 * `deepc language-server`: the Language Server Protocol 3.17 on standard input and output. What it answers is decided by
 * extras/editors/language/; here is the loop that reads, writes, waits and runs checks (extras/editors/language_check.h).
 */
#ifndef DC_EXTRAS_EDITORS_LANGUAGE_SERVER_H
#define DC_EXTRAS_EDITORS_LANGUAGE_SERVER_H

/* Behind the word language-server; the status of the process. */
int dc_language_server_main(int argc, char **argv);

#endif
