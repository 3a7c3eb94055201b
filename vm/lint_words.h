/*
 * Lua's text as words, for vm/check_lint.c: names, keywords, literals and signs, each with its line.
 */
#ifndef DC_VM_LINT_WORDS_H
#define DC_VM_LINT_WORDS_H

#include "core/base/vec.h"

#include <string.h>

typedef enum kind { END, NAME, KEYWORD, STRING, NUMBER, SIGN } kind;

typedef struct token {
    kind kind;
    const char *at;
    int n, line;
} token;

typedef DC_VEC(token) tokens;

static inline bool word_is(const token *t, const char *text)
{
    return t->kind != STRING && (int)strlen(text) == t->n && memcmp(t->at, text, (size_t)t->n) == 0;
}

static inline bool word_is_one_of(const token *t, const char *const *texts)
{
    for (; *texts != NULL; texts++)
        if (word_is(t, *texts))
            return true;
    return false;
}

static inline bool word_same(const token *a, const token *b)
{
    return a->n == b->n && memcmp(a->at, b->at, (size_t)a->n) == 0;
}

/* The words of a text, which live as long as it does, and a few that are END, so that one may look ahead. */
tokens dc_lint_words(const char *text);

#endif
