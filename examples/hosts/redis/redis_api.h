/*
 * What this module uses of Redis' interface for modules, version 1 (https://redis.io/docs/reference/modules/): Debian has no
 * redismodule.h. A module exports RedisModule_OnLoad; the first word of its context is the function that gives the others by
 * their names.
 */
#ifndef DEEPC_REDIS_API_H
#define DEEPC_REDIS_API_H

#include <stddef.h>
#include <stdint.h>

typedef struct RedisModuleCtx RedisModuleCtx;
typedef struct RedisModuleString RedisModuleString;
typedef struct RedisModuleKey RedisModuleKey;
typedef struct RedisModuleIO RedisModuleIO;
typedef struct RedisModuleType RedisModuleType;
typedef struct RedisModuleBlockedClient RedisModuleBlockedClient;
typedef struct RedisModuleDigest RedisModuleDigest;

enum {
    REDIS_OK = 0,
    REDIS_ERR = 1,
    REDIS_API_VERSION = 1,
    REDIS_READ = 1, /* of keys */
    REDIS_WRITE = 2,
    REDIS_KEY_EMPTY = 0,
    REDIS_EVENT_SHUTDOWN = 5
};
enum { /* of contexts */
       REDIS_REPLICATED = 1 << 12,
       REDIS_LOADING = 1 << 13,
       REDIS_DENY_BLOCKING = 1 << 21
};

typedef struct RedisModuleEvent {
    uint64_t id, version;
} RedisModuleEvent;

/* A type of values, version 1 of the struct. */
typedef struct redis_type_methods {
    uint64_t version;
    void *(*rdb_load)(RedisModuleIO *, int encoding);
    void (*rdb_save)(RedisModuleIO *, void *value);
    void (*aof_rewrite)(RedisModuleIO *, RedisModuleString *key, void *value);
    size_t (*mem_usage)(const void *value);
    void (*digest)(RedisModuleDigest *, void *value);
    void (*free)(void *value);
} redis_type_methods;

typedef int redis_command(RedisModuleCtx *, RedisModuleString **, int);
typedef void redis_on_event(RedisModuleCtx *, RedisModuleEvent, uint64_t, void *);

/* row(name, result, (arguments)): RedisModule_NAME */
#define REDIS_API(row)                                                                             \
    row(SetModuleAttribs, void, (RedisModuleCtx *, const char *, int, int)) row(                   \
        CreateCommand, int,                                                                        \
        (RedisModuleCtx *, const char *, redis_command *, const char *, int, int,                  \
         int)) row(CreateDataType, RedisModuleType *,                                              \
                   (RedisModuleCtx *, const char *, int, redis_type_methods *))                    \
        row(SubscribeToServerEvent, int, (RedisModuleCtx *, RedisModuleEvent, redis_on_event *))   \
            row(GetContextFlags, int, (RedisModuleCtx *)) row(WrongArity, int, (RedisModuleCtx *)) \
                row(ReplyWithError, int, (RedisModuleCtx *, const char *)) row(                    \
                    ReplyWithSimpleString, int,                                                    \
                    (RedisModuleCtx *, const char *)) row(ReplyWithArray, int,                     \
                                                          (RedisModuleCtx *, long))                \
                    row(ReplyWithLongLong, int, (RedisModuleCtx *, long long)) row(                \
                        ReplyWithStringBuffer, int, (RedisModuleCtx *, const char *, size_t))      \
                        row(ReplicateVerbatim, int, (RedisModuleCtx *)) row(                       \
                            StringPtrLen, const char *, (const RedisModuleString *, size_t *))     \
                            row(OpenKey, void *, (RedisModuleCtx *, RedisModuleString *, int))     \
                                row(CloseKey, void, (RedisModuleKey *)) row(KeyType, int,          \
                                                                            (RedisModuleKey *))    \
                                    row(ModuleTypeGetType, RedisModuleType *, (RedisModuleKey *))  \
                                        row(ModuleTypeGetValue, void *, (RedisModuleKey *)) row(   \
                                            ModuleTypeSetValue, int,                               \
                                            (RedisModuleKey *, RedisModuleType *, void *))         \
                                            row(SaveStringBuffer, void,                            \
                                                (RedisModuleIO *, const char *,                    \
                                                 size_t)) row(LoadStringBuffer, char *,            \
                                                              (RedisModuleIO *, size_t *))         \
                                                row(EmitAOF, void,                                 \
                                                    (RedisModuleIO *, const char *, const char *,  \
                                                     ...))                                         \
                                                    row(BlockClient, RedisModuleBlockedClient *,   \
                                                        (RedisModuleCtx *, redis_command *,        \
                                                         redis_command *,                          \
                                                         void (*)(RedisModuleCtx *, void *),       \
                                                         long long))                               \
                                                        row(UnblockClient, int,                    \
                                                            (RedisModuleBlockedClient *, void *))  \
                                                            row(GetBlockedClientPrivateData,       \
                                                                void *, (RedisModuleCtx *))        \
                                                                row(TryAlloc, void *, (size_t))    \
                                                                    row(Free, void, (void *))

#define REDIS_DECLARE(name, result, args) extern result(*RedisModule_##name) args;
REDIS_API(REDIS_DECLARE)

#endif
