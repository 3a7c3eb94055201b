/*
 * Kernels of random graphs on the device `cpu` (tests/unit/graph_kernels.h).
 *
 *   test_kernels [seed [graphs]]
 */
#include "tests/unit/graph_kernels.h"

int main(int argc, char **argv)
{
    const uint64_t seed = rng_seed(argc, argv, 1);
    const uint64_t graphs = argc > 2 ? strtoull(argv[2], NULL, 0) : 60;
    graph_kernels("cpu", seed, graphs, 1);
    return t_done();
}
