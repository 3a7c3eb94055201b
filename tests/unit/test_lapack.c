/* Threads of OpenBLAS: one while matrices of a batch are computed by several threads, then as many as before. */
#include "core/host/lapack.h"

#include "tests/t.h"

static int threads, sets;

static int get_threads(void)
{
    return threads;
}

static void set_threads(int n)
{
    threads = n;
    sets++;
}

static void test_the_last_one_restores(void)
{
    const dc_lapack l = {.get_threads = get_threads, .set_threads = set_threads};
    threads = 4;
    sets = 0;
    dc_lapack_enter_single(&l);
    CHECK_EQ(threads, 1);
    dc_lapack_enter_single(&l);
    dc_lapack_leave_single(&l);
    CHECK_EQ(threads, 1);
    dc_lapack_leave_single(&l);
    CHECK_EQ(threads, 4);
    CHECK_EQ(sets, 2);
}

static void test_one_thread_stays(void)
{
    const dc_lapack l = {.get_threads = get_threads, .set_threads = set_threads};
    threads = 1;
    sets = 0;
    dc_lapack_enter_single(&l);
    dc_lapack_leave_single(&l);
    CHECK_EQ(threads, 1);
    CHECK_EQ(sets, 0);
}

static void test_other_libraries(void)
{
    const dc_lapack l = {0};
    dc_lapack_enter_single(&l);
    dc_lapack_leave_single(&l);
    CHECK_EQ(sets, 0);
}

int main(void)
{
    test_the_last_one_restores();
    test_one_thread_stays();
    test_other_libraries();
    return t_done();
}
