#include "jit/compile/stage_skip.h"

#include <stdio.h>
#include <string.h>

static const char *const words_of[] = {
#define STAGE(id, help) #id,
#include "jit/compile/stages.def"
#define PASS(id, help) #id,
#include "jit/flat/passes.def"
};

const char *dc_skip_word(uint32_t n)
{
    return n < DC_COUNTOF(words_of) ? words_of[n] : NULL;
}

static void skip_word(dc_skip *s, uint32_t n)
{
    if (n < DC_STAGE__COUNT)
        s->stages |= 1u << n;
    else
        s->passes |= 1u << (n - DC_STAGE__COUNT);
}

static bool is_word(const char *text, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(text, word, n) == 0;
}

static dc_status unknown(dc_job *j, const char *text, size_t n)
{
    char why[300];
    size_t at = (size_t)snprintf(
        why, sizeof why, "nothing is called '%.*s'; there are:", (int)(n < 40 ? n : 40), text);
    for (uint32_t i = 0; dc_skip_word(i) != NULL && at < sizeof why; i++)
        at += (size_t)snprintf(why + at, sizeof why - at, " %s", dc_skip_word(i));
    if (at < sizeof why)
        snprintf(why + at, sizeof why - at, " all");
    return dc_fail(j, DC_ERR_OPTION, &(dc_fact){.word = {"DEEPC_SKIP", why}});
}

dc_status dc_skip_parse(dc_job *j, const char *words, dc_skip *out)
{
    *out = (dc_skip){0};
    for (const char *w = words; *w != '\0'; w += strspn(w, ", ")) {
        const size_t n = strcspn(w, ", ");
        bool known = n == 0;
        for (uint32_t i = 0; dc_skip_word(i) != NULL; i++)
            if (is_word(w, n, "all") || is_word(w, n, dc_skip_word(i))) {
                skip_word(out, i);
                known = true;
            }
        if (!known)
            return unknown(j, w, n);
        w += n;
    }
    return DC_OK;
}
