/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/manifest.h"
#include "unit/tensor_open.h"

static char dir[64] = "/tmp/fr-manifest-XXXXXX";

static void run(const char *commands)
{
    char line[2048];
    snprintf(line, sizeof line, "cd %s && F=%s && %s", dir, FR_SOURCE_DIR "/tests/fixtures/tensor", commands);
    if (system(line) != 0) {
        fprintf(stderr, "cannot run: %s\n", line);
        exit(1);
    }
}

static void write_manifest(bool tensors)
{
    struct opened o;
    char path[128];
    FR_AUTO(fr_buf) out = FR_BUF_INIT(0);
    opened_begin(&o, dir);
    T_EQ_INT(fr_manifest_write(&o.c, fr_sv_z(dir), tensors, &out, &o.err), 0);
    snprintf(path, sizeof path, "%s/%s", dir, FR_MANIFEST_NAME);
    FILE *f = fopen(path, "wb");
    T_OK(f != NULL && fwrite(out.p, 1, out.n, f) == out.n && fclose(f) == 0);
    opened_end(&o);
}

/* Problems after the commands; the first of the kind with the words must be there (kind FR_PROBLEM_KINDS: none at all). */
static void verify(const char *commands, uint8_t kind, const char *words)
{
    struct opened o;
    struct fr_problem *p = NULL;
    uint32_t n = 0;
    char path[128];
    run(commands);
    opened_begin(&o, dir);
    snprintf(path, sizeof path, "%s/%s", dir, FR_MANIFEST_NAME);
    T_EQ_INT(fr_manifest_verify(&o.c, path, &o.arena, &p, &n, &o.err), 0);
    bool found = kind == FR_PROBLEM_KINDS && n == 0;
    for (uint32_t i = 0; i < n; i++) {
        found = found || (p[i].kind == kind && fr_sv_has(p[i].text, fr_sv_z(words)));
    }
    T_OK(found);
    for (uint32_t i = 0; !found && i < n; i++) {
        fprintf(stderr, "    %.*s\n", FR_SV_ARG(p[i].text));
    }
    opened_end(&o);
}

T_TEST(files_and_tensors)
{
    run("rm -rf * && cp $F/sharded/* . && mkdir sub && cp $F/torch/old.bin sub/model.pt");
    write_manifest(true);
    verify(":", FR_PROBLEM_KINDS, "");
    verify("printf x | dd of=model-00002-of-00002.safetensors bs=1 seek=200 conv=notrunc status=none", FR_PROBLEM_CHECKSUM, "its bytes are not those of its manifest");
    verify(":", FR_PROBLEM_CHECKSUM, "'lm_head.weight' at byte 192 is not what its manifest says");
    verify("truncate -s 300 model-00001-of-00002.safetensors", FR_PROBLEM_TRUNCATED, "has 300 bytes, its manifest says 320");
    verify("rm sub/model.pt", FR_PROBLEM_MISSING, "sub/model.pt");
    verify("cp $F/safetensors/small.safetensors more.safetensors", FR_PROBLEM_EXTRA, "is not in the manifest");
}

T_TEST(hashes_are_those_of_sha256sum)
{
    run("rm -rf * && cp $F/safetensors/small.safetensors . && sha256sum small.safetensors | cut -c1-64 >want.txt");
    write_manifest(false);
    run("grep -q $(cat want.txt) " FR_MANIFEST_NAME);
    run("python3 -m json.tool " FR_MANIFEST_NAME " >/dev/null");
}

T_TEST(manifests_that_are_none)
{
    static const char *const texts[] = {"", "[]", "{}", "{\"files\": [{}]}", "{\"files\": [{\"path\": \"a\", \"sha256\": 1}]}", "{\"files\": [", "nonsense"};
    struct opened o;
    struct fr_problem *p = NULL;
    uint32_t n = 0;
    opened_begin(&o, FIXTURE("safetensors"));
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct fr_err err = {0};
        T_EQ_INT(fr_manifest_verify(&o.c, written("m.json", texts[i], strlen(texts[i])), &o.arena, &p, &n, &err), -FR_SYNTAX);
        T_OK(strstr(err.msg, "malformed manifest") != NULL);
    }
    T_EQ_INT(fr_manifest_verify(&o.c, "/nonexistent", &o.arena, &p, &n, &o.err), -FR_ABSENT);
    const char *out = "{\"files\": [{\"path\": \"../../etc/passwd\", \"sha256\": \"00\"}, {\"path\": \"/etc/passwd\", \"sha256\": \"00\"}]}";
    T_EQ_INT(fr_manifest_verify(&o.c, written("m.json", out, strlen(out)), &o.arena, &p, &n, &o.err), 0);
    T_OK(n == 3 && p[0].kind == FR_PROBLEM_MISSING && p[1].kind == FR_PROBLEM_MISSING && fr_sv_has(p[1].text, FR_SV("outside the manifest's folder")));
    opened_end(&o);
}

int main(void)
{
    if (mkdtemp(dir) == NULL) {
        return 1;
    }
    int rc = t_run();
    run("rm -rf *");
    return rmdir(dir) != 0 || rc;
}
