/* deepc cache [--clear]: the cache on disk. Returns the exit status. */
#ifndef DC_VM_PROGRAM_CACHE_MAIN_H
#define DC_VM_PROGRAM_CACHE_MAIN_H

int dc_vm_cache(int argc, char **argv);

#endif
