/*
 * Values that are stored before they are transposed. A block of what lies along another axis than the result is transposed in
 * registers (jit/schedule/schedule_map.c), but not where it is read backwards along that axis, as the conjugates of a real
 * transform are: each element would be a load by itself, as often as the value reads something. Stored, it is read forwards.
 */
#include "jit/base/tuning.h"
#include "jit/fuse/fuse_impl.h"

enum { MOST_READ = 64, DEEPEST = 24 };

/* Is the last axis of the permuted value, but for the two parts of complex numbers, another one than before? */
static bool is_turned(const dc_node *n)
{
    int last = n->rank - 1;
    while (last > 0 && n->dim[last] <= 2)
        last--;
    return last > 0 && n->attr[last] != last;
}

/* Is there a flip of as many elements in what is computed where r is? */
static bool reads_backwards(const fusing *w, dc_ref r, int64_t least, int depth, int *left)
{
    const dc_node *n = fuse_at(w, r);
    const dc_op_class c = fuse_class(w, r);
    if (dc_node_count(n) < least || depth == DEEPEST || (*left)-- == 0)
        return false;
    if (n->op == DC_OP_FLIP)
        return true;
    bool any = false;
    for (int i = 0; i < n->nin && !any && (c == DC_CLASS_EW || c == DC_CLASS_MOV); i++)
        any = reads_backwards(w, n->in[i], least, depth + 1, left);
    return any;
}

bool dc_fuse_turns_backwards(const fusing *w, dc_ref r, dc_ref map)
{
    const int64_t count = dc_node_count(fuse_at(w, r));
    int left = MOST_READ;
    return !w->groups && w->level > 1 && map != FUSE_BLOCKED && map != r &&
           fuse_at(w, map)->op == DC_OP_PERMUTE && is_turned(fuse_at(w, map)) &&
           fuse_class(w, r) == DC_CLASS_EW && count >= DC_TUNE_TURNED_ELEMENTS &&
           reads_backwards(w, r, count / 4, 0, &left);
}
