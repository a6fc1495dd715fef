/* SPDX-License-Identifier: Apache-2.0 */
/* Smoke tests: each passes, fails and cannot tell, and a changed size flips the answer; what files
 * say about a run reaches them. */
#include "support/t.h"

#include "cli/model_config.h"
#include "repro/lab.h"
#include "tensor/config.h"

#include <math.h>
#include <unistd.h>

enum { PASS, FAIL, UNKNOWN };

/* Runs id's smoke test; facts: "lr=0.1 scale=4 ...". want NULL: only the exit. */
static int run(struct fr_smoke *s, const char *id, const char *facts, const char *claim)
{
    const struct fr_repro *p = fr_repro_find(fr_sv_z(id));
    struct fr_result r;
    struct fr_err err = {0};
    if (p == NULL) {
        T_FAIL("there is no %s", id);
        return -1;
    }
    for (fr_sv rest = fr_sv_z(facts), one, name, text; rest.n > 0;) {
        double v = 0;
        fr_sv_cut(rest, ' ', &one, &rest);
        T_OK(fr_sv_cut(one, '=', &name, &text) && fr_sv_take_double(&text, &v));
        T_EQ_INT(fr_smoke_set(s, name, v, &err), 0);
    }
    fr_result_init(&r);
    T_EQ_INT(fr_smoke_run(p, s, &r, &err), 0);
    T_OK(r.claims > 0);
    const struct fr_claim *c = claim != NULL ? fr_result_find(&r, claim) : NULL;
    T_OK(claim == NULL || c != NULL);
    const int exit = claim == NULL ? fr_smoke_exit(&r) : c == NULL ? -1 : c->held ? 0 : c->unknown ? 2 : 1;
    fr_result_release(&r);
    return exit;
}

/* With nothing said but dtype (0: not even that), policy and facts. */
static int smoke(const char *id, uint32_t dtype, int policy, const char *facts)
{
    struct fr_smoke s;
    fr_smoke_defaults(&s);
    s.policy = policy;
    if (dtype != 0) {
        s.dtype = dtype;
        s.from.dtype = "option";
    }
    return run(&s, id, facts, NULL);
}

T_TEST(loss_scale_collapse)
{
    const char *id = "loss-scale-collapse";
    const char *scaler = "scale=1000 grad-max=1 initial-scale=65536 min-scale=1 window=1000 hysteresis=2";
    T_EQ_INT(smoke(id, FR_F16, -1, scaler), PASS);
    T_EQ_INT(smoke(id, FR_F16, -1, "scale=70000 grad-max=1 initial-scale=65536 min-scale=1 window=1000 hysteresis=2"), FAIL);
    T_EQ_INT(smoke(id, FR_F16, -1, "scale=1000 grad-max=70000 initial-scale=65536 min-scale=1 window=1000 hysteresis=2"), FAIL);
    T_EQ_INT(smoke(id, FR_F16, -1, "scale=1000 grad-max=1 initial-scale=65536 min-scale=1 window=1 hysteresis=1"), FAIL);
    T_EQ_INT(smoke(id, FR_F16, -1, "scale=1000 grad-max=1 initial-scale=1e30 min-scale=1 window=1000 hysteresis=2"), FAIL);
    T_EQ_INT(smoke(id, FR_F16, -1, "scale=1000 grad-max=1 loss-scale=65504"), PASS);
    T_EQ_INT(smoke(id, FR_F16, -1, "scale=1000 grad-max=1 loss-scale=65536"), FAIL);
    T_EQ_INT(smoke(id, FR_F16, -1, "scale=1000"), UNKNOWN);
    T_EQ_INT(smoke(id, FR_F16, -1, "initial-scale=65536"), UNKNOWN);
    T_EQ_INT(smoke(id, 0, -1, scaler), UNKNOWN);
    T_EQ_INT(smoke(id, FR_BF16, -1, ""), PASS);
    T_EQ_INT(smoke(id, FR_BF16, -1, "loss-scale=1024"), FAIL);
}

T_TEST(fp16_grad_underflow)
{
    const char *id = "fp16-grad-underflow";
    T_EQ_INT(smoke(id, FR_F16, -1, "loss-scale=65536 grad=1e-9"), PASS);
    T_EQ_INT(smoke(id, FR_F16, -1, "loss-scale=1 grad=1e-9"), FAIL);
    T_EQ_INT(smoke(id, FR_F16, -1, "loss-scale=1 grad=2.98023223876953125e-8"), FAIL); /* 2^-25 */
    T_EQ_INT(smoke(id, FR_F16, -1, "loss-scale=1 grad=1e-6"), PASS);
    const char *sizes = "loss-scale=128 vocab=32000 seq=4096 micro-batch=4 accumulation=8";
    T_EQ_INT(smoke(id, FR_F16, -1, sizes), FAIL);
    T_EQ_INT(smoke(id, FR_F16, -1, "loss-scale=65536 vocab=32000 seq=4096 micro-batch=4 accumulation=8"), PASS);
    T_EQ_INT(smoke(id, FR_F16, -1, "loss-scale=128 vocab=32000 seq=64 micro-batch=1 accumulation=1"), PASS);
    T_EQ_INT(smoke(id, FR_F16, -1, "loss-scale=0 grad=1e-9"), UNKNOWN);
    T_EQ_INT(smoke(id, FR_F16, -1, "loss-scale=65536"), UNKNOWN);
    T_EQ_INT(smoke(id, FR_F16, -1, "grad=1e-9"), UNKNOWN);
    T_EQ_INT(smoke(id, 0, -1, "loss-scale=1 grad=1e-9"), UNKNOWN);
    T_EQ_INT(smoke(id, FR_BF16, -1, ""), PASS);
}

T_TEST(adamw_eps_fp16)
{
    const char *id = "adamw-eps-fp16", *usual = "adam-eps=1e-8 beta1=0.9 beta2=0.999";
    T_EQ_INT(smoke(id, 0, 0, usual), FAIL);
    T_EQ_INT(smoke(id, 0, 1, usual), PASS);
    T_EQ_INT(smoke(id, 0, 2, usual), PASS);
    T_EQ_INT(smoke(id, 0, 0, "adam-eps=1e-4 beta1=0.9 beta2=0.999"), FAIL); /* finite, 54 times too long */
    T_EQ_INT(smoke(id, 0, 0, "adam-eps=1e-3 beta1=0.9 beta2=0.999"), PASS);
    T_EQ_INT(smoke(id, 0, 2, "adam-eps=0 beta1=0.9 beta2=0.999"), FAIL);
    T_EQ_INT(smoke(id, 0, 2, "adam-eps=1e-8"), UNKNOWN);
    T_EQ_INT(smoke(id, 0, 2, "beta1=0.9 beta2=0.999"), UNKNOWN);
    T_EQ_INT(smoke(id, FR_F16, -1, usual), UNKNOWN);
}

T_TEST(bf16_update_rounding_stall)
{
    const char *id = "bf16-update-rounding-stall";
    T_EQ_INT(smoke(id, FR_BF16, 0, "lr=1e-3 weight=0.02"), PASS);
    T_EQ_INT(smoke(id, FR_BF16, 0, "lr=1e-5 weight=0.02"), FAIL);
    T_EQ_INT(smoke(id, FR_BF16, 0, "lr=1e-3 weight=1"), FAIL);
    T_EQ_INT(smoke(id, FR_BF16, 1, "lr=1e-5 weight=0.02"), PASS);
    T_EQ_INT(smoke(id, FR_BF16, 0, "lr=1e-3 weight=0.02 min-lr=1e-6"), FAIL);
    T_EQ_INT(smoke(id, FR_F32, -1, "lr=1e-5 weight=0.02"), PASS);
    T_EQ_INT(smoke(id, FR_BF16, -1, "lr=1e-3 weight=0.02"), UNKNOWN);
    T_EQ_INT(smoke(id, FR_BF16, 0, "lr=1e-3"), UNKNOWN);
    T_EQ_INT(smoke(id, 0, 0, "lr=1e-3 weight=0.02"), UNKNOWN);
}

T_TEST(fp8_amax_overflow)
{
    const char *id = "fp8-amax-overflow";
    T_EQ_INT(smoke(id, 0, 0, ""), PASS);
    T_EQ_INT(smoke(id, 0, 1, "margin=0 history=16 growth=1"), PASS);
    T_EQ_INT(smoke(id, 0, 1, "margin=0 history=16 growth=1.1"), FAIL);
    T_EQ_INT(smoke(id, 0, 1, "margin=3 history=16 growth=8"), PASS);
    T_EQ_INT(smoke(id, 0, 1, "margin=3 history=16 growth=10"), FAIL);
    T_EQ_INT(smoke(id, 0, 1, "margin=20 history=16 growth=10"), FAIL); /* flushed */
    T_EQ_INT(smoke(id, 0, 2, "growth=1000"), PASS);
    T_EQ_INT(smoke(id, 0, 3, "growth=1000"), PASS);
    T_EQ_INT(smoke(id, 0, 1, "margin=0 history=16"), UNKNOWN);
    T_EQ_INT(smoke(id, 0, -1, "margin=0 history=16 growth=1"), UNKNOWN);
}

T_TEST(contrastive_temperature_collapse)
{
    const char *id = "contrastive-temperature-collapse";
    T_EQ_INT(smoke(id, FR_F16, -1, "clamp=100 pairs=32768"), PASS);
    T_EQ_INT(smoke(id, FR_F16, -1, "clamp=70000 pairs=32768"), FAIL);
    T_EQ_INT(smoke(id, FR_BF16, -1, "clamp=70000 pairs=32768"), PASS);
    T_EQ_INT(smoke(id, FR_F16, -1, "clamp=1 pairs=512"), FAIL);
    T_EQ_INT(smoke(id, FR_F16, 0, "logit-scale=14.3 lr=5e-4 steps=100000 pairs=512"), FAIL);
    T_EQ_INT(smoke(id, FR_F16, 0, "logit-scale=14.3 lr=5e-4 steps=1000 pairs=512"), PASS);
    T_EQ_INT(smoke(id, FR_F16, -1, "pairs=512"), UNKNOWN);
    T_EQ_INT(smoke(id, FR_F16, 0, "logit-scale=14.3 pairs=512"), UNKNOWN);
    T_EQ_INT(smoke(id, FR_F16, -1, "clamp=100"), UNKNOWN);
    T_EQ_INT(smoke(id, 0, -1, "clamp=100 pairs=512"), UNKNOWN);
}

T_TEST(moe_router_collapse)
{
    const char *id = "moe-router-collapse";
    T_EQ_INT(smoke(id, 0, -1, "experts=8 top-k=2 aux=0.01 hidden=256 seq=2048 micro-batch=1"), PASS);
    T_EQ_INT(smoke(id, 0, -1, "experts=8 top-k=2 aux=0 hidden=256 seq=2048 micro-batch=1"), FAIL);
    T_EQ_INT(smoke(id, 0, 0, "experts=8 top-k=2 aux=0.01 hidden=256 seq=2048 micro-batch=1"), FAIL);
    T_EQ_INT(smoke(id, 0, -1, "experts=64 top-k=2 aux=0.01 hidden=256 seq=2048 micro-batch=1 shared=0.9"), FAIL);
    T_EQ_INT(smoke(id, 0, -1, "experts=64 top-k=2 aux=0.01 hidden=256 seq=2048 micro-batch=1 shared=0.01"), PASS);
    T_EQ_INT(smoke(id, 0, -1, "experts=64 top-k=2 aux=0.01 hidden=256 seq=64 micro-batch=1"), UNKNOWN);
    T_EQ_INT(smoke(id, 0, -1, "experts=8 top-k=2 hidden=256 seq=2048 micro-batch=1"), UNKNOWN);
    T_EQ_INT(smoke(id, 0, 1, "experts=8 hidden=256 seq=2048 micro-batch=1"), UNKNOWN);
}

T_TEST(ignore_index_all_masked)
{
    const char *id = "ignore-index-all-masked", *batch = "seq=128 micro-batch=2 accumulation=4";
    T_EQ_INT(smoke(id, 0, 0, batch), FAIL);
    T_EQ_INT(smoke(id, 0, 1, batch), PASS);
    T_EQ_INT(smoke(id, 0, 2, batch), PASS);
    T_EQ_INT(smoke(id, 0, -1, batch), UNKNOWN);
    T_EQ_INT(smoke(id, 0, 0, "seq=128 micro-batch=2 labels=1"), PASS);
    T_EQ_INT(smoke(id, 0, -1, "seq=128 micro-batch=2 labels=1"), PASS);
    T_EQ_INT(smoke(id, 0, 1, "seq=128 micro-batch=2 ignore-index=0 vocab=32000"), FAIL);
    T_EQ_INT(smoke(id, 0, 1, "seq=128 micro-batch=2 ignore-index=32000 vocab=32000"), PASS);
    T_EQ_INT(smoke(id, 0, 1, "seq=128 micro-batch=2 ignore-index=0"), UNKNOWN);
    T_EQ_INT(smoke(id, 0, 1, "micro-batch=2"), UNKNOWN);
}

T_TEST(gradient_explosion)
{
    const char *id = "gradient-explosion";
    T_EQ_INT(smoke(id, 0, -1, "clip=1 grad-norm=0.5"), PASS);
    T_EQ_INT(smoke(id, 0, -1, "clip=1 grad-norm=0.05"), FAIL);
    T_EQ_INT(smoke(id, 0, -1, "clip=0 grad-norm=0.5"), FAIL);
    T_EQ_INT(smoke(id, 0, 0, "clip=1 grad-norm=0.5"), FAIL);
    T_EQ_INT(smoke(id, 0, -1, "clip=1"), UNKNOWN);
    T_EQ_INT(smoke(id, 0, -1, "grad-norm=0.5"), UNKNOWN);
    T_EQ_INT(smoke(id, FR_F16, -1, "clip=1 grad-norm=0.5 gain=1.1 layers=32 grad-max=1"), PASS);
    T_EQ_INT(smoke(id, FR_F16, -1, "clip=1 grad-norm=0.5 gain=1.5 layers=32 grad-max=1"), FAIL);
    T_EQ_INT(smoke(id, FR_BF16, -1, "clip=1 grad-norm=0.5 gain=1.5 layers=32 grad-max=1"), PASS);
    T_EQ_INT(smoke(id, FR_BF16, -1, "clip=1 grad-norm=0.5 gain=1.5 grad-max=1"), UNKNOWN);
}

/* ---- what files say ---- */

static int take(struct fr_smoke *s, const char *first, const char *second)
{
    const char *texts[] = {first, second};
    char path[64];
    struct fr_arena arena = FR_ARENA_INIT(0);
    struct fr_config c;
    struct fr_err err = {0};
    int rc = 0;
    fr_config_init(&c);
    fr_smoke_defaults(s);
    for (int i = 0; i < 2 && rc == 0; i++) {
        snprintf(path, sizeof path, "/tmp/fr-smoke-%ld", (long)getpid());
        FILE *f = texts[i] != NULL ? fopen(path, "we") : NULL;
        if (f != NULL) {
            fputs(texts[i], f);
            fclose(f);
            rc = fr_config_read(&c, path, &arena, &err);
            unlink(path);
        }
    }
    rc = rc == 0 ? fr_model_take(&c, s, &err) : rc;
    T_OK(rc == 0 || err.msg[0] != '\0');
    fr_arena_release(&arena);
    return rc;
}

static const char model[] =
    "{\"model_type\":\"mixtral\",\"hidden_size\":256,\"num_hidden_layers\":4,\"vocab_size\":1000,"
    "\"torch_dtype\":\"bfloat16\",\"max_position_embeddings\":4096,\"num_local_experts\":8,"
    "\"num_experts_per_tok\":2,\"router_aux_loss_coef\":0.02,\"initializer_range\":0.02";

T_TEST(deepspeed_says)
{
    struct fr_smoke s;
    char text[600];
    snprintf(text, sizeof text, "%s}", model);
    T_EQ_INT(take(&s, text,
                  "{\"train_micro_batch_size_per_gpu\":4,\"gradient_accumulation_steps\":2,\"fp16\":{\"enabled\":true,"
                  "\"initial_scale_power\":20,\"hysteresis\":3},\"gradient_clipping\":0.5,\"optimizer\":{\"params\":"
                  "{\"lr\":1e-4,\"eps\":1e-7,\"betas\":[0.8,0.95]}}}"),
             0);
    T_OK(s.dtype == FR_F16 && s.stored == FR_BF16 && s.masters == 1 && s.states == FR_F32 && s.scaler == 1);
    T_OK(s.lr == 1e-4 && s.adam_eps == 1e-7 && s.beta1 == 0.8 && s.beta2 == 0.95 && s.clip == 0.5);
    T_OK(s.initial_scale == 1048576 && s.hysteresis == 3 && s.window == 1000 && s.min_scale == 1);
    T_OK(s.micro_batch == 4 && s.accumulation == 2 && s.seq == 4096 && s.vocab == 1000 && s.weight == 0.02);
    T_EQ_INT(run(&s, "loss-scale-collapse", "scale=10 grad-max=1e-3", "same-range"), FAIL);
    T_EQ_INT(run(&s, "loss-scale-collapse", "", "search-ends"), PASS);
    T_EQ_INT(run(&s, "adamw-eps-fp16", "", NULL), PASS);
    T_EQ_INT(take(&s, NULL, "{\"fp16\":{\"enabled\":true,\"fp16_master_weights_and_grads\":true}}"), 0);
    T_OK(s.masters == 0 && s.states == 0 && s.clip == 0 && isnan(s.lr));
}

T_TEST(training_arguments_say)
{
    struct fr_smoke s;
    char text[600];
    const char *args = "{\"output_dir\":\"x\",\"fp16\":false,\"bf16\":true,\"learning_rate\":1e-5,\"adam_epsilon\":1e-8,"
                       "\"max_steps\":-1,\"per_device_train_batch_size\":8,\"max_grad_norm\":1.0}";
    snprintf(text, sizeof text, "%s}", model);
    T_EQ_INT(take(&s, text, args), 0);
    T_OK(s.dtype == FR_BF16 && s.masters == -1 && s.states == 0 && isnan(s.steps) && s.beta2 == 0.999);
    T_EQ_INT(run(&s, "bf16-update-rounding-stall", "", NULL), UNKNOWN);
    s.policy = 0;
    T_EQ_INT(run(&s, "bf16-update-rounding-stall", "", NULL), FAIL);
    s.policy = -1;
    T_EQ_INT(run(&s, "moe-router-collapse", "", "balanced"), FAIL); /* output_router_logits */
    snprintf(text, sizeof text, "%s,\"output_router_logits\":true}", model);
    T_EQ_INT(take(&s, text, args), 0);
    T_EQ_INT(run(&s, "moe-router-collapse", "", NULL), PASS);
}

T_TEST(megatron_says)
{
    struct fr_smoke s;
    const char *line = "--num-layers 24 --hidden-size 2048 --seq-length 2048 --micro-batch-size 4 --lr 1e-4 --min-lr 1e-6 "
                       "--bf16 --fp8-format hybrid --fp8-margin 2 --fp8-amax-history-len 16 --fp8-amax-compute-algo max "
                       "--num-experts 8 --moe-router-topk 2 --moe-aux-loss-coeff 1e-2";
    T_EQ_INT(take(&s, NULL, line), 0);
    T_OK(s.dtype == FR_BF16 && s.masters == 1 && s.layers == 24 && s.seq == 2048 && s.min_lr == 1e-6);
    T_OK(s.fp8 == FR_SMOKE_FP8_DELAYED && s.fp8_hybrid == 1 && s.fp8_recent == 0 && s.margin == 2 && s.history == 16);
    T_OK(s.experts == 8 && s.top_k == 2 && s.aux == 0.01 && s.balancing == 1 && s.clip == 1 && s.weight == 0.02);
    T_EQ_INT(run(&s, "fp8-amax-overflow", "growth=4", NULL), PASS);
    T_EQ_INT(run(&s, "fp8-amax-overflow", "growth=5", "gradients-fit"), FAIL);
    T_EQ_INT(run(&s, "moe-router-collapse", "", NULL), PASS);
    T_EQ_INT(take(&s, NULL, "--fp16 --num-experts 8 --exp-avg-sq-dtype fp16 --main-params-dtype fp16"), 0);
    T_OK(s.balancing == 0 && s.states == FR_F16 && s.masters == 0 && s.fp8 == FR_SMOKE_FP8_OFF);
    T_EQ_INT(run(&s, "adamw-eps-fp16", "", "eps-kept"), FAIL);
    T_EQ_INT(take(&s, NULL, "--bf16 --num-experts 8 --moe-router-load-balancing-type sinkhorn --fp8-format e4m3 --fp8-recipe mxfp8"), 0);
    T_OK(s.balancing == 1 && s.fp8 == FR_SMOKE_FP8_MX);
}

T_TEST(bad_files)
{
    struct fr_smoke s;
    T_OK(take(&s, "{\"hidden_size\":1e12}", NULL) == -FR_SYNTAX);
    T_OK(take(&s, "{\"torch_dtype\":\"int4\"}", NULL) == -FR_SYNTAX);
    T_OK(take(&s, "{\"hidden_size\":3,\"hidden_size\":4}", NULL) == -FR_SYNTAX);
    T_OK(take(&s, "{\"fp16\":{\"enabled\":true},\"bf16\":{\"enabled\":true}}", NULL) == -FR_SYNTAX);
    T_OK(take(&s, "{\"learning_rate\":-1}", NULL) == -FR_SYNTAX);
    T_OK(take(&s, "hello", NULL) == -FR_SYNTAX);
}

int main(void)
{
    return t_run();
}
