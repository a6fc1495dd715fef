#!/usr/bin/env python3
"""Reproductions and smoke tests through the program: text, JSON against its schema, SVG, exit codes, suggestions.

  test_repro.py FAULTRANK SOURCE_DIR
"""
import copy, json, os, re, subprocess, sys, tempfile
import xml.etree.ElementTree

import jsonschema

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import usage

PROGRAM, SOURCE = usage.arguments(__doc__, "FAULTRANK", "SOURCE_DIR")
bad = 0


def check(ok, what, detail=""):
    global bad
    if not ok:
        bad += 1
        print("not ok -", what, detail[:300])


def run(*args, folder=None):
    env = dict(os.environ, TERM="dumb", LC_ALL="C")
    return subprocess.run([PROGRAM, *args], cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=300)


def closed(schema):
    """What we write must all be described: no object may have further fields, but for maps."""
    if isinstance(schema, dict):
        out = {k: closed(v) for k, v in schema.items()}
        if schema.get("type") == "object" and "properties" in schema:
            out["additionalProperties"] = False
        return out
    return [closed(v) for v in schema] if isinstance(schema, list) else copy.copy(schema)


def ids():
    return re.findall(r"^([a-z0-9-]+)  ", run("repro").stdout.decode(), re.M)


def test_each(validator, folder):
    names = ids()
    check(len(names) >= 14, "at least fourteen reproductions", str(names))
    for name in names:
        p = run("repro", name, "--json", "--svg", "picture.svg", folder=folder)
        check(p.returncode == 0, f"{name} exits with 0", p.stderr.decode())
        doc = json.loads(p.stdout)
        for e in validator.iter_errors(doc):
            check(False, f"{name} by the schema", f"{list(e.absolute_path)}: {e.message}")
        check([a["act"] for a in doc["acts"]] == ["fails", "why", "fix"], f"{name} has three acts")
        kinds = [i["kind"] for a in doc["acts"] for i in a["items"]]
        check(kinds.count("claim") == doc["claims"] == doc["held"], f"{name}: claims are counted")
        check("series" in kinds or "trace" in kinds, f"{name} has something to draw")
        picture(name, open(os.path.join(folder, "picture.svg")).read())
        text = run("repro", name)
        check(text.returncode == 0 and b"\x1b" not in text.stdout, f"{name} in text, no colours into a pipe")
        check(text.stdout == run("repro", name).stdout, f"{name} prints the same twice")
        words = text.stdout.decode()
        check(all(w in words for w in ("\nIt fails: ", "\nWhy: ", "\nThe fix: ")) and "it behaves as its page claims" in words, f"{name}: acts and verdict")
        check(max(len(line) for line in words.splitlines()) <= 160, f"{name}: no line runs away")


def own_numbers():
    """Numbers that do not fail are good news for whoever brought them, not a broken page."""
    p = run("repro", "rmsnorm-fp16-variance-overflow", "--scale", "10")
    check(p.returncode == 1 and b"with these numbers it does not go as its page says" in p.stdout, "own numbers that do not fail", p.stdout[-200:].decode())


def picture(name, svg):
    try:
        root = xml.etree.ElementTree.fromstring(svg)
    except xml.etree.ElementTree.ParseError as e:
        check(False, f"{name}: SVG is well-formed", str(e))
        return
    tags = {e.tag.split("}")[1] for e in root.iter()}
    check(tags <= {"svg", "title", "style", "rect", "line", "polyline", "text"}, f"{name}: SVG holds only shapes and text", str(tags))
    keys = {k for e in root.iter() for k in e.attrib}
    check(not any(k.startswith("on") or "href" in k for k in keys) and "url(" not in svg and "nan" not in svg, f"{name}: SVG is inert", str(keys))
    check("polyline" in tags or "rect" in tags, f"{name}: SVG draws something")


def test_errors():
    for want, args, words in [
        (64, ("repro", "rmsnorm-fp16-variance-overflw"), "did you mean 'rmsnorm-fp16-variance-overflow'"),
        (64, ("repro", "cuda-oom"), "has no reproduction"), (64, ("repro", "zzz"), "'faultrank repro' lists them"),
        (64, ("repro", "rmsnorm-fp16-variance-overflow", "--hidden", "0"), "whole number from 64"),
        (64, ("repro", "rmsnorm-fp16-variance-overflow", "--policy", "x"), "--policy can be float"),
        (64, ("repro", "gradient-explosion", "--loss-scale", "2"), "has no parameter 'loss-scale'"),
        (64, ("repro", "gradient-explosion", "--set", "rate"), "NAME=VALUE"), (64, ("repro", "gradient-explosion", "--set", "colour=1"), "has no parameter"),
        (64, ("smoke",), "needs ID"), (64, ("smoke", "fsdp-divergent-init"), "has no smoke test"), (2, ("smoke", "gradient-explosion"), ""),
        (64, ("smoke", "gradient-explosion", "--set", "clip"), "--set takes NAME=X"), (64, ("smoke", "gradient-explosion", "--set", "clap=1"), "no size or fact 'clap'"),
        (64, ("smoke", "gradient-explosion", "--set", "clip=much"), "not followed by a number"), (64, ("smoke", "gradient-explosion", "--set", "clip=-1"), "clip must be"),
        (0, ("smoke", "gradient-explosion", "--facts"), ""),
        (66, ("smoke", "rmsnorm-fp16-variance-overflow", "--config", "no/file"), "cannot be opened"),
        (64, ("smoke", "rmsnorm-fp16-variance-overflow", "--hidden", "-3"), "hidden must be"), (64, ("smoke", "rmsnorm-fp16-variance-overflow", "--dtype", "int8"), "fp16, bf16, fp32"),
        (74, ("repro", "gradient-explosion", "--svg", "/nonexistent/x.svg"), "cannot create"),
        (1, ("repro", "rmsnorm-fp16-variance-overflow", "--scale", "10"), ""), (1, ("smoke", "rmsnorm-fp16-variance-overflow", "--scale", "300", "--policy", "pow-mean"), ""),
        (0, ("smoke", "rmsnorm-fp16-variance-overflow", "--scale", "300", "--policy", "float"), ""), (0, ("repro", "rmsnorm-fp16-variance-overflow", "--params"), ""),
        (0, ("repro", "gradient-explosion", "--set", "length=16,rate=0.4"), ""),
    ]:
        p = run(*args)
        check(p.returncode == want, f"{' '.join(args)}: exit {p.returncode}, not {want}", p.stderr.decode())
        check(words in p.stderr.decode(), f"{' '.join(args)} says '{words}'", p.stderr.decode())


def smoke_config(folder, config, *more):
    with open(os.path.join(folder, "config.json"), "w") as f:
        f.write(config if isinstance(config, str) else json.dumps(config))
    return run("smoke", "rmsnorm-fp16-variance-overflow", "--config", "config.json", *more, folder=folder)


def test_config(validator, folder):
    llama = {"model_type": "llama", "hidden_size": 8192, "torch_dtype": "float16", "rms_norm_eps": 1e-5}
    own = dict(llama, model_type="house-model")
    check(smoke_config(folder, llama, "--scale", "500").returncode == 0, "llama's norm casts first")
    check(smoke_config(folder, own, "--scale", "500").returncode == 1, "an unknown model's may not")
    check(smoke_config(folder, dict(own, torch_dtype="bfloat16"), "--scale", "500").returncode == 0, "bf16 holds it")
    check(smoke_config(folder, dict(own, rms_norm_eps=1e-12)).returncode == 1, "an eps that vanishes in half")
    check("hidden size 64," in smoke_config(folder, {"text_config": {"hidden_size": 64}}).stdout.decode(), "sizes of a text model inside another")
    check("hidden size 128," in smoke_config(folder, llama, "--hidden", "128").stdout.decode(), "an option overrides the file")
    for broken, words in [("{", "line 1"), ("[1]", "neither a model's config.json"), ('{"hidden_size": 1e12}', "hidden must be"), ('{"torch_dtype": "int4"}', "none of float16"),
                          ('{"hidden_size": 3, "hidden_size": 4}', "duplicate")]:
        p = smoke_config(folder, broken)
        check(p.returncode == 65 and words in p.stderr.decode(), f"config {broken}", p.stderr.decode())
    doc = json.loads(smoke_config(folder, llama, "--json").stdout)
    for e in validator.iter_errors(doc):
        check(False, "smoke by the schema", e.message)


SETTINGS = {
    "config.json": {"model_type": "mixtral", "hidden_size": 256, "num_hidden_layers": 4, "vocab_size": 32000, "torch_dtype": "float16", "max_position_embeddings": 2048,
                    "num_local_experts": 8, "num_experts_per_tok": 2, "router_aux_loss_coef": 0.02, "output_router_logits": True, "initializer_range": 0.02},
    "hf.json": {"output_dir": "x", "fp16": True, "learning_rate": 3e-4, "adam_epsilon": 1e-8, "per_device_train_batch_size": 4, "gradient_accumulation_steps": 8, "max_grad_norm": 1.0},
    "ds.json": {"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2, "bf16": {"enabled": True}, "optimizer": {"params": {"lr": 1e-4, "eps": 1e-8, "betas": [0.9, 0.95]}}},
    "megatron.txt": "--num-layers 24 --hidden-size 256 --seq-length 2048 --micro-batch-size 4 --lr 1e-4 --bf16 --fp8-format hybrid --num-experts 8 --clip-grad 1.0",
}


def test_settings(validator, folder):
    """Each of the nine: what three kinds of files decide, and what an option adds."""
    for name, value in SETTINGS.items():
        with open(os.path.join(folder, name), "w") as f:
            f.write(value if isinstance(value, str) else json.dumps(value))
    rows = [
        ("loss-scale-collapse", "config.json,hf.json", 2, ("--set", "grad-max=0.1", "--scale", "900"), 0), ("loss-scale-collapse", "config.json,ds.json", 0, (), 0),
        ("fp16-grad-underflow", "config.json,hf.json", 0, ("--set", "loss-scale=1"), 1), ("fp16-grad-underflow", "hf.json", 2, ("--set", "grad=1e-9"), 0),
        ("adamw-eps-fp16", "config.json,hf.json", 0, ("--policy", "fp16"), 1), ("adamw-eps-fp16", "config.json", 2, ("--policy", "fp32"), 2),
        ("bf16-update-rounding-stall", "megatron.txt", 0, ("--policy", "pure", "--set", "lr=1e-6"), 1), ("bf16-update-rounding-stall", "config.json", 2, ("--policy", "pure", "--set", "lr=1"), 0),
        ("fp8-amax-overflow", "megatron.txt", 2, ("--set", "growth=2"), 1), ("fp8-amax-overflow", "megatron.txt", 2, ("--set", "growth=2,margin=1"), 0),
        ("contrastive-temperature-collapse", "config.json,hf.json", 2, ("--set", "clamp=100,pairs=4096"), 0),
        ("moe-router-collapse", "config.json,hf.json", 0, ("--set", "shared=0.95"), 1), ("moe-router-collapse", "megatron.txt", 1, ("--policy", "aux-loss"), 0),
        ("ignore-index-all-masked", "config.json,hf.json", 2, ("--policy", "mean"), 1), ("ignore-index-all-masked", "megatron.txt", 2, ("--policy", "sum-over-count"), 0),
        ("gradient-explosion", "hf.json", 2, ("--set", "grad-norm=0.4"), 0), ("gradient-explosion", "ds.json", 1, ("--set", "clip=1,grad-norm=0.01"), 1),
    ]
    for ident, files, want, more, then in rows:
        for options, status in (((), want), (more, then)):
            p = run("smoke", ident, "--config", files, *options, folder=folder)
            text = p.stdout.decode()
            check(p.returncode == status, f"smoke {ident} --config {files} {' '.join(options)}: exit {p.returncode}, not {status}", text + p.stderr.decode())
            check(("[FAILS]" in text) == (status == 1) and (status != 2 or "[  ?  ]" in text), f"smoke {ident} {files}: the lines say so", text)
            check(status != 2 or re.search(r"give\s", text), f"smoke {ident} {files}: it names an option", text)
            doc = json.loads(run("smoke", ident, "--config", files, *options, "--json", folder=folder).stdout)
            for e in validator.iter_errors(doc):
                check(False, f"smoke {ident} by the schema", e.message)
            check(doc["as_claimed"] == (status == 0) and (doc.get("unknown", 0) > 0 or status != 2), f"smoke {ident} {files}: JSON says so")
    p = run("smoke", "adamw-eps-fp16", "--config", "config.json,no.json", folder=folder)
    check(p.returncode == 66, "a second file that is not there", p.stderr.decode())


def main():
    schema = json.load(open(f"{SOURCE}/schema/repro.schema.json"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(closed(schema))
    with tempfile.TemporaryDirectory(prefix="faultrank-repro-") as folder:
        test_each(validator, folder)
        test_config(validator, folder)
        test_settings(validator, folder)
    test_errors()
    own_numbers()
    p = run("repro", "all")
    lines = p.stdout.decode().splitlines()
    check(p.returncode == 0 and len(lines) == len(ids()) and all(line.startswith("ok ") for line in lines), "repro all: a line each", p.stdout.decode())
    print("not ok" if bad else "ok", "- reproductions")
    sys.exit(1 if bad else 0)


main()
