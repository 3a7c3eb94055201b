/* The tables of vm/program/extras.h. Without DC_EXTRAS they are empty. */
#include "vm/program/extras.h"

#include <stddef.h>

#ifdef DC_EXTRAS
#include "extras/editors/language_server.h"
#endif

const dc_extra_command dc_extra_commands[] = {
#ifdef DC_EXTRAS
    {"language-server", dc_language_server_main,
     "  language-server  for editors: the Language Server Protocol on standard input and output\n", NULL},
    {"run", NULL,
     "  run MODEL ARGS   a program of StableHLO with arrays or numbers; deepc run --help tells more\n",
     "deepc.stablehlo.command"},
#endif
    {NULL, NULL, NULL, NULL},
};

const dc_extra_option dc_extra_options[] = {
#ifdef DC_EXTRAS
    {"--viz", "deepc.viz",
     "  --viz PAGE  writes a page about what it computed: graphs, kernels with times, lines, "
     "memory; PAGE.html opens in a "
     "browser\n"},
#endif
    {NULL, NULL, NULL},
};
