/* SPDX-License-Identifier: Apache-2.0 */
/* check: crafted checkpoints, and exactly what is said of them. */
#include "base/alloc.h"
#include "base/buf.h"
#include "report/check_writer.h"
#include "check_model.h"

T_TEST(a_sound_model)
{
    T_EQ_INT(check(model("sound.safetensors", FR_F16, NULL, 1)), 0);
    T_EQ_INT(r.verdict, FR_CHECK_PROMOTE);
    T_EQ_INT(r.findings.n, 0);
    T_EQ_INT(r.tensors.n, 24);
    T_EQ_STR(r.tensors.v[0].name.p, "model.embed_tokens.weight");
    T_EQ_INT(r.tensors.v[1].layer, 0);
    T_EQ_SV(r.tensors.v[2].module, FR_SV("mlp.up_proj"));
    T_EQ_SV(r.tensors.v[23].name, FR_SV("model.norm.weight"));
    T_OK(fabs(r.tensors.v[2].rms - 0.02) < 0.001 && r.tensors.v[2].abs_max < 0.1);
    T_EQ_INT(r.layers.n, 10);
    T_EQ_INT(r.last_good, r.chosen);
    if (r.findings.n > 0) {
        show("sound");
    }
}

T_TEST(nan_and_inf)
{
    struct noise nan = {.seed = 4, .sigma = 0.02, .at = 77, .other = NAN, .set = true}, inf = nan;
    inf.other = INFINITY;
    const struct change one[] = {{"model.layers.5.mlp.up_proj.weight", made_noise, &nan},
                                 {"model.layers.2.self_attn.q_proj.weight", made_noise, &nan},
                                 {0}};
    static const uint32_t types[] = {FR_F16, FR_BF16, FR_F32, FR_F64, FR_F8_E4M3FN, FR_F8_E5M2};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        T_FOUND(model("nan.safetensors", types[i], one, 1), FR_CHECK_DO_NOT, "nan-in-weights",
                "model.layers.2.self_attn.q_proj.weight", "1 of 4096 elements is NaN");
        T_OK(fr_sv_has(r.headline, FR_SV("2 findings forbid it")));
    }
    const struct change two[] = {{"model.layers.5.mlp.up_proj.weight", made_noise, &inf}, {0}};
    T_FOUND(model("inf.safetensors", FR_BF16, two, 1), FR_CHECK_DO_NOT, "inf-in-weights",
            "model.layers.5.mlp.up_proj.weight", "1 of 6144 elements is Inf");
    o.allow_nan = "nothing,model.layers.5.*";
    T_FOUND(model("inf.safetensors", FR_BF16, two, 1), FR_CHECK_PROMOTE, "allowed",
            "model.layers.5.mlp.up_proj.weight", "permits");
    o.allow_nan = NULL;
}

T_TEST(the_optimizer_alone)
{
    struct noise n = {.seed = 1, .sigma = 0.1},
                 bad = {.seed = 2, .sigma = 0.1, .at = 3, .other = NAN, .set = true};
    made_begin();
    made_add("model.layers.0.mlp.up_proj.weight", FR_F32, 64, 64, made_noise, &n);
    made_add("optimizer.state.0.exp_avg_sq", FR_F32, 64, 64, made_noise, &bad);
    T_FOUND(made_write("opt.safetensors"), FR_CHECK_DO_NOT, "nan-in-optimizer-state",
            "optimizer.state.0.exp_avg_sq", "1 of 4096");
    T_OK(fr_sv_has(r.headline, FR_SV("one step old")));
}

struct rows_of {
    struct noise n;
    size_t columns, from, to; /* rows that hold `other` */
};

static double some_rows(size_t i, void *ctx)
{
    struct rows_of *w = ctx;
    const size_t row = i / w->columns;
    return row >= w->from && row < w->to ? w->n.other : made_noise(i, &w->n);
}

T_TEST(rows)
{
    struct rows_of zero = {{.seed = 3, .sigma = 0.02}, 64, 10, 12},
                   tail = {{.seed = 3, .sigma = 0.02}, 64, 90, 96},
                   equal = {{.seed = 3, .sigma = 0.02, .other = 0.25}, 64, 7, 8};
    const struct change a[] = {{"model.layers.1.mlp.up_proj.weight", some_rows, &zero}, {0}},
                        b[] = {{"model.layers.1.mlp.up_proj.weight", some_rows, &tail}, {0}};
    const struct change c[] = {{"model.layers.1.mlp.up_proj.weight", some_rows, &equal}, {0}},
                        d[] = {{"model.embed_tokens.weight", some_rows, &zero}, {0}};
    T_FOUND(model("rows.safetensors", FR_F16, a, 1), FR_CHECK_PROMOTE, "zero-rows",
            "model.layers.1.mlp.up_proj.weight", "2 of 96 rows are zero, the first is row 10.");
    T_FOUND(model("rows.safetensors", FR_F32, b, 1), FR_CHECK_PROMOTE, "zeros-at-the-end",
            "model.layers.1.mlp.up_proj.weight", "The last 6 of 96 rows are zero");
    T_FOUND(model("rows.safetensors", FR_F8_E4M3FN, c, 1), FR_CHECK_PROMOTE, "equal-rows",
            "model.layers.1.mlp.up_proj.weight",
            "1 of 96 rows hold one value throughout, the first is row 7.");
    T_FOUND(model("rows.safetensors", FR_BF16, d, 1), FR_CHECK_PROMOTE, "rows-without-training",
            "model.embed_tokens.weight", "2 of 100 rows are zero");
}

T_TEST(whole_tensors)
{
    double quarter = 0.25;
    const struct change zero[] = {{"model.layers.1.mlp.up_proj.weight", made_zero, NULL}, {0}},
                        same[] = {{"model.layers.1.mlp.up_proj.weight", made_same, &quarter}, {0}};
    T_FOUND(model("zero.safetensors", FR_F16, zero, 1), FR_CHECK_PROMOTE, "zero-weights",
            "model.layers.1.mlp.up_proj.weight", "All 6144 elements are zero.");
    T_FOUND(model("same.safetensors", FR_F16, same, 1), FR_CHECK_PROMOTE, "constant-weights",
            "model.layers.1.mlp.up_proj.weight", "magnitude 0.25");
    made_begin();
    made_add("a.weight", FR_F16, 64, 64, made_zero, NULL);
    T_FOUND(made_write("all.safetensors"), FR_CHECK_DO_NOT, "all-weights-zero", "",
            "All 1 weights");
    made_begin();
    made_add("a.weight", FR_F16, 64, 0, made_zero, NULL);
    T_FOUND(made_write("empty.safetensors"), FR_CHECK_DO_NOT, "empty-weights", "",
            "1 of 1 weights");
}

T_TEST(magnitudes)
{
    struct noise large = {.seed = 1, .sigma = 0.02, .at = 5, .other = 70000, .set = true},
                 near = large, loud = {.seed = 1, .sigma = 2};
    near.other = 40000;
    const struct change a[] = {{"lm_head.weight", made_noise, &large}, {0}},
                        b[] = {{"lm_head.weight", made_noise, &near}, {0}},
                        c[] = {{"model.layers.4.mlp.up_proj.weight", made_noise, &loud}, {0}};
    T_FOUND(model("large.safetensors", FR_BF16, a, 1), FR_CHECK_PROMOTE, "beyond-fp16",
            "lm_head.weight", "1 of 6400 elements become Inf");
    T_FOUND(model("near.safetensors", FR_F16, b, 1), FR_CHECK_PROMOTE, "near-fp16-limit",
            "lm_head.weight", "40000");
    T_FOUND(model("loud.safetensors", FR_F16, c, 1), FR_CHECK_PROMOTE, "layer-out-of-line",
            "model.layers.4.mlp.up_proj.weight", "times the median");
    o.max_abs = 1000;
    T_FOUND(model("near.safetensors", FR_F16, b, 1), FR_CHECK_DO_NOT, "over-max-abs",
            "lm_head.weight", "--max-abs allows 1000");
    o.max_abs = 0;
}

T_TEST(equal_contents)
{
    struct noise n = {.seed = 8, .sigma = 0.02};
    const struct change a[] = {{"model.layers.4.mlp.up_proj.weight", made_noise, &n},
                               {"model.layers.5.mlp.up_proj.weight", made_noise, &n},
                               {0}};
    const struct change b[] = {
        {"model.embed_tokens.weight", made_noise, &n}, {"lm_head.weight", made_noise, &n}, {0}};
    T_FOUND(model("twice.safetensors", FR_F16, a, 1), FR_CHECK_PROMOTE, "duplicated-content",
            "model.layers.5.mlp.up_proj.weight",
            "12288 bytes as 'model.layers.4.mlp.up_proj.weight'");
    T_FOUND(model("tied.safetensors", FR_F16, b, 1), FR_CHECK_PROMOTE, "tied-weights-stored-twice",
            "lm_head.weight", "model.embed_tokens.weight");
}

/* ---- damage ---- */

T_TEST(damage)
{
    static unsigned char bytes[1 << 20];
    const char *path = model("cut.safetensors", FR_F16, NULL, 1);
    FILE *f = fopen(path, "rb");
    const size_t n = f != NULL ? fread(bytes, 1, sizeof bytes, f) : 0;
    if (f != NULL) {
        fclose(f);
    }
    T_EQ_INT(check(made_text("cut.safetensors", bytes, n - 100)), 0);
    T_EQ_INT(r.verdict, FR_CHECK_DO_NOT);
    T_OK(found("safetensors-law") != NULL && r.tensors.n > 20);
    T_EQ_INT(check(made_path("nowhere")), -FR_ABSENT);
    T_OK(err.msg[0] != '\0');
    T_OK(check(made_text("notes.md", "# hello\n", 8)) < 0);
}

static double half_written(size_t i, void *ctx)
{
    return i < 40 * 64 ? made_noise(i, ctx) : 0;
}

static double never(size_t i, void *ctx)
{
    (void)i;
    (void)ctx;
    return 0;
}

T_TEST(zeros_to_the_end_of_a_file)
{
    struct noise n = {.seed = 3, .sigma = 0.02};
    const struct change tail[] = {{"model.layers.6.mlp.up_proj.weight", half_written, &n},
                                  {"model.norm.weight", never, NULL},
                                  {"lm_head.weight", never, NULL},
                                  {0}};
    T_FOUND(model("tail.safetensors", FR_F16, tail, 1), FR_CHECK_DO_NOT, "zeros-to-the-end",
            "model.layers.6.mlp.up_proj.weight", "last 56 of 96 rows are zero, and so is all");
    const struct change end[] = {{"lm_head.weight", half_written, &n}, {0}};
    T_EQ_INT(check(model("padded.safetensors", FR_F16, end, 1)), 0);
    T_EQ_INT(r.verdict, FR_CHECK_PROMOTE); /* a padded vocabulary */
    const struct change middle[] = {{"model.layers.5.mlp.up_proj.weight", half_written, &n},
                                    {"model.layers.6.input_layernorm.weight", never, NULL},
                                    {0}};
    T_EQ_INT(check(model("middle.safetensors", FR_F16, middle, 1)), 0);
    T_OK(found("zeros-to-the-end") == NULL);
}

T_TEST(a_value_that_no_training_gives)
{
    struct noise flipped = {.seed = 2, .sigma = 0.02, .at = 99, .other = 1.6e37, .set = true};
    const struct change one[] = {{"model.layers.2.mlp.up_proj.weight", made_noise, &flipped}, {0}};
    T_FOUND(model("flip.safetensors", FR_F32, one, 1), FR_CHECK_DO_NOT, "implausible-value",
            "model.layers.2.mlp.up_proj.weight", "1.6e+37");
}

/* ---- comparison ---- */

static double flipped(size_t i, void *ctx)
{
    const double x = made_noise(i, ctx);
    return i == 100 ? fr_decode(FR_F16, fr_encode(FR_F16, x, 0) ^ 0x4000) : x;
}

static double moved(size_t i, void *ctx)
{
    struct noise step = {.seed = 55, .sigma = 0.0005};
    return made_noise(i, ctx) + made_noise(i, &step);
}

static double doubled(size_t i, void *ctx)
{
    return 2 * made_noise(i, ctx);
}

T_TEST(comparison)
{
    struct noise n = {.seed = 70, .sigma = 0.02};
    const char *const q = "model.layers.2.self_attn.q_proj.weight";
    const struct change base[] = {{q, made_noise, &n}, {0}}, flip[] = {{q, flipped, &n}, {0}},
                        step[] = {{q, moved, &n}, {0}}, big[] = {{q, doubled, &n}, {0}};
    const char *a = model("a.safetensors", FR_F16, base, 1);
    o.compare = model("b.safetensors", FR_F16, flip, 1);
    T_FOUND(a, FR_CHECK_DO_NOT, "flipped-bits", q,
            "1 of 4096 elements differ, 1 of them in a single bit of the exponent, the first is "
            "element 100");
    o.compare = model("b.safetensors", FR_F16, base, 1);
    T_FOUND(a, FR_CHECK_PROMOTE, "weights-did-not-move", "", "All 24 tensors");
    o.compare = model("b.safetensors", FR_F16, step, 1);
    T_FOUND(a, FR_CHECK_PROMOTE, "some-weights-did-not-move", "", "23 of 24");
    T_EQ_INT(r.comparisons.n, 1);
    T_EQ_INT(r.comparisons.v[0].diffs.n, 1);
    T_OK(fabs(r.comparisons.v[0].diffs.v[0].relative - 0.025) < 0.005 &&
         r.comparisons.v[0].diffs.v[0].cosine > 0.999);
    o.compare = model("b.safetensors", FR_F16, big, 1);
    T_FOUND(a, FR_CHECK_PROMOTE, "update-too-large", q, "changed by 1 of its norm");
    o.compare = model("b.safetensors", FR_BF16, base, 1);
    T_FOUND(a, FR_CHECK_DO_NOT, "compared-shapes-differ", "model.embed_tokens.weight",
            "another shape or type");
    o.compare = NULL;
}

T_TEST(replicas)
{
    struct noise n = {.seed = 70, .sigma = 0.02};
    const char *const q = "model.layers.2.self_attn.q_proj.weight";
    const struct change base[] = {{q, made_noise, &n}, {0}}, step[] = {{q, moved, &n}, {0}};
    const char *paths[2] = {model("r0.safetensors", FR_F32, base, 1), NULL};
    o.replicas = true;
    paths[1] = model("r1.safetensors", FR_F32, base, 1);
    T_EQ_INT(check_all(paths, 2), 0);
    T_EQ_INT(r.verdict, FR_CHECK_PROMOTE);
    paths[1] = model("r1.safetensors", FR_F32, step, 1);
    T_EQ_INT(check_all(paths, 2), 0);
    T_OK(r.verdict == FR_CHECK_DO_NOT && found("replica-drift") != NULL &&
         fr_sv_eq(found("replica-drift")->tensor, fr_sv_z(q)));
    paths[1] = model("r1.safetensors", FR_F32, NULL, 2);
    T_EQ_INT(check_all(paths, 2), 0);
    T_OK(found("independent-weights") != NULL &&
         fr_sv_eq(found("independent-weights")->tensor, FR_SV("model.embed_tokens.weight")));
    o.replicas = false;
}

T_TEST(the_last_good_step)
{
    struct noise nan = {.seed = 4, .sigma = 0.02, .at = 77, .other = NAN, .set = true};
    const struct change bad[] = {{"model.layers.5.mlp.up_proj.weight", made_noise, &nan}, {0}};
    model("runs/step-100/model.safetensors", FR_F16, NULL, 1);
    model("runs/step-200/model.safetensors", FR_F16, NULL, 2);
    model("runs/step-300/model.safetensors", FR_F16, bad, 3);
    model("runs/step-1000/model.safetensors", FR_F16, bad, 4);
    const char *runs = made_path("runs");
    T_EQ_INT(check(runs), 0);
    T_OK(r.verdict == FR_CHECK_DO_NOT && r.steps.n == 4 && r.chosen == 3 && r.last_good == 1);
    T_OK(r.steps.v[1].step == 200 && r.steps.v[2].verdict == FR_CHECK_DO_NOT &&
         !r.steps.v[0].checked);
    o.step = 100;
    T_EQ_INT(check(runs), 0);
    T_OK(r.verdict == FR_CHECK_PROMOTE && r.chosen == 0 && r.last_good == 0);
    o.step = 150;
    T_EQ_INT(check(runs), -FR_ARG);
    o.step = -1;
}

/* ---- the same answer ---- */

static void json_of(struct fr_buf *out)
{
    const struct fr_check_write_options w = {.width = 100};
    fr_buf_clear(out);
    T_EQ_INT(fr_check_writer_find(FR_SV("json"))->write(&r, &w, out, NULL), 0);
}

T_TEST(threads_and_order_change_nothing)
{
    struct rows_of tail = {{.seed = 3, .sigma = 0.02}, 64, 90, 96};
    const struct change c[] = {{"model.layers.1.mlp.up_proj.weight", some_rows, &tail}, {0}};
    const char *a = model("x1.safetensors", FR_F16, c, 1),
               *b = model("x2.safetensors", FR_F8_E5M2, NULL, 2);
    const char *one[2] = {a, b}, *two[2] = {b, a};
    FR_AUTO(fr_buf) first = FR_BUF_INIT(0);
    FR_AUTO(fr_buf) other = FR_BUF_INIT(0);
    o.threads = 1;
    T_EQ_INT(check_all(one, 2), 0);
    json_of(&first);
    for (unsigned threads = 1; threads < 6; threads++) {
        o.threads = threads;
        T_EQ_INT(check_all(threads % 2 ? two : one, 2), 0);
        json_of(&other);
        T_OK(fr_sv_eq(fr_buf_sv(&first), fr_buf_sv(&other)));
    }
    o.threads = 0;
}

/* A tensor of more than one task (64 MiB), most of it a hole in the file; the odd elements are at
 * both ends of the cuts. */
T_TEST(large_tensors_are_cut)
{
    const size_t columns = 1000, rows = 70000, bytes = rows * columns * 2;
    char header[200];
    const int n =
        snprintf(header, sizeof header,
                 "{\"w.weight\":{\"dtype\":\"F16\",\"shape\":[%zu,%zu],\"data_offsets\":[0,%zu]}}",
                 rows, columns, bytes);
    const uint64_t length = (uint64_t)n;
    const char *path = made_text("large.safetensors", "", 0);
    FILE *f = fopen(path, "r+b");
    fwrite(&length, 8, 1, f);
    fwrite(header, 1, (size_t)n, f);
    static const size_t places[] = {0, 33554000 - 1, 33554000, 69999999};
    for (size_t i = 0; i < 4; i++) {
        const uint16_t inf = 0x7c00;
        fseek(f, (long)(8 + (size_t)n + places[i] * 2), SEEK_SET);
        fwrite(&inf, 2, 1, f);
    }
    fclose(f);
    for (o.threads = 1; o.threads < 4; o.threads++) {
        T_EQ_INT(check(path), 0);
        T_EQ_INT(r.tensors.v[0].inf, 4);
        T_EQ_INT(r.tensors.v[0].zero, 70000000 - 4);
        T_EQ_INT(r.tensors.v[0].rows, 70000);
        T_EQ_INT(r.tensors.v[0].zero_rows, 70000 - 4);
        T_EQ_INT(r.tensors.v[0].first_zero_row, 1);
        T_EQ_INT(r.tensors.v[0].zero_rows_at_end, 0);
    }
    o.threads = 0;
}

/* ---- manifest ---- */

T_TEST(manifest)
{
    const char *path = model("m/model.safetensors", FR_F16, NULL, 1);
    const char *list = made_path("m/manifest.json");
    FR_AUTO(fr_buf) out = FR_BUF_INIT(0);
    T_EQ_INT(fr_check_manifest(&path, 1, list, &out, &err), 0);
    T_OK(fr_sv_has(fr_buf_sv(&out), FR_SV("\"path\": \"model.safetensors\"")));
    made_text("m/manifest.json", out.p, out.n);
    o.manifest = list;
    T_EQ_INT(check(path), 0);
    T_OK(r.verdict == FR_CHECK_PROMOTE && r.findings.n == 0);
    model("m/model.safetensors", FR_F16, NULL, 2);
    T_EQ_INT(check(path), 0);
    T_OK(r.verdict == FR_CHECK_DO_NOT && found("checksum-differs") != NULL);
    made_text("m/manifest.json", "hello\n", 6);
    T_EQ_INT(check(path), -FR_SYNTAX);
    o.manifest = NULL;
}

/* What is wrong with one step is not held against another. */
T_TEST(a_hole_in_an_older_step)
{
    static const char index[] = "{\"weight_map\":{\"model.norm.weight\":\"model-00001-of-00002."
                                "safetensors\",\"x\":\"model-00002-of-00002.safetensors\"}}";
    model("holes/step-100/model-00001-of-00002.safetensors", FR_F16, NULL, 1);
    made_text("holes/step-100/model.safetensors.index.json", index, sizeof index - 1);
    model("holes/step-200/model.safetensors", FR_F16, NULL, 2);
    T_EQ_INT(check(made_path("holes")), 0);
    T_OK(r.verdict == FR_CHECK_PROMOTE && r.steps.n == 2 &&
         r.steps.v[0].verdict == FR_CHECK_DO_NOT);
    o.step = 100;
    T_EQ_INT(check(made_path("holes")), 0);
    T_OK(r.verdict == FR_CHECK_DO_NOT && found("missing-shard") != NULL && r.last_good < 0);
    o.step = -1;
}

T_TEST(memory_ends_anywhere)
{
    struct noise nan = {.seed = 4, .sigma = 0.02, .at = 77, .other = NAN, .set = true};
    const struct change bad[] = {{"model.layers.5.mlp.up_proj.weight", made_noise, &nan}, {0}};
    const char *path =
        with_config("{\"model_type\":\"x\",\"hidden_size\":64,\"dtype\":\"float16\"}", FR_F16, bad);
    o.threads = 1;
    o.compare = made_path("conf/model.safetensors");
    int rc = -1;
    for (long n = 0; n < 3000 && rc != 0; n++) {
        fr_check_release(&r);
        fr_alloc_fail_after(n);
        rc = fr_check_paths(&path, 1, &o, &r, &err);
        fr_alloc_fail_after(-1);
        T_OK(rc == 0 || err.msg[0] != '\0');
    }
    T_EQ_INT(rc, 0);
    o.threads = 0;
    o.compare = NULL;
}

int main(void)
{
    r = (struct fr_check){.arena = FR_ARENA_INIT(0)};
    const int rc = t_run();
    fr_check_release(&r);
    made_clean();
    return rc;
}
