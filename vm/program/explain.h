/* deepc explain [CODE...]: what the codes of errors mean. Returns the exit status. */
#ifndef DC_VM_PROGRAM_EXPLAIN_H
#define DC_VM_PROGRAM_EXPLAIN_H

int dc_vm_explain(int argc, char **argv);

#endif
