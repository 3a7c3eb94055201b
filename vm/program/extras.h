/* What extras/ gives to the program; the tables are extras/extras_main.c's. Behind the last row stands one of zeros. */
#ifndef DC_VM_PROGRAM_EXTRAS_H
#define DC_VM_PROGRAM_EXTRAS_H

/* deepc NAME ARGUMENTS */
typedef struct dc_extra_command {
    const char *name;
    int (*main)(int argc, char **argv); /* with what stands behind the name; the status of the process */
    const char *usage;                  /* its line */
    const char *module;                 /* main is NULL: the function of that name in it, of `arg` */
} dc_extra_command;

/* deepc NAME ARGUMENT FILE: the module acts before the script and behind it (vm/program/module_option.h). */
typedef struct dc_extra_option {
    const char *name, *module, *usage;
} dc_extra_option;

extern const dc_extra_command dc_extra_commands[];
extern const dc_extra_option dc_extra_options[];

#endif
