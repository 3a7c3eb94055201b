/* What the files of backends/mpi share, and private to them. */
#ifndef DC_BACKENDS_MPI_MPI_IMPL_H
#define DC_BACKENDS_MPI_MPI_IMPL_H

#include "backends/mpi/mpi.h"
#include "core/world/engine.h"

typedef uintptr_t mpi_handle;

typedef struct dc_mpi_api {
#define MPI_API(name, parameters) int(*name) parameters;
#include "backends/mpi/mpi_api.def"
} dc_mpi_api;

typedef struct dc_mpi_constants {
#define MPI_HANDLE(name, symbol, mpich, standard) mpi_handle name;
#define MPI_NUMBER(name, open, mpich, standard)   intptr_t name;
#include "backends/mpi/mpi_api.def"
} dc_mpi_constants;

/* Libraries have one of three binary interfaces. */
typedef enum dc_mpi_abi { DC_MPI_OPEN, DC_MPI_MPICH, DC_MPI_STANDARD } dc_mpi_abi;

typedef struct dc_mpi_lib {
    void *handle;
    char name[256]; /* of its file */
    dc_mpi_abi abi;
    dc_mpi_api fn;
    dc_mpi_constants is;
} dc_mpi_lib;

/* What started this process. */
typedef struct dc_mpi_launch {
    const char *name;
    int rank;         /* of this process */
    int size;         /* processes; 0: it does not say */
    dc_mpi_abi first; /* where to look for the library first; */
    bool only;        /* nowhere else */
} dc_mpi_launch;

/* False: nothing did. */
bool dc_mpi_find_launch(dc_mpi_launch *out);

/* The library that `path` names, or the first of those that fit the launcher. It stays open. False: `why` says why. */
bool dc_mpi_lib_open(const char *path, const dc_mpi_launch *by, dc_mpi_lib *out, char *why,
                     size_t size);

/* apart: ranks exchange messages as if each were on a host of its own, for tests. Unwinds where there is no memory. */
dc_engine *dc_mpi_engine_new(const dc_mpi_lib *lib, const dc_mpi_launch *by, bool apart);

#endif
