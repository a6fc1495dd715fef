/* SPDX-License-Identifier: Apache-2.0 */
/* check: what is said of a checkpoint with its config.json, and of training settings. */
#include "check_model.h"

T_TEST(config)
{
    struct noise loud = {.seed = 1, .sigma = 40};
    const struct change big[] = {{"model.embed_tokens.weight", made_noise, &loud}, {0}};
    T_FOUND(
        with_config(
            "{\"model_type\":\"x\",\"hidden_size\":64,\"vocab_size\":101,\"num_hidden_layers\":7}",
            FR_F16, NULL),
        FR_CHECK_DO_NOT, "vocabulary-beyond-embedding", "model.embed_tokens.weight",
        "the table has 100 rows");
    T_FOUND(
        with_config("{\"model_type\":\"x\",\"hidden_size\":128,\"vocab_size\":100}", FR_F16, NULL),
        FR_CHECK_DO_NOT, "config-against-shapes", "model.embed_tokens.weight", "64 columns");
    T_FOUND(with_config("{\"model_type\":\"x\",\"num_hidden_layers\":8}", FR_F16, NULL),
            FR_CHECK_DO_NOT, "config-against-layers", "", "end at layer 6");
    T_FOUND(with_config("{\"model_type\":\"x\",\"hidden_size\":64,\"torch_dtype\":\"float16\","
                        "\"rms_norm_eps\":1e-8}",
                        FR_F16, NULL),
            FR_CHECK_PROMOTE, "eps-vanishes", "", "2.98e-8");
    T_FOUND(
        with_config(
            "{\"model_type\":\"x\",\"hidden_size\":64,\"dtype\":\"float16\",\"rms_norm_eps\":1e-6}",
            FR_F16, big),
        FR_CHECK_PROMOTE, "norm-may-overflow", "", "sum of squares");
    T_OK(found("eps-vanishes") == NULL);
    struct noise one = {.seed = 1, .sigma = 0.02, .at = 77, .other = 300, .set = true};
    const struct change element[] = {{"model.embed_tokens.weight", made_noise, &one}, {0}};
    T_FOUND(with_config("{\"model_type\":\"x\",\"hidden_size\":64,\"dtype\":\"float16\"}", FR_F16,
                        element),
            FR_CHECK_PROMOTE, "norm-may-overflow", "", "an element of magnitude 300");
    T_FOUND(with_config("{\"model_type\":\"llama\",\"hidden_size\":64,\"dtype\":\"float16\"}",
                        FR_F16, big),
            FR_CHECK_PROMOTE, "norm-computes-in-fp32", "", "llama");
    T_OK(found("norm-may-overflow") == NULL);
    T_FOUND(with_config("{\"model_type\":\"x\",\"hidden_size\":64,\"dtype\":\"float16\"}", FR_BF16,
                        NULL),
            FR_CHECK_PROMOTE, "dtype-against-config", "", "bf16");
    T_FOUND(with_config("{\"model_type\":", FR_F16, NULL), FR_CHECK_DO_NOT, "malformed-file", "",
            "malformed JSON at byte 14");
    T_EQ_INT(r.findings.n, 1);
    T_FOUND(with_config("{\"in_features\":3}", FR_F16, NULL), FR_CHECK_PROMOTE, "config-not-read",
            "", "No risk was reckoned");
    T_FOUND(with_config("{\"model_type\":\"mamba2\",\"time_step_limit\":[0.0,Infinity]}", FR_F16,
                        NULL),
            FR_CHECK_PROMOTE, "config-not-read", "", "No risk was reckoned");
}

T_TEST(training_settings)
{
    static const struct {
        const char *text, *rule, *words;
    } rows[] = {
        {"{\"fp16\":{\"enabled\":true,\"loss_scale\":131072}}", "loss-scale-settings",
         "fixed at 131072"},
        {"{\"fp16\":{\"enabled\":true,\"min_loss_scale\":0}}", "loss-scale-settings",
         "smallest loss scale is 0"},
        {"{\"fp16\":{\"enabled\":true,\"initial_scale_power\":40}}", "loss-scale-settings",
         "1.09951e+12"},
        {"{\"bf16\":{\"enabled\":true},\"fp16\":{\"enabled\":false,\"loss_scale\":1024}}",
         "bf16-with-loss-scale", "fp16.loss_scale is 1024 beside bf16 enabled and fp16 not: it has "
                                 "no effect"},
        {"{\"bf16\":{\"enabled\":true,\"loss_scale\":1024}}", "bf16-with-loss-scale",
         "bf16.loss_scale is 1024, a key that DeepSpeed's bf16 block does not have"},
        {"{\"bfloat16\":{\"enabled\":1,\"loss_scale\":2}}", "bf16-with-loss-scale", "is 2, a key"},
        {"pretrain_gpt.py --bf16 --loss-scale 1024 --accumulate-allreduce-grads-in-fp32\n",
         "bf16-with-loss-scale", "Megatron scales every loss by it"},
        {"{\"learning_rate\":1e-4,\"deepspeed\":{\"bf16\":{\"enabled\":true,\"loss_scale\":4}}}",
         "bf16-with-loss-scale", "is 4, a key"},
        {"{\"gradient_clipping\":0,\"fp16\":{\"enabled\":\"auto\"}}", "no-clipping", "DeepSpeed"},
        {"{\"per_device_train_batch_size\":4,\"fp16\":true,\"adam_epsilon\":1e-08}",
         "adam-eps-vanishes", "1e-08"},
        {"pretrain_gpt.py --fp16 --clip-grad 1.0\n", "softmax-in-half",
         "--attention-softmax-in-fp32"},
        {"pretrain_gpt.py --bf16 --clip-grad 1.0\n", "gradients-reduced-in-half", "8 bits"},
    };
    const char *path = model("trained.safetensors", FR_F16, NULL, 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        o.config = made_text("settings", rows[i].text, strlen(rows[i].text));
        T_FOUND(path, FR_CHECK_PROMOTE, rows[i].rule, "", rows[i].words);
        T_EQ_INT(r.findings.n, 1);
    }
    static const struct {
        const char *text, *words;
    } both[] = {
        {"{\"fp16\":{\"enabled\":true},\"bf16\":{\"enabled\":true}}", "modes cannot be"},
        {"{\"fp16\":{\"enabled\":1},\"bf16\":{\"enabled\":true}}", "modes cannot be"},
        {"{\"learning_rate\":1e-4,\"fp16\":true,\"bf16\":true}", "At most one of fp16 and bf16"},
        {"pretrain_gpt.py --fp16 --bf16\n", "Megatron's check of its arguments"},
    };
    for (size_t i = 0; i < sizeof both / sizeof both[0]; i++) {
        o.config = made_text("settings", both[i].text, strlen(both[i].text));
        T_FOUND(path, FR_CHECK_DO_NOT, "precision-settings-conflict", "", both[i].words);
    }
    o.config = made_text("settings", "hello", 5);
    T_EQ_INT(check(path), -FR_SYNTAX);
    o.config = NULL;
}

int main(void)
{
    r = (struct fr_check){.arena = FR_ARENA_INIT(0)};
    const int rc = t_run();
    fr_check_release(&r);
    made_clean();
    return rc;
}
