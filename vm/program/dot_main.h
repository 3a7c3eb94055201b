/* `deepc dot FILE`: the graphs of a script's typed functions, for Graphviz. */
#ifndef DC_VM_PROGRAM_DOT_MAIN_H
#define DC_VM_PROGRAM_DOT_MAIN_H

int dc_dot_main(int argc, char **argv); /* behind the word dot */

#endif
