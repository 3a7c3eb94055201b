/*
 * `deepc doctor [--json]`: what is on this machine, what is missing, and a short test of it. The report is stdlib/doctor.lua,
 * in a context on the interpreter that opens no library; whatever touches a compiler, a driver or another library is a
 * part, `deepc doctor --part NAME ...`, in a process of its own, whose end is a line of the report.
 */
#ifndef DC_VM_DOCTOR_MAIN_H
#define DC_VM_DOCTOR_MAIN_H

int dc_doctor_main(int argc, char **argv); /* behind the word doctor. Returns the exit status */

#endif
