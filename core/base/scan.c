#include "core/base/scan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

dc_status dc_scan_refuse(dc_scan *p, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return dc_fail(p->j, DC_ERR_PARSE, &(dc_fact){.num = {p->line}, .word = {text}});
}

dc_status dc_scan_expected(dc_scan *p, const char *what)
{
    const unsigned char c = (unsigned char)*p->at;
    const size_t sign = c == '-', word = p->word(p->at + sign);
    const size_t n = word > 0 ? sign + word : 0;
    if (c == '\0')
        return dc_scan_refuse(p, "%s expected, not the end", what);
    if (n > 0)
        return dc_scan_refuse(p, "%s expected, not '%.*s'", what, (int)(n < 40 ? n : 40), p->at);
    if (c == '\n')
        return dc_scan_refuse(p, "%s expected, not the end of the line", what);
    if (c < ' ' || c > '~')
        return dc_scan_refuse(p, "%s expected, not byte %d", what, c);
    return dc_scan_refuse(p, "%s expected, not '%c'", what, c);
}

void dc_scan_skip(dc_scan *p)
{
    for (;; p->at++) {
        if (*p->at == '#')
            p->at += strcspn(p->at, "\n");
        if (*p->at == '\n')
            p->line++;
        else if (*p->at == '\0' || strchr(" \t\r\v\f", *p->at) == NULL)
            return;
    }
}

bool dc_scan_accept(dc_scan *p, const char *token)
{
    const size_t n = strlen(token);
    dc_scan_skip(p);
    if (strncmp(p->at, token, n) != 0 || (p->word(token) > 0 && p->word(p->at) != n))
        return false;
    p->at += n;
    return true;
}

dc_status dc_scan_expect(dc_scan *p, const char *token)
{
    char what[16];
    if (dc_scan_accept(p, token))
        return DC_OK;
    snprintf(what, sizeof what, "'%s'", token);
    return dc_scan_expected(p, what);
}

dc_status dc_scan_name(dc_scan *p, const char *what, char *out, size_t size)
{
    const size_t n = p->word(p->at);
    if (n == 0 || (*p->at >= '0' && *p->at <= '9'))
        return dc_scan_expected(p, what);
    if (n >= size)
        return dc_scan_refuse(p, "%s has more than %zu letters", what, size - 1);
    memcpy(out, p->at, n);
    out[n] = '\0';
    p->at += n;
    return DC_OK;
}
