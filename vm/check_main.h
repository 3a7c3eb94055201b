/*
 * `deepc check FILE`: a script is run without a device, so that its typed functions are traced and
 * checked, and what is wrong is listed.
 *
 *   train.lua:15: DC0301: matmul: inner dims differ: axis 3 = 28 against axis 1 = 784
 *     hint: 28 * 28 = 784; :flatten(2) first?
 */
#ifndef DC_VM_CHECK_MAIN_H
#define DC_VM_CHECK_MAIN_H

int dc_check_main(int argc, char **argv); /* behind the word check */

#endif
