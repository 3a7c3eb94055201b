#include "formats/pickle.h"

#include "core/base/path.h"
#include "core/base/shown.h"

#include <inttypes.h>
#include <string.h>

void dc_pickle_free(dc_pickle *p)
{
    for (uint32_t i = 0; i < p->node.n; i++)
        DC_VEC_FREE(p->node.at[i].item);
    DC_VEC_FREE(p->node);
    dc_arena_free(&p->arena);
}

enum opcode {
    MARK = '(',
    STOP = '.',
    POP = '0',
    POP_MARK = '1',
    DUP = '2',
    BININT = 'J',
    BININT1 = 'K',
    BININT2 = 'M',
    NONE = 'N',
    BINPERSID = 'Q',
    REDUCE = 'R',
    BINSTRING = 'T',
    SHORT_BINSTRING = 'U',
    BINUNICODE = 'X',
    APPEND = 'a',
    BUILD = 'b',
    GLOBAL = 'c',
    DICT = 'd',
    EMPTY_DICT = '}',
    APPENDS = 'e',
    BINGET = 'h',
    LONG_BINGET = 'j',
    LIST = 'l',
    EMPTY_LIST = ']',
    BINPUT = 'q',
    LONG_BINPUT = 'r',
    SETITEM = 's',
    TUPLE = 't',
    EMPTY_TUPLE = ')',
    SETITEMS = 'u',
    BINFLOAT = 'G',
    BINBYTES = 'B',
    SHORT_BINBYTES = 'C',
    PROTO = 0x80,
    NEWOBJ = 0x81,
    TUPLE1 = 0x85,
    TUPLE2 = 0x86,
    TUPLE3 = 0x87,
    NEWTRUE = 0x88,
    NEWFALSE = 0x89,
    LONG1 = 0x8a,
    LONG4 = 0x8b,
    SHORT_BINUNICODE = 0x8c,
    BINUNICODE8 = 0x8d,
    BINBYTES8 = 0x8e,
    EMPTY_SET = 0x8f,
    ADDITEMS = 0x90,
    FROZENSET = 0x91,
    STACK_GLOBAL = 0x93,
    MEMOIZE = 0x94,
    FRAME = 0x95,
    BYTEARRAY8 = 0x96
};

#define MARKED UINT32_MAX /* on the stack, instead of a node */

typedef struct machine {
    dc_job *job;
    const char *path;
    dc_pickle *p;
    const unsigned char *bytes;
    size_t n, at;
    uint64_t copied; /* items of tables that tables were made of: each stands in the file once */
    bool *truncated;
    dc_pickle_known *known;
    DC_VEC(dc_pickle_ref) stack;
    DC_VEC(dc_pickle_ref) memo; /* MARKED: nothing there */
} machine;

static void free_machine(void *at)
{
    machine *m = at;
    DC_VEC_FREE(m->stack);
    DC_VEC_FREE(m->memo);
}

#define REFUSE(m, ...) dc_path_fail((m)->job, DC_ERR_FORMAT, (m)->path, __VA_ARGS__)

static dc_status refuse_stack(machine *m)
{
    return REFUSE(m, "the pickle is damaged: at byte %zu its stack has not what is wanted", m->at);
}

/* ---- bytes ------------------------------------------------------------------------------------ */

static dc_status take(machine *m, uint64_t n, const unsigned char **out)
{
    *out = m->bytes; /* compilers do not see that failures leave the function */
    if (n > m->n - m->at) {
        *m->truncated = true;
        return REFUSE(m, "truncated: the file ends within a pickle");
    }
    *out = m->bytes + m->at;
    m->at += (size_t)n;
    return DC_OK;
}

static dc_status take_number(machine *m, int bytes, uint64_t *out)
{
    const unsigned char *p;
    *out = 0;
    DC_TRY(take(m, (uint64_t)bytes, &p));
    while (bytes-- > 0)
        *out = *out << 8 | p[bytes];
    return DC_OK;
}

/* ---- nodes and the stack ---------------------------------------------------------------------- */

static dc_pickle_node *node(machine *m, dc_pickle_ref r)
{
    return &m->p->node.at[r];
}

static void push(machine *m, dc_pickle_ref r)
{
    DC_PUSH(m->stack, r);
}

static dc_pickle_ref make(machine *m, dc_pickle_node v)
{
    DC_PUSH(m->p->node, v);
    return m->p->node.n - 1;
}

static void push_new(machine *m, dc_pickle_node v)
{
    const dc_pickle_ref r = make(m, v);
    push(m, r);
}

static dc_status pop(machine *m, dc_pickle_ref *out)
{
    *out = 0;
    if (m->stack.n == 0 || m->stack.at[m->stack.n - 1] == MARKED)
        return refuse_stack(m);
    *out = m->stack.at[--m->stack.n];
    return DC_OK;
}

static dc_status top(machine *m, dc_pickle_ref *out)
{
    DC_TRY(pop(m, out));
    m->stack.n++;
    return DC_OK;
}

/* Where what stands above the last mark begins. */
static dc_status find_mark(machine *m, uint32_t *first)
{
    *first = 1;
    for (uint32_t i = m->stack.n; i-- > 0;)
        if (m->stack.at[i] == MARKED) {
            *first = i + 1;
            return DC_OK;
        }
    return refuse_stack(m);
}

static void add_item(machine *m, dc_pickle_ref to, dc_pickle_ref item)
{
    dc_pickle_node *n = node(m, to);
    DC_PUSH(n->item, item);
}

/* The values from `first` on become items of a node; the mark goes, too. */
static void add_items(machine *m, dc_pickle_ref to, uint32_t first)
{
    for (uint32_t i = first; i < m->stack.n; i++)
        add_item(m, to, m->stack.at[i]);
    m->stack.n = first - 1;
}

/* ---- groups of opcodes ------------------------------------------------------------------------ */

static dc_status push_text(machine *m, int length_bytes)
{
    uint64_t n;
    const unsigned char *p;
    DC_TRY(take_number(m, length_bytes, &n));
    DC_TRY(take(m, n, &p));
    push_new(m, (dc_pickle_node){.kind = DC_PICKLE_TEXT, .text = (const char *)p, .n = n});
    return DC_OK;
}

static dc_status push_long(machine *m, int length_bytes)
{
    uint64_t n, v = 0;
    const unsigned char *p;
    DC_TRY(take_number(m, length_bytes, &n));
    DC_TRY(take(m, n, &p));
    if (n > 8) {
        const bool minus = (p[n - 1] & 0x80) != 0;
        double f = 0;
        for (uint64_t i = n; i-- > 0;)
            f = f * 256 + (minus ? (unsigned char)~p[i] : p[i]);
        push_new(m, (dc_pickle_node){.kind = DC_PICKLE_BIG, .f = minus ? -f - 1 : f});
        return DC_OK;
    }
    for (uint64_t i = n; i-- > 0;)
        v = v << 8 | p[i];
    if (n > 0 && n < 8 && (p[n - 1] & 0x80) != 0)
        v |= UINT64_MAX << 8 * n;
    push_new(m, (dc_pickle_node){.kind = DC_PICKLE_INT, .i = (int64_t)v});
    return DC_OK;
}

static dc_status push_int(machine *m, int bytes)
{
    uint64_t v;
    DC_TRY(take_number(m, bytes, &v));
    const int64_t i = bytes == 4 ? (int32_t)(uint32_t)v : (int64_t)v;
    push_new(m, (dc_pickle_node){.kind = DC_PICKLE_INT, .i = i});
    return DC_OK;
}

static dc_status push_real(machine *m)
{
    const unsigned char *p;
    dc_pickle_node v = {.kind = DC_PICKLE_REAL};
    uint64_t u = 0;
    DC_TRY(take(m, 8, &p));
    for (int i = 0; i < 8; i++)
        u = u << 8 | p[i]; /* big-endian, alone among the opcodes */
    memcpy(&v.f, &u, sizeof v.f);
    push_new(m, v);
    return DC_OK;
}

/* A list of the values above the mark, or of the `count` topmost ones. */
static dc_status push_list(machine *m, dc_pickle_kind kind, int count)
{
    uint32_t first = m->stack.n - (uint32_t)count;
    dc_pickle_ref r;
    if (count < 0)
        DC_TRY(find_mark(m, &first));
    for (int i = 0; i < count; i++) {
        if ((uint32_t)i >= m->stack.n || m->stack.at[m->stack.n - 1 - (uint32_t)i] == MARKED)
            return refuse_stack(m);
    }
    if (kind == DC_PICKLE_TABLE && (m->stack.n - first) % 2 != 0)
        return refuse_stack(m);
    r = make(m, (dc_pickle_node){.kind = kind});
    for (uint32_t i = first; i < m->stack.n; i++)
        add_item(m, r, m->stack.at[i]);
    m->stack.n = count < 0 ? first - 1 : first;
    push(m, r);
    return DC_OK;
}

/* What stands above the mark goes into the list or table below it. */
static dc_status extend(machine *m, dc_pickle_kind kind)
{
    uint32_t first;
    DC_TRY(find_mark(m, &first));
    if (first < 2 || m->stack.at[first - 2] == MARKED)
        return refuse_stack(m);
    const dc_pickle_ref to = m->stack.at[first - 2];
    if (node(m, to)->kind != kind || (kind == DC_PICKLE_TABLE && (m->stack.n - first) % 2 != 0))
        return refuse_stack(m);
    add_items(m, to, first);
    return DC_OK;
}

static dc_status append(machine *m, dc_pickle_kind kind)
{
    dc_pickle_ref key = 0, value, to;
    DC_TRY(pop(m, &value));
    if (kind == DC_PICKLE_TABLE)
        DC_TRY(pop(m, &key));
    DC_TRY(top(m, &to));
    if (node(m, to)->kind != kind)
        return refuse_stack(m);
    if (kind == DC_PICKLE_TABLE)
        add_item(m, to, key);
    add_item(m, to, value);
    return DC_OK;
}

static dc_status put_memo(machine *m, uint64_t index)
{
    dc_pickle_ref r;
    DC_TRY(top(m, &r));
    if (index > m->n) /* there are no more opcodes */
        return REFUSE(m, "the pickle is damaged: number %" PRIu64 " of its memo", index);
    while (m->memo.n <= index)
        DC_PUSH(m->memo, MARKED);
    m->memo.at[index] = r;
    return DC_OK;
}

static dc_status get_memo(machine *m, int bytes)
{
    uint64_t index;
    DC_TRY(take_number(m, bytes, &index));
    if (index >= m->memo.n || m->memo.at[index] == MARKED)
        return REFUSE(m, "the pickle is damaged: number %" PRIu64 " of its memo is not set", index);
    push(m, m->memo.at[index]);
    return DC_OK;
}

static dc_status put_memo_of(machine *m, int bytes)
{
    uint64_t index;
    DC_TRY(take_number(m, bytes, &index));
    return put_memo(m, index);
}

/* Python 2 called the module of what needs no import otherwise, and torch.save still does. */
static const char *python3(const char *module, size_t *n)
{
    static const char old[] = "__builtin__", now[] = "builtins";
    if (*n != sizeof old - 1 || memcmp(module, old, *n) != 0)
        return module;
    *n = sizeof now - 1;
    return now;
}

/* "module name"; refused where it is not known. */
static dc_status push_global(machine *m, const char *module, size_t nmodule, const char *name,
                             size_t nname)
{
    module = python3(module, &nmodule);
    char *text = dc_arena_alloc(&m->p->arena, nmodule + nname + 2);
    memcpy(text, module, nmodule);
    text[nmodule] = ' ';
    memcpy(text + nmodule + 1, name, nname);
    if (strlen(text) != nmodule + nname + 1 || !m->known(text)) {
        text[strlen(text) > nmodule ? nmodule : 0] = '.';
        return REFUSE(m,
                      "the pickle refers to '%s', and nothing of a file is run; in Python, "
                      "torch.save(model.state_dict(), path) writes tensors alone",
                      dc_show_name(text).s);
    }
    push_new(m, (dc_pickle_node){.kind = DC_PICKLE_GLOBAL, .text = text, .n = strlen(text)});
    return DC_OK;
}

/* Two lines. */
static dc_status read_global(machine *m)
{
    const char *line[2];
    size_t n[2];
    for (int i = 0; i < 2; i++) {
        const unsigned char *from = m->bytes + m->at, *p;
        const unsigned char *end = m->n > m->at ? memchr(from, '\n', m->n - m->at) : NULL;
        DC_TRY(take(m, end != NULL ? (uint64_t)(end - from) + 1 : m->n - m->at + 1, &p));
        line[i] = (const char *)from;
        n[i] = (size_t)(end - from);
    }
    return push_global(m, line[0], n[0], line[1], n[1]);
}

static dc_status stack_global(machine *m)
{
    dc_pickle_ref name, module;
    DC_TRY(pop(m, &name));
    DC_TRY(pop(m, &module));
    const dc_pickle_node *a = node(m, module), *b = node(m, name);
    if (a->kind != DC_PICKLE_TEXT || b->kind != DC_PICKLE_TEXT)
        return refuse_stack(m);
    return push_global(m, a->text, (size_t)a->n, b->text, (size_t)b->n);
}

/* A table of what OrderedDict or Counter was called with: nothing, a table, or a list of pairs. */
static dc_status make_table(machine *m, const char *f, dc_pickle_ref arguments)
{
    const dc_pickle_ref r = make(m, (dc_pickle_node){.kind = DC_PICKLE_TABLE});
    push(m, r);
    if (node(m, arguments)->item.n == 0)
        return DC_OK;
    const dc_pickle_ref from = node(m, arguments)->item.at[0];
    const bool table = node(m, from)->kind == DC_PICKLE_TABLE;
    if (node(m, arguments)->item.n > 1 || (!table && (node(m, from)->kind != DC_PICKLE_LIST ||
                                                      strcmp(f, "collections Counter") == 0)))
        return REFUSE(m, "the pickle makes %s of other values",
                      strcmp(f, "collections Counter") == 0 ? "a Counter" : "an OrderedDict");
    m->copied += node(m, from)->item.n;
    if (m->copied > m->n)
        return REFUSE(m, "the pickle makes tables of more values than it has");
    for (uint32_t i = 0; i < node(m, from)->item.n; i++) {
        const dc_pickle_ref item = node(m, from)->item.at[i];
        if (table) {
            add_item(m, r, item);
            continue;
        }
        if (node(m, item)->kind != DC_PICKLE_LIST || node(m, item)->item.n != 2)
            return REFUSE(m, "the pickle makes an OrderedDict of other values");
        add_item(m, r, node(m, item)->item.at[0]);
        add_item(m, r, node(m, item)->item.at[1]);
    }
    return DC_OK;
}

/* A call of a known global with a list of arguments: kept, not run. */
static dc_status call(machine *m)
{
    dc_pickle_ref arguments, f;
    DC_TRY(pop(m, &arguments));
    DC_TRY(pop(m, &f));
    if (node(m, f)->kind != DC_PICKLE_GLOBAL || node(m, arguments)->kind != DC_PICKLE_LIST)
        return refuse_stack(m);
    const char *name = node(m, f)->text;
    if (strcmp(name, "collections OrderedDict") == 0 || strcmp(name, "collections Counter") == 0)
        return make_table(m, name, arguments);
    const dc_pickle_ref r = make(m, (dc_pickle_node){.kind = DC_PICKLE_CALL});
    add_item(m, r, f);
    add_item(m, r, arguments);
    push(m, r);
    return DC_OK;
}

/* Attributes of an object: those that torch.save writes of dictionaries and tensors say nothing of their values. */
static dc_status build(machine *m)
{
    dc_pickle_ref state, object;
    DC_TRY(pop(m, &state));
    DC_TRY(top(m, &object));
    const dc_pickle_kind kind = node(m, object)->kind;
    return kind == DC_PICKLE_TABLE || kind == DC_PICKLE_CALL ? DC_OK : refuse_stack(m);
}

static dc_status persistent(machine *m)
{
    dc_pickle_ref id;
    DC_TRY(pop(m, &id));
    const dc_pickle_ref r = make(m, (dc_pickle_node){.kind = DC_PICKLE_PERSISTENT});
    add_item(m, r, id);
    push(m, r);
    return DC_OK;
}

static dc_status pop_mark(machine *m)
{
    uint32_t first;
    DC_TRY(find_mark(m, &first));
    m->stack.n = first - 1;
    return DC_OK;
}

static dc_status check_protocol(machine *m)
{
    uint64_t protocol;
    DC_TRY(take_number(m, 1, &protocol));
    return protocol >= 2 && protocol <= 5
               ? DC_OK
               : REFUSE(m, "a pickle of protocol %" PRIu64 ", 2 to 5 are read", protocol);
}

static dc_status pop_one(machine *m)
{
    if (m->stack.n == 0)
        return refuse_stack(m);
    m->stack.n--; /* a mark, too */
    return DC_OK;
}

static dc_status duplicate(machine *m)
{
    dc_pickle_ref r;
    DC_TRY(top(m, &r));
    push(m, r);
    return DC_OK;
}

static dc_status step(machine *m, unsigned char code)
{
    uint64_t unused;
    switch ((enum opcode)code) {
    case MARK:
        push(m, MARKED);
        return DC_OK;
    case POP:
        return pop_one(m);
    case POP_MARK:
        return pop_mark(m);
    case DUP:
        return duplicate(m);
    case BININT:
        return push_int(m, 4);
    case BININT1:
        return push_int(m, 1);
    case BININT2:
        return push_int(m, 2);
    case LONG1:
        return push_long(m, 1);
    case LONG4:
        return push_long(m, 4);
    case BINFLOAT:
        return push_real(m);
    case NONE:
        push_new(m, (dc_pickle_node){.kind = DC_PICKLE_NONE});
        return DC_OK;
    case NEWTRUE:
    case NEWFALSE:
        push_new(m, (dc_pickle_node){.kind = DC_PICKLE_BOOL, .b = code == NEWTRUE});
        return DC_OK;
    case SHORT_BINSTRING:
    case SHORT_BINUNICODE:
    case SHORT_BINBYTES:
        return push_text(m, 1);
    case BINSTRING:
    case BINUNICODE:
    case BINBYTES:
        return push_text(m, 4);
    case BINUNICODE8:
    case BINBYTES8:
    case BYTEARRAY8:
        return push_text(m, 8);
    case EMPTY_LIST:
    case EMPTY_TUPLE:
    case EMPTY_SET:
        push_new(m, (dc_pickle_node){.kind = DC_PICKLE_LIST});
        return DC_OK;
    case EMPTY_DICT:
        push_new(m, (dc_pickle_node){.kind = DC_PICKLE_TABLE});
        return DC_OK;
    case LIST:
    case TUPLE:
    case FROZENSET:
        return push_list(m, DC_PICKLE_LIST, -1);
    case DICT:
        return push_list(m, DC_PICKLE_TABLE, -1);
    case TUPLE1:
        return push_list(m, DC_PICKLE_LIST, 1);
    case TUPLE2:
        return push_list(m, DC_PICKLE_LIST, 2);
    case TUPLE3:
        return push_list(m, DC_PICKLE_LIST, 3);
    case APPEND:
        return append(m, DC_PICKLE_LIST);
    case SETITEM:
        return append(m, DC_PICKLE_TABLE);
    case APPENDS:
    case ADDITEMS:
        return extend(m, DC_PICKLE_LIST);
    case SETITEMS:
        return extend(m, DC_PICKLE_TABLE);
    case BINGET:
        return get_memo(m, 1);
    case LONG_BINGET:
        return get_memo(m, 4);
    case BINPUT:
        return put_memo_of(m, 1);
    case LONG_BINPUT:
        return put_memo_of(m, 4);
    case MEMOIZE:
        return put_memo(m, m->memo.n);
    case GLOBAL:
        return read_global(m);
    case STACK_GLOBAL:
        return stack_global(m);
    case REDUCE:
    case NEWOBJ:
        return call(m);
    case BUILD:
        return build(m);
    case BINPERSID:
        return persistent(m);
    case PROTO:
        return check_protocol(m);
    case FRAME:
        return take_number(m, 8, &unused);
    case STOP:
        return DC_OK;
    }
    return REFUSE(m, "the pickle has the opcode 0x%02x, which is not read", code);
}

static dc_status run(machine *m, dc_pickle_ref *root)
{
    const unsigned char *p;
    for (uint32_t i = 0;; i++) {
        if (i % 1024 == 0)
            DC_TRY(dc_job_ended(m->job));
        DC_TRY(take(m, 1, &p));
        if (*p == STOP)
            break;
        DC_TRY(step(m, *p));
    }
    DC_TRY(pop(m, root));
    return m->stack.n == 0 ? DC_OK : refuse_stack(m);
}

dc_status dc_pickle_read(dc_job *j, const char *path, dc_pickle *p, const unsigned char *bytes,
                         size_t n, dc_pickle_known *known, size_t *end, bool *truncated,
                         dc_pickle_ref *root)
{
    machine *m = DC_NEW(&j->scratch, machine);
    *m = (machine){.job = j, .path = path, .p = p, .bytes = bytes, .n = n, .known = known};
    m->truncated = truncated;
    dc_job_defer(j, free_machine, m);
    const dc_status status = run(m, root);
    *end = m->at;
    dc_job_keep(j, m);
    free_machine(m);
    return status;
}
