/*
 * A Redis module: keys that are functions which a script exported.
 *
 *     DEEPC.LOAD key FILE
 *     DEEPC.RUN key [BYTES] [VARIANT n] input ...
 *     DEEPC.INFO key
 *
 *     redis-server --loadmodule ./deepc_redis.so [MEMORY MIB] [INPUTS MIB] [TIMEOUT MS] [QUEUE N] [THREADS N]
 *
 * Commands give their work to a thread and block their client; Redis goes on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "module.h"

#define REDIS_DEFINE(name, result, args) result(*RedisModule_##name) args;
REDIS_API(REDIS_DEFINE)

static RedisModuleType *type;

static const char wrong_type[] =
    "WRONGTYPE Operation against a key holding the wrong kind of value";

/* ---- replies, on Redis' thread ---- */

static void free_job(RedisModuleCtx *ctx, void *j)
{
    (void)ctx;
    worker_free(j);
}

static int reply_blobs(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    job *j = RedisModule_GetBlockedClientPrivateData(ctx);
    (void)argv;
    (void)argc;
    if (*j->error)
        return RedisModule_ReplyWithError(ctx, j->error);
    RedisModule_ReplyWithArray(ctx, (long)j->nout);
    for (size_t i = 0; i < j->nout; i++)
        RedisModule_ReplyWithStringBuffer(ctx, j->out[i].at, j->out[i].n);
    return REDIS_OK;
}

/* The model becomes the key's value, if the key is still free or another model. */
static int set_key(RedisModuleCtx *ctx, RedisModuleString *name, model *m)
{
    RedisModuleKey *key = RedisModule_OpenKey(ctx, name, REDIS_READ | REDIS_WRITE);
    bool ours =
        RedisModule_KeyType(key) == REDIS_KEY_EMPTY || RedisModule_ModuleTypeGetType(key) == type;
    if (ours) {
        m->holders++;
        RedisModule_ModuleTypeSetValue(key, type, m);
    }
    RedisModule_CloseKey(key);
    if (!ours)
        return RedisModule_ReplyWithError(ctx, wrong_type);
    RedisModule_ReplicateVerbatim(ctx);
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

static int reply_loaded(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    job *j = RedisModule_GetBlockedClientPrivateData(ctx);
    (void)argc;
    if (*j->error)
        return RedisModule_ReplyWithError(ctx, j->error);
    return set_key(ctx, argv[1], j->m);
}

/* ---- commands ---- */

/* Blocks the client until the job is done; without time limit, since the worker has one. */
static int wait_for(RedisModuleCtx *ctx, job *j, redis_command *reply)
{
    if (j == NULL)
        return RedisModule_ReplyWithError(ctx, "ERR no memory");
    if (RedisModule_GetContextFlags(ctx) & REDIS_DENY_BLOCKING) {
        worker_free(j);
        return RedisModule_ReplyWithError(ctx,
                                          "ERR not inside MULTI or a script: it takes a while");
    }
    j->client = RedisModule_BlockClient(ctx, reply, NULL, free_job, 0);
    if (worker_add(j))
        return REDIS_OK;
    say(j->error, "too many calls are waiting");
    RedisModule_UnblockClient(j->client, j);
    return REDIS_OK;
}

static int load_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    size_t n;
    if (argc != 3)
        return RedisModule_WrongArity(ctx);
    const char *path = RedisModule_StringPtrLen(argv[2], &n);
    if (strlen(path) != n || *path != '/')
        return RedisModule_ReplyWithError(ctx, "ERR the path of the file has to be absolute");
    model *m = model_new(path, n);
    if (m == NULL)
        return RedisModule_ReplyWithError(ctx, "ERR no memory");
    /* From an append-only file or a master nobody waits: what is wrong with the file is told by DEEPC.RUN. */
    int result = RedisModule_GetContextFlags(ctx) & (REDIS_REPLICATED | REDIS_LOADING)
                     ? set_key(ctx, argv[1], m)
                     : wait_for(ctx, job_new(JOB_LOAD, m, 0), reply_loaded);
    model_leave(m);
    return result;
}

/* The model of a key; NULL: the client has been told. */
static model *find(RedisModuleCtx *ctx, RedisModuleString *name)
{
    RedisModuleKey *key = RedisModule_OpenKey(ctx, name, REDIS_READ);
    model *m = NULL;
    if (key == NULL)
        RedisModule_ReplyWithError(ctx, "ERR there is no such key");
    else if (RedisModule_ModuleTypeGetType(key) != type)
        RedisModule_ReplyWithError(ctx, wrong_type);
    else
        m = RedisModule_ModuleTypeGetValue(key);
    if (key != NULL)
        RedisModule_CloseKey(key);
    return m;
}

static int run_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    if (argc < 2 || argc > 2 + MOST_WORDS)
        return RedisModule_WrongArity(ctx);
    model *m = find(ctx, argv[1]);
    if (m == NULL)
        return REDIS_OK;
    job *j = job_new(JOB_RUN, m, (size_t)argc - 2);
    size_t bytes = 0, n;
    for (int i = 2; i < argc; i++) {
        RedisModule_StringPtrLen(argv[i], &n);
        bytes += n;
    }
    if (j != NULL && !worker_hold(j, bytes)) {
        worker_free(j);
        return RedisModule_ReplyWithError(ctx, "ERR the inputs that wait have too many bytes");
    }
    for (int i = 2; j != NULL && i < argc; i++) {
        blob *b = &j->in[i - 2];
        const char *at = RedisModule_StringPtrLen(argv[i], &b->n);
        if ((b->at = RedisModule_TryAlloc(b->n + 1)) == NULL) {
            worker_free(j);
            j = NULL;
        } else {
            memcpy(b->at, at, b->n);
            b->at[b->n] = 0;
        }
    }
    return wait_for(ctx, j, reply_blobs);
}

static int info_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    if (argc != 2)
        return RedisModule_WrongArity(ctx);
    model *m = find(ctx, argv[1]);
    return m == NULL ? REDIS_OK : wait_for(ctx, job_new(JOB_INFO, m, 0), reply_blobs);
}

/* ---- the type: of a function its path is kept ---- */

static void *rdb_load(RedisModuleIO *io, int encoding)
{
    size_t n;
    char *path = encoding == 0 ? RedisModule_LoadStringBuffer(io, &n) : NULL;
    if (path == NULL)
        return NULL;
    model *m = model_new(path, n);
    RedisModule_Free(path);
    return m;
}

static void rdb_save(RedisModuleIO *io, void *m)
{
    RedisModule_SaveStringBuffer(io, ((model *)m)->path, strlen(((model *)m)->path));
}

static void aof_rewrite(RedisModuleIO *io, RedisModuleString *key, void *m)
{
    RedisModule_EmitAOF(io, "DEEPC.LOAD", "sc", key, ((model *)m)->path);
}

static size_t mem_usage(const void *m)
{
    return sizeof(model) + ((const model *)m)->bytes;
}

static void free_value(void *m)
{
    model_leave(m);
}

/* ---- the module ---- */

/* deepc's memory counts as Redis', and what is not there is an error of a command, not the end of the server. */
static void *allocate(void *unused, void *block, size_t old_size, size_t new_size)
{
    void *p = NULL;
    (void)unused;
    if (new_size > 0 && (p = RedisModule_TryAlloc(new_size)) == NULL)
        return NULL;
    if (block != NULL) {
        if (p != NULL)
            memcpy(p, block, old_size < new_size ? old_size : new_size);
        RedisModule_Free(block);
    }
    return p;
}

static void on_shutdown(RedisModuleCtx *ctx, RedisModuleEvent event, uint64_t sub, void *data)
{
    (void)ctx;
    (void)event;
    (void)sub;
    (void)data;
    worker_stop();
}

static bool read_settings(worker_settings *s, RedisModuleString **argv, int argc, char *error)
{
    for (int i = 0; i < argc; i += 2) {
        size_t n;
        char *end;
        const char *name = RedisModule_StringPtrLen(argv[i], &n);
        long long v =
            i + 1 < argc ? strtoll(RedisModule_StringPtrLen(argv[i + 1], &n), &end, 10) : -1;
        if (v < 0 || *end != 0 || v > 1 << 30)
            return say(error, "%.40s wants a number", name), false;
        if (strcasecmp(name, "MEMORY") == 0)
            s->memory = (size_t)v << 20;
        else if (strcasecmp(name, "INPUTS") == 0)
            s->inputs = (size_t)v << 20;
        else if (strcasecmp(name, "TIMEOUT") == 0)
            s->timeout_ms = v;
        else if (strcasecmp(name, "QUEUE") == 0)
            s->queue = v;
        else if (strcasecmp(name, "THREADS") == 0)
            s->threads = (int)v;
        else
            return say(error, "what is %.40s? There are MEMORY, INPUTS, TIMEOUT, QUEUE and THREADS",
                       name),
                   false;
    }
    return true;
}

/* The functions of REDIS_API by their names; false: this Redis is too old. */
static bool find_api(RedisModuleCtx *ctx)
{
    int (*get)(const char *, void *) = NULL;
    memcpy(&get, ctx, sizeof get);
#define REDIS_GET(name, result, args)                               \
    if (get("RedisModule_" #name, &RedisModule_##name) != REDIS_OK) \
        return false;
    REDIS_API(REDIS_GET)
    return true;
}

__attribute__((visibility("default"))) int RedisModule_OnLoad(RedisModuleCtx *,
                                                              RedisModuleString **, int);

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    redis_type_methods methods = {1, rdb_load, rdb_save, aof_rewrite, mem_usage, NULL, free_value};
    worker_settings s = {.memory = (size_t)512 << 20,
                         .inputs = (size_t)64 << 20,
                         .timeout_ms = 1000,
                         .queue = 256,
                         .threads = 1,
                         .alloc = allocate};
    RedisModuleEvent shutdown = {REDIS_EVENT_SHUTDOWN, 1};
    char error[TEXT];
    if (!find_api(ctx))
        return REDIS_ERR;
    RedisModule_SetModuleAttribs(ctx, "deepc", 1, REDIS_API_VERSION);
    if (!read_settings(&s, argv, argc, error) || !worker_start(&s, error)) {
        fprintf(stderr, "deepc_redis: %s\n", error);
        return REDIS_ERR;
    }
    type = RedisModule_CreateDataType(ctx, "deepc-fcn", 0, &methods);
    if (type == NULL ||
        RedisModule_CreateCommand(ctx, "deepc.load", load_command, "write deny-oom admin", 1, 1,
                                  1) != REDIS_OK ||
        RedisModule_CreateCommand(ctx, "deepc.run", run_command, "readonly deny-oom", 1, 1, 1) !=
            REDIS_OK ||
        RedisModule_CreateCommand(ctx, "deepc.info", info_command, "readonly", 1, 1, 1) !=
            REDIS_OK ||
        RedisModule_SubscribeToServerEvent(ctx, shutdown, on_shutdown) != REDIS_OK) {
        worker_stop();
        return REDIS_ERR;
    }
    return REDIS_OK;
}
