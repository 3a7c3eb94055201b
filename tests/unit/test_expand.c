/* The expansions of jit/flat/expand.c on the device `cpu` (tests/unit/ew_rows.h). */
#include "tests/unit/ew_rows.h"

int main(void)
{
    ew_rows_all("cpu");
    return t_done();
}
