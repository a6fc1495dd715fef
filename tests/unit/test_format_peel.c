#include "support/t.h"
int main(void) { return t_run(); }
