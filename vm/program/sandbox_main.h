/* `deepc sandbox`: a script of others, run with what its options allow. */
#ifndef DC_VM_PROGRAM_SANDBOX_MAIN_H
#define DC_VM_PROGRAM_SANDBOX_MAIN_H

int dc_sandbox_main(int argc, char **argv);

#endif
