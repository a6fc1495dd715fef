/* SPDX-License-Identifier: Apache-2.0 */
/* replay: runs a fuzz target on the files and folders given, so that what the hunt found stays a test of every build, with any
 * compiler. Also on the empty input. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned n_run;

static int replay_file(const char *path, size_t size)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = malloc(size > 0 ? size : 1); /* exactly as large: a read past the end is then seen */
    if (f == NULL || data == NULL || fread(data, 1, size, f) != size) {
        fprintf(stderr, "cannot read '%s'\n", path);
        exit(1);
    }
    fclose(f);
    (void)LLVMFuzzerTestOneInput(data, size);
    free(data);
    n_run++;
    return 0;
}

static int replay(const char *path)
{
    struct stat st;
    struct dirent **list = NULL;
    char inner[4096];
    if (stat(path, &st) != 0) {
        fprintf(stderr, "there is no '%s'\n", path);
        return 1;
    }
    if (!S_ISDIR(st.st_mode)) {
        return replay_file(path, (size_t)st.st_size);
    }
    int n = scandir(path, &list, NULL, alphasort), bad = 0;
    for (int i = 0; i < n; i++) {
        if (list[i]->d_name[0] != '.') {
            snprintf(inner, sizeof inner, "%s/%s", path, list[i]->d_name);
            bad |= replay(inner);
        }
        free(list[i]);
    }
    free(list);
    return bad;
}

int main(int argc, char **argv)
{
    int bad = 0;
    (void)LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++) {
        bad |= replay(argv[i]);
    }
    printf("%u inputs replayed\n", n_run);
    return bad;
}
