/* The world of a process that an MPI launcher started: mpirun, mpiexec, srun. */
#ifndef DC_BACKENDS_MPI_MPI_H
#define DC_BACKENDS_MPI_MPI_H

#include "core/world/world.h"

/*
 * Without a launcher, or with DEEPC_MPI=off, one rank alone; nothing is opened then. Else all ranks wait in here for each
 * other. WORLD: the library is not installed, does not fit the launcher, or fails.
 */
dc_status dc_mpi_open(dc_job *j, dc_world **out);

/* The name of the launcher that started this process, "mpirun of Open MPI"; NULL: none did, or DEEPC_MPI=off. */
const char *dc_mpi_launcher(const dc_opts *opt);

/* Which process this is, and of how many, as the launcher's variables say it; size 0: they do not. False: no launcher. */
bool dc_mpi_place(int *rank, int *size);

#endif
