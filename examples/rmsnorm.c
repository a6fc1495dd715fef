/* SPDX-License-Identifier: Apache-2.0 */
/* The RMS norm of a row of halves that a naive half kernel turns into zeros.
 *
 *   cc rmsnorm.c $(pkg-config --cflags --libs faultrank-numerics) -o rmsnorm
 */
#include <faultrank/numerics.h>

#include <stdio.h>

enum { HIDDEN = 4096 };

int main(void)
{
    static float values[HIDDEN];
    static uint16_t x[HIDDEN], w[HIDDEN];
    for (int i = 0; i < HIDDEN; i++) {
        values[i] = 1;
    }
    fr_encode_n(FR_F16, values, HIDDEN, w, FR_OVERFLOW_IEEE);
    values[17] = 300; /* its square, 90000, is no half */
    fr_encode_n(FR_F16, values, HIDDEN, x, FR_OVERFLOW_IEEE);

    int status = fr_kernel_rms_norm(1, HIDDEN, (struct fr_in){x, FR_F16, HIDDEN}, (struct fr_in){w, FR_F16, 0}, 1e-6f,
                                    (struct fr_out){x, FR_F16, HIDDEN}); /* in place */
    if (status < 0) {
        fprintf(stderr, "refused: %d\n", status);
        return 1;
    }
    fr_decode_n(FR_F16, x, HIDDEN, values);
    printf("y[17] = %g, the others %g\n", (double)values[17], (double)values[0]);
    return !(values[17] > 62 && values[17] < 63 && values[0] > 0.2f);
}
