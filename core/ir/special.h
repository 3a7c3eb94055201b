/* Special functions of double that C has not, for the meaning of rows (core/ir/ops.def). */
#ifndef DC_CORE_IR_SPECIAL_H
#define DC_CORE_IR_SPECIAL_H

double dc_digamma(double x);
double dc_erf_inv(double x);
double dc_sigmoid(double x);
double dc_silu(double x);
double dc_gelu(double x);
double dc_gelu_tanh(double x);

#endif
