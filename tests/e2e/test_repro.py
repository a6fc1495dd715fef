#!/usr/bin/env python3
"""Reproductions and smoke tests through the program: text, JSON against its schema, SVG, exit codes, suggestions.

  test_repro.py FAULTRANK SOURCE_DIR
"""
import copy, json, os, re, subprocess, sys, tempfile
import xml.etree.ElementTree

import jsonschema

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
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
        (64, ("smoke",), "needs ID"), (64, ("smoke", "gradient-explosion"), "has no smoke test"), (66, ("smoke", "rmsnorm-fp16-variance-overflow", "--config", "no/file"), "cannot open"),
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
    for broken, words in [("{", "line 1"), ("[1]", "no JSON object"), ('{"hidden_size": 1e12}', "hidden must be"), ('{"torch_dtype": "int4"}', "none of float16"),
                          ('{"hidden_size": 3, "hidden_size": 4}', "duplicate")]:
        p = smoke_config(folder, broken)
        check(p.returncode == 65 and words in p.stderr.decode(), f"config {broken}", p.stderr.decode())
    doc = json.loads(smoke_config(folder, llama, "--json").stdout)
    for e in validator.iter_errors(doc):
        check(False, "smoke by the schema", e.message)


def main():
    schema = json.load(open(f"{SOURCE}/schema/repro.schema.json"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(closed(schema))
    with tempfile.TemporaryDirectory(prefix="faultrank-repro-") as folder:
        test_each(validator, folder)
        test_config(validator, folder)
    test_errors()
    own_numbers()
    p = run("repro", "all")
    lines = p.stdout.decode().splitlines()
    check(p.returncode == 0 and len(lines) == len(ids()) and all(line.startswith("ok ") for line in lines), "repro all: a line each", p.stdout.decode())
    print("not ok" if bad else "ok", "- reproductions")
    sys.exit(1 if bad else 0)


main()
