#include "jit/rewrite/rules.h"

#include "jit/rewrite/one_hot_sum.h"
#include "jit/rewrite/online_softmax.h"
#include "jit/rewrite/scatter_layout.h"
#include "jit/rewrite/split_conv.h"
#include "jit/rewrite/split_reduction.h"

typedef enum devices { ANY, CPU, SIMT } devices;

static const struct {
    dc_ref (*rule)(const dc_rule_at *at);
    devices on;
} rules[] = {
#define RULE(id, on, help) {dc_rule_##id, on},
#include "jit/rewrite/rules.def"
};

/* The node as it was. */
static dc_ref copied(const dc_rule_at *at)
{
    const dc_node *n = dc_node_at(at->f, at->r);
    const dc_type t = dc_node_type(at->f, at->r);
    return dc_graph_make(at->to, n->op, at->in, n->nin, n->attr, n->nattr, &t);
}

dc_ref dc_rule_attention(const dc_rule_at *at)
{
    return dc_attention_place_of(at->attention, at->r) != DC_ATTENTION_NOT ? copied(at) : 0;
}

dc_ref dc_rule_scatter(const dc_rule_at *at)
{
    const dc_node *n = dc_node_at(at->f, at->r);
    return dc_op_accumulates((dc_op)n->op)
               ? dc_scatter_layout(at->to, n, at->in, at->groups != NULL)
               : 0;
}

dc_ref dc_rule_online_softmax(const dc_rule_at *at)
{
    return dc_online_softmax(at->to, at->f, at->r, at->map);
}

dc_ref dc_rule_one_hot_sum(const dc_rule_at *at)
{
    return dc_one_hot_sum(at->to, at->f, at->r, at->map);
}

dc_ref dc_rule_split_conv(const dc_rule_at *at)
{
    return dc_split_conv(at->to, at->f, at->r, at->in);
}

dc_ref dc_rule_split_reduction(const dc_rule_at *at)
{
    return dc_node_at(at->f, at->r)->nin == 1
               ? dc_split_reduce(at->to, at->f, at->r, at->in[0], at->groups != NULL)
               : 0;
}

static dc_ref applied(const dc_rule_at *at)
{
    dc_ref made = 0;
    for (size_t i = 0; i < DC_COUNTOF(rules) && made == 0; i++)
        if (rules[i].on == ANY || (rules[i].on == SIMT) == (at->groups != NULL))
            made = rules[i].rule(at);
    return made != 0 ? made : copied(at);
}

dc_func *dc_rules_apply(dc_arena *scratch, const dc_func *f, const dc_target *groups)
{
    dc_func *to = dc_func_new(f->module, f->name);
    dc_ref *map = DC_NEW_ARRAY(scratch, dc_ref, f->node.n);
    const bool *live = dc_func_live(f, scratch);
    const dc_attention attention = groups == NULL ? dc_attention_in(f, scratch) : (dc_attention){0};
    dc_graph_params(to, f, map);
    for (dc_ref r = 1; r < f->node.n; r++) {
        const dc_node *n = dc_node_at(f, r);
        dc_ref in[DC_MAX_OPERANDS];
        if (map[r] != 0 || !live[r])
            continue;
        for (int i = 0; i < n->nin; i++)
            in[i] = map[n->in[i]];
        map[r] = applied(&(dc_rule_at){f, r, to, in, map, groups, &attention});
        dc_func_copy_origin(to, map[r], f, r);
    }
    for (uint32_t i = 0; i < f->result.n; i++)
        DC_PUSH(to->result, map[f->result.at[i]]);
    return to;
}
