/* `deepc kernel`: what becomes of a kernel given as text. */
#ifndef DC_VM_PROGRAM_KERNEL_H
#define DC_VM_PROGRAM_KERNEL_H

/* Of the arguments after the word `kernel`. The exit status. */
int dc_vm_kernel(int argc, char **argv);

#endif
