/* SPDX-License-Identifier: Apache-2.0 */
/* hello: the least that a process can do; linked statically. */
#include <unistd.h>

int main(void)
{
    return write(1, "hello\n", 6) == 6 ? 0 : 1;
}
