/* SPDX-License-Identifier: Apache-2.0 */
/* A run's folder also holds checkpoints, code and pictures. Reading terabytes of weights to find out that they are binary helps
 * nobody, and documents quote error messages that did not happen here. What is ignored is listed in the report. */
#include "read/ignore.h"

static const struct kind {
    const char *why;
    const char *endings; /* each with a leading and a trailing blank */
} kinds[] = {
    {"a checkpoint or data file, not a log",
     " .pt .pth .ckpt .safetensors .bin .npy .npz .pkl .pickle .h5 .hdf5 .parquet .arrow .feather .gguf .onnx .msgpack "
     ".tfrecord .tfrecords .idx .db .sqlite .sqlite3 .distcp .wandb .mdb .lmdb "},
    {"a program, library or source file, not a log",
     " .so .o .a .dll .exe .dylib .py .pyc .pyo .pyi .ipynb .c .cc .cpp .cu .cuh .h .hpp .rs .go .js .ts .css .sh .whl .cubin .ptx .jar "},
    {"a document, not a log", " .md .rst .html .htm .pdf .doc .docx .tex "},
    {"an image, sound or video, not a log",
     " .png .jpg .jpeg .gif .bmp .svg .webp .ico .tif .tiff .mp4 .avi .mov .webm .mp3 .wav .flac .ttf .woff .woff2 "},
    {"a lock or process id file, not a log", " .lock .pid .sock .swp "},
};

static bool listed(const char *endings, fr_sv ext)
{
    char want[16];
    if (ext.n < 2 || ext.n > sizeof want - 3) {
        return false;
    }
    want[0] = ' ';
    for (size_t i = 0; i < ext.n; i++) {
        char c = ext.p[i];
        want[1 + i] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
    }
    want[1 + ext.n] = ' ';
    return fr_sv_has(fr_sv_z(endings), (fr_sv){want, ext.n + 2});
}

const char *fr_ignore_file(fr_sv base)
{
    size_t dot = base.n;
    if (base.n > 0 && base.p[0] == '.') {
        return "a hidden file";
    }
    if (fr_sv_starts(base, FR_SV("events.out.tfevents."))) {
        return "a TensorBoard event file, not a log";
    }
    while (dot > 0 && base.p[dot - 1] != '.') {
        dot--;
    }
    if (dot == 0) {
        return NULL;
    }
    fr_sv ext = fr_sv_skip(base, dot - 1);
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (listed(kinds[i].endings, ext)) {
            return kinds[i].why;
        }
    }
    return fr_sv_has(base, FR_SV(".so.")) ? kinds[1].why : NULL;
}

const char *fr_ignore_folder(fr_sv base)
{
    if (base.n > 0 && base.p[0] == '.' && !fr_sv_eq(base, FR_SV(".")) && !fr_sv_eq(base, FR_SV(".."))) {
        return "a hidden folder";
    }
    if (fr_sv_eq(base, FR_SV("__pycache__")) || fr_sv_eq(base, FR_SV("node_modules")) ||
        fr_sv_eq(base, FR_SV("site-packages")) || fr_sv_eq(base, FR_SV("__MACOSX"))) {
        return "a folder of programs, not of logs";
    }
    return NULL;
}
