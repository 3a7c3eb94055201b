/*
 * Messages of JSON-RPC on a stream of bytes, as language servers have them: lines of a header, an empty line, then as
 * many bytes as Content-Length says.
 *
 *   Content-Length: 17\r\n
 *   \r\n
 *   {"jsonrpc":"2.0"}
 *
 * Bytes come in pieces of any size. What is no header is told once, and left out up to the next Content-Length; a message
 * of more than DC_RPC_MOST bytes is left out whole.
 */
#ifndef DC_EXTRAS_EDITORS_RPC_H
#define DC_EXTRAS_EDITORS_RPC_H

#include "core/base/vec.h"

enum { DC_RPC_MOST = 64 << 20, DC_RPC_HEADER = 4096 };

typedef struct dc_rpc {
    dc_text in; /* what has come and is not taken yet, from `at` on */
    size_t at;
    uint64_t skip; /* bytes of a message that is left out, still to come */
    bool lost;     /* looks for the next Content-Length */
} dc_rpc;

typedef enum dc_rpc_got {
    DC_RPC_MORE, /* more bytes are needed */
    DC_RPC_MESSAGE,
    DC_RPC_BAD /* something is left out: `why` */
} dc_rpc_got;

/* At most DC_RPC_MOST + DC_RPC_HEADER bytes are kept where everything is taken before more is added. */
void dc_rpc_add(dc_rpc *r, const char *bytes, size_t n);
/* *text: good until more is added. */
dc_rpc_got dc_rpc_take(dc_rpc *r, const char **text, size_t *n, char why[96]);
void dc_rpc_free(dc_rpc *r);

/* Appends the message with its header. */
void dc_rpc_print(dc_text *out, const char *text, size_t n);

#endif
