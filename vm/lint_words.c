#include "vm/lint_words.h"

#include <ctype.h>

/* The end of a long bracket that begins at s, or NULL where none does. */
static const char *long_end(const char *s)
{
    int level = 0;
    if (*s != '[')
        return NULL;
    while (s[1 + level] == '=')
        level++;
    if (s[1 + level] != '[')
        return NULL;
    for (s += level + 2; *s != '\0'; s++) {
        int n = 0;
        if (*s != ']')
            continue;
        while (s[1 + n] == '=')
            n++;
        if (n == level && s[1 + n] == ']')
            return s + n + 2;
    }
    return s;
}

static const char *skip_blanks(const char *s, int *line)
{
    for (;;) {
        if (*s == '\n') {
            ++*line;
            s++;
        } else if (isspace((unsigned char)*s)) {
            s++;
        } else if (s[0] == '-' && s[1] == '-') {
            const char *end = long_end(s + 2);
            if (end == NULL)
                end = s + strcspn(s, "\n");
            for (; s < end; s++)
                *line += *s == '\n';
        } else {
            return s;
        }
    }
}

static const char *quoted_end(const char *s)
{
    const char quote = *s++;
    while (*s != '\0' && *s != quote && *s != '\n')
        s += *s == '\\' && s[1] != '\0' ? 2 : 1;
    return *s == quote ? s + 1 : s;
}

static bool is_keyword(const token *t)
{
    static const char *const words[] = {"and",   "break", "do",       "else",  "elseif", "end",
                                        "false", "for",   "function", "goto",  "if",     "in",
                                        "local", "nil",   "not",      "or",    "repeat", "return",
                                        "then",  "true",  "until",    "while", NULL};
    return word_is_one_of(t, words);
}

static const char *sign_end(const char *s)
{
    static const char *const signs[] = {
        "...", "..", "==", "~=", "<=", ">=", "//", "::", "<<", ">>"};
    for (size_t i = 0; i < DC_COUNTOF(signs); i++)
        if (strncmp(s, signs[i], strlen(signs[i])) == 0)
            return s + strlen(signs[i]);
    return s + 1;
}

/* Kind and end of the word at s, which is no blank. */
static kind word_at(const char *s, const char **end)
{
    const char *from = s, *closed = long_end(s);
    if (isalpha((unsigned char)*s) || *s == '_') {
        while (isalnum((unsigned char)*s) || *s == '_')
            s++;
        *end = s;
        return is_keyword(&(token){.at = from, .n = (int)(s - from)}) ? KEYWORD : NAME;
    }
    if (isdigit((unsigned char)*s) || (*s == '.' && isdigit((unsigned char)s[1]))) {
        while (isalnum((unsigned char)*s) || *s == '.' ||
               ((*s == '-' || *s == '+') && strchr("eEpP", s[-1]) != NULL))
            s++;
        *end = s;
        return NUMBER;
    }
    if (*s == '"' || *s == '\'' || closed != NULL) {
        *end = closed != NULL ? closed : quoted_end(s);
        return STRING;
    }
    *end = sign_end(s);
    return SIGN;
}

tokens dc_lint_words(const char *text)
{
    tokens list = {0};
    const char *s = text;
    int line = 1;
    if (*s == '#')
        s += strcspn(s, "\n");
    for (s = skip_blanks(s, &line); *s != '\0'; s = skip_blanks(s, &line)) {
        token t = {.at = s, .line = line};
        t.kind = word_at(s, &s);
        t.n = (int)(s - t.at);
        for (int i = 0; i < t.n && t.kind == STRING; i++)
            line += t.at[i] == '\n';
        DC_PUSH(list, t);
    }
    for (int i = 0; i < 4; i++) /* so that one may look ahead */
        DC_PUSH(list, ((token){.kind = END, .at = s, .line = line + 1}));
    return list;
}
