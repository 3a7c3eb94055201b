/* What started this process, and the library of MPI that fits, found at run time into a table of functions. */
#include "backends/library.h"
#include "backends/mpi/mpi_impl.h"
#include "core/base/digits.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* ---- launchers ----------------------------------------------------------------------------------------- */

/*
 * By what they leave in the environment. Slurm and Flux start programs of any library, and set variables of others as well:
 * those say which one. SLURM_NTASKS is no sign: a batch script has it too, which srun has not started.
 */
static const struct launcher {
    const char *name, *rank, *size; /* variables */
    dc_mpi_abi first;
    bool only;
} launchers[] = {
    {"mpirun of Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", DC_MPI_OPEN, true},
    {"srun with PMIx", "PMIX_RANK", "SLURM_STEP_NUM_TASKS", DC_MPI_OPEN, false},
    {"mpiexec with PMI", "PMI_RANK", "PMI_SIZE", DC_MPI_MPICH, false},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", DC_MPI_MPICH, false},
    {"flux run", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", DC_MPI_MPICH, false},
    {"mpiexec of PALS", "PALS_RANKID", "PALS_SIZE", DC_MPI_MPICH, false},
};

/* 0 where the variable is not set. */
static int number_of(const char *variable)
{
    uint64_t n = 0;
    const char *text = dc_opts_system(variable);
    return dc_digits_unsigned(&text, NULL, 1 << 24, &n) == DC_DIGITS_OK ? (int)n : 0;
}

bool dc_mpi_find_launch(dc_mpi_launch *out)
{
    for (size_t i = 0; i < DC_COUNTOF(launchers); i++) {
        const struct launcher *l = &launchers[i];
        const int size = number_of(l->size);
        const bool slurm = strcmp(l->rank, "SLURM_PROCID") == 0;
        if (dc_opts_system(l->rank)[0] == '\0' || (slurm && size < 2))
            continue;
        *out = (dc_mpi_launch){l->name, number_of(l->rank), size, l->first, l->only};
        return true;
    }
    return false;
}

bool dc_mpi_place(int *rank, int *size)
{
    dc_mpi_launch by;
    if (!dc_mpi_find_launch(&by))
        return false;
    *rank = by.rank;
    *size = by.size;
    return true;
}

const char *dc_mpi_launcher(const dc_opts *opt)
{
    dc_mpi_launch by;
    return strcmp(opt->mpi, "off") != 0 && dc_mpi_find_launch(&by) ? by.name : NULL;
}

/* ---- libraries ----------------------------------------------------------------------------------------- */

static const char *const names_open[] = {"libmpi.so.40", "libmpi.so.80", NULL},
                         *const names_mpich[] = {"libmpich.so.12", "libmpi.so.12",
                                                 "libmpi_cray.so.12", NULL},
                         *const names_standard[] = {"libmpi_abi.so.1", "libmpi_abi.so.0",
                                                    "libmpi_abi.so", NULL};

static const char *const *const names_of[] = {
    [DC_MPI_OPEN] = names_open, [DC_MPI_MPICH] = names_mpich, [DC_MPI_STANDARD] = names_standard};

static const char *const package_of[] = {
    [DC_MPI_OPEN] = "libopenmpi3", [DC_MPI_MPICH] = "libmpich12", [DC_MPI_STANDARD] = "mpich"};

static const dc_library_symbol symbols[] = {
#define MPI_API(name, parameters) {"MPI_" #name, offsetof(dc_mpi_api, name), false},
#include "backends/mpi/mpi_api.def"
};

/* Components of Open MPI need its names to be visible. It stays: threads and handlers of the library outlive us. */
static void *open_file(const char *name, char *why, size_t size)
{
    return dc_library_open(name, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE, why, size);
}

/* By the name of the file: the library of the standard ABI may lead to one that has another. */
static dc_mpi_abi abi_of(void *handle, const char *name)
{
    const char *file = strrchr(name, '/');
    if (strncmp(file != NULL ? file + 1 : name, "libmpi_abi", 10) == 0)
        return DC_MPI_STANDARD;
    return dlsym(handle, "ompi_mpi_comm_world") != NULL ? DC_MPI_OPEN : DC_MPI_MPICH;
}

static mpi_handle handle_of(const dc_mpi_lib *lib, const char *symbol, mpi_handle mpich,
                            mpi_handle standard)
{
    switch (lib->abi) {
    case DC_MPI_OPEN:
        return (mpi_handle)dlsym(lib->handle, symbol);
    case DC_MPI_MPICH:
        return mpich;
    case DC_MPI_STANDARD:
        return standard;
    }
    return 0;
}

static bool fill_in(dc_mpi_lib *lib, char *why, size_t size)
{
    const char *missing = dc_library_resolve(lib->handle, symbols, DC_COUNTOF(symbols), &lib->fn);
#define MPI_HANDLE(name, symbol, mpich, standard)            \
    lib->is.name = handle_of(lib, #symbol, mpich, standard); \
    if (lib->is.name == 0 && missing == NULL)                \
        missing = #symbol;
#define MPI_NUMBER(name, open, mpich, standard) \
    lib->is.name = lib->abi == DC_MPI_OPEN ? open : lib->abi == DC_MPI_MPICH ? mpich : standard;
#include "backends/mpi/mpi_api.def"
    if (missing != NULL)
        snprintf(why, size, "%s has no %s: MPI 3.0 is needed", lib->name, missing);
    return missing == NULL;
}

static bool open_named(const char *name, dc_mpi_lib *lib, char *why, size_t size)
{
    *lib = (dc_mpi_lib){.handle = open_file(name, why, size)};
    if (lib->handle == NULL)
        return false;
    snprintf(lib->name, sizeof lib->name, "%s", name);
    lib->abi = abi_of(lib->handle, name);
    return fill_in(lib, why, size);
}

/* The first of these names that is there. */
static bool open_first(dc_mpi_abi abi, dc_mpi_lib *lib, char *why, size_t size)
{
    for (const char *const *name = names_of[abi]; *name != NULL; name++)
        if (open_named(*name, lib, why, size))
            return true;
    return false;
}

bool dc_mpi_lib_open(const char *path, const dc_mpi_launch *by, dc_mpi_lib *out, char *why,
                     size_t size)
{
    char words[300];
    if (path[0] != '\0')
        return open_named(path, out, why, size);
    const dc_mpi_abi second = by->first == DC_MPI_OPEN ? DC_MPI_MPICH : DC_MPI_OPEN;
    if (open_first(by->first, out, words, sizeof words) ||
        (!by->only && open_first(second, out, words, sizeof words)) ||
        open_first(DC_MPI_STANDARD, out, words, sizeof words))
        return true;
    snprintf(why, size,
             "%s started this process, and its library is not installed (%s; Debian: apt-get "
             "install %s; "
             "DEEPC_MPI names one elsewhere)",
             by->name, names_of[by->first][0], package_of[by->first]);
    return false;
}
