/*
 * Checks for unit tests in C. A test is a main that checks and ends with `return t_done();`.
 *
 *   CHECK(cond)             anything
 *   CHECK_EQ(a, b)          integers
 *   CHECK_STR(a, b)         strings; NULL equals only NULL
 *   CHECK_NEAR(a, b, tol)   floats, absolute; NaN is near nothing
 *   T_SKIP("reason")        a part that cannot run here; the summary of scripts/test lists it
 *
 * The closing line "N passed, N failed" is what scripts/test adds up, so a program without one has
 * crashed. A program that only skipped exits with 77.
 */
#ifndef DC_TESTS_T_H
#define DC_TESTS_T_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static long t_passed, t_failed, t_skipped;

static inline bool t_count(bool ok)
{
    /* Threads of a test check too. */
    __atomic_fetch_add(ok ? &t_passed : &t_failed, 1, __ATOMIC_RELAXED);
    return ok;
}

static inline bool t_check(bool ok, const char *file, int line, const char *text)
{
    if (!t_count(ok))
        printf("%s:%d: failed: %s\n", file, line, text);
    return ok;
}

static inline bool t_check_eq(long long a, long long b, const char *file, int line,
                              const char *text)
{
    if (!t_count(a == b))
        printf("%s:%d: failed: %s: %lld and %lld\n", file, line, text, a, b);
    return a == b;
}

static inline bool t_check_str(const char *a, const char *b, const char *file, int line,
                               const char *text)
{
    const bool ok = a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
    if (!t_count(ok))
        printf("%s:%d: failed: %s:\n    '%s'\n    '%s'\n", file, line, text, a ? a : "(null)",
               b ? b : "(null)");
    return ok;
}

static inline bool t_check_near(double a, double b, double tol, const char *file, int line,
                                const char *text)
{
    const bool ok = a == b || fabs(a - b) <= tol;
    if (!t_count(ok))
        printf("%s:%d: failed: %s: %.17g and %.17g differ by more than %g\n", file, line, text, a,
               b, tol);
    return ok;
}

static inline void t_skip(const char *reason)
{
    t_skipped++;
    printf("skip: %s\n", reason);
}

static inline int t_done(void)
{
    printf("%ld passed, %ld failed", t_passed, t_failed);
    if (t_skipped > 0)
        printf(", %ld skipped", t_skipped);
    printf("\n");
    if (t_failed > 0)
        return 1;
    return t_passed == 0 && t_skipped > 0 ? 77 : 0;
}

#define CHECK(cond)           t_check((cond), __FILE__, __LINE__, #cond)
#define CHECK_EQ(a, b)        t_check_eq((long long)(a), (long long)(b), __FILE__, __LINE__, #a " == " #b)
#define CHECK_STR(a, b)       t_check_str((a), (b), __FILE__, __LINE__, #a " == " #b)
#define CHECK_NEAR(a, b, tol) t_check_near((a), (b), (tol), __FILE__, __LINE__, #a " near " #b)
#define T_SKIP(reason)        t_skip(reason)

#endif
