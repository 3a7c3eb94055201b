/* deepc top: a running script, watched from another terminal (docs/monitoring.md). */
#ifndef DC_VM_TOP_MAIN_H
#define DC_VM_TOP_MAIN_H

/* The arguments behind "top". */
int dc_top_main(int argc, char **argv);

#endif
