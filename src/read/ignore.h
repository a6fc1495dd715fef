/* SPDX-License-Identifier: Apache-2.0 */
/* ignore: which names inside a folder or an archive are no logs. A path given by the user itself is never judged by name. */
#ifndef FR_READ_IGNORE_H
#define FR_READ_IGNORE_H

#include "base/view.h"

/* NULL: read it; else the reason, a literal. base: the last component of the path. */
const char *fr_ignore_file(fr_sv base);
const char *fr_ignore_folder(fr_sv base);

#endif
