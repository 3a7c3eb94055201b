#include "jit/base/fft_rows.h"

#include "jit/base/tuning.h"

int64_t dc_fft_rows(int64_t n, int64_t after, dc_dtype t)
{
    const int64_t lanes = DC_TUNE_FFT_VECTOR / (int64_t)dc_dtype_size(t);
    int radix[DC_DFT_STAGES];
    if (after > 1)
        return after % lanes == 0 ? lanes : 0;
    const int count = dc_dft_radices(n, radix);
    return count > 1 && radix[0] % lanes == 0 && n / radix[0] % lanes == 0 ? 1 : lanes;
}

int64_t dc_fft_bytes(int64_t n, int64_t rows, dc_dtype t)
{
    return 4 * n * (int64_t)dc_dtype_size(t) * rows;
}
