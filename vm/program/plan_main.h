/*
 * `deepc plan --mesh data=512,model=8 FILE`: how long a step takes and how much memory a rank needs on meshes that are not
 * there. The script runs as with `deepc check`, but as one rank of the mesh and with a device; then its functions in parts
 * are timed, and what ranks exchange is added by formulas (stdlib/plan.lua).
 */
#ifndef DC_VM_PROGRAM_PLAN_MAIN_H
#define DC_VM_PROGRAM_PLAN_MAIN_H

int dc_plan_main(int argc, char **argv); /* behind the word plan */

#endif
