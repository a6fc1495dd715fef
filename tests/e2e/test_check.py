#!/usr/bin/env python3
"""`faultrank check` as its users meet it: real files, crafted ones, hostile ones.

  test_check.py FAULTRANK SOURCE_DIR
"""
import hashlib, io, json, math, os, re, shutil, struct, subprocess, sys, tempfile, zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import make_sandbox
import usage
from make_sandbox import half_weights, safetensors, small_model, write

PROGRAM, SOURCE = usage.arguments(__doc__, "FAULTRANK", "SOURCE_DIR")
FIXTURES = SOURCE + "/tests/fixtures/tensor"
FORMATS = ("text", "json", "html", "sarif")
bad = 0


def check(ok, what, detail=""):
    global bad
    if not ok:
        bad += 1
        print("not ok -", what, str(detail)[:800])


class Box:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="faultrank-check-")
        make_sandbox.make(self.folder)

    def run(self, *args):
        env = {**os.environ, "TERM": "xterm", "LC_ALL": "C"}
        return subprocess.run([PROGRAM, "check", *args], cwd=self.folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=600)

    def json(self, *args):
        return json.loads(self.run("-f", "json", *args).stdout)

    def write(self, name, data):
        write(os.path.join(self.folder, name), data)


def with_nan(tensors, name, at=7):
    dtype, shape, data = tensors[name]
    tensors[name] = (dtype, shape, data[:2 * at] + b"\x00\x7e" + data[2 * at + 2:])
    return tensors


def test_exit_codes(box):
    box.write("nan.safetensors", safetensors(with_nan(small_model(), "model.layers.1.mlp.up_proj.weight")))
    box.write("notes.txt", b"loss 3.2\n")
    os.makedirs(box.folder + "/nothing", exist_ok=True)
    rows = (
        (0, ("model/",)), (0, ("model/model.safetensors",)), (1, ("nan.safetensors",)), (0, ("--allow-nan", "model.layers.1.*", "nan.safetensors")),
        (1, ("--max-abs", "0.001", "model/")), (0, ("--max-abs", "10", "model/")), (2, (FIXTURES + "/numpy/objects.npy",)), (66, ("nowhere.safetensors",)),
        (64, ("--max-abs", "large", "model/")), (64, ("--step", "-3", "model/")), (64, ("--step", "7", "runs/steps")), (64, ("--replicas", "model/")), (64, ()),
        (64, ("--format", "xml", "model/")), (66, ("--compare", "nowhere", "model/")), (66, ("--config", "nowhere.json", "model/")), (66, ("--manifest", "nowhere", "model/")),
        (65, ("--config", "notes.txt", "model/")), (65, ("notes.txt",)), (65, ("nothing",)), (74, ("--output", "no/such/folder/x", "model/")),
    )
    for code, args in rows:
        p = box.run(*args)
        check(p.returncode == code, f"check {' '.join(args)}: exit {p.returncode}, not {code}", p.stderr.decode() + p.stdout.decode()[:300])
        if code >= 64:
            check(p.stderr.startswith(b"faultrank: ") and p.stderr.count(b"\n") == 1 and not p.stdout, f"check {' '.join(args)}: one sentence", p.stderr)


def test_settings_want_a_checkpoint(box):
    """Whoever gives settings alone reads what to do."""
    box.write("ds.json", b'{"bf16":{"enabled":true}}')
    rows = (
        (64, ("--config", "ds.json"), "needs the checkpoint, too: 'faultrank check --config ds.json PATH...'; the config.json in its folder is found"),
        (65, ("--config", "model", "model"), "is a folder: settings are files; the config.json beside the tensors is found by itself"),
        (65, ("ds.json",), "settings go with --config, beside the checkpoint's PATH"),
        (66, ("--config", "no.json", "model"), "'no.json': cannot be opened"),
        (2, ("model/config.json",), "A file of settings holds no tensors: name the checkpoint's folder"),
    )
    for code, args, words in rows:
        p = box.run(*args)
        said = " ".join((p.stderr + p.stdout).decode().split())
        check(p.returncode == code and words in said, f"check {' '.join(args)}: {p.returncode}, {said[:300]}")


def test_verdict_comes_first(box):
    lines = box.run("nan.safetensors").stdout.decode().splitlines()
    check(lines[0] == "Do not promote: NaN in weights: model.layers.1.mlp.up_proj.weight", "headline", lines[0])
    check(any("1 of 2048 elements is NaN" in l for l in lines), "the count is told")
    check("    faultrank explain loss-nan-generic" in lines, "the page is named")
    doc = box.json("nan.safetensors")
    check(doc["verdict"] == "do-not-promote" and doc["findings"][0]["tensor"] == "model.layers.1.mlp.up_proj.weight", "json")
    check([t["nan"] for t in doc["tensors"]].count(1) == 1, "one tensor has one NaN")


def test_steps(box):
    box.write("many/step-100/model.safetensors", safetensors(small_model()))
    box.write("many/step-200/model.safetensors", safetensors(with_nan(small_model(), "lm_head.weight")))
    doc = box.json("many")
    check((doc["verdict"], doc["step"]["step"], doc["last_good"]["step"]) == ("do-not-promote", 200, 100), "the last good step", doc["steps"])
    check("the last good one is step 100 in many/step-100" in " ".join(box.run("many").stdout.decode().split()), "told in text", box.run("many").stdout.decode())


def test_layouts(box):
    """Which page a finding names, and a first line that is whole."""
    def tree(fixture, name):
        shutil.copytree(f"{FIXTURES}/{fixture}", f"{box.folder}/{name}")
        return f"{box.folder}/{name}/"

    def rows(doc):
        return [(f["rule"], f["weight"], f["class"]) for f in doc["findings"] if f["rule"] in wanted]

    wanted = ("latest-names-nothing", "tracker-names-nothing", "no-latest", "no-tracker", "unknown-to-index", "missing-zero-file")
    os.remove(tree("deepspeed", "ds-model") + "global_step100/mp_rank_00_model_states.pt")
    open(tree("deepspeed", "ds-wrong") + "latest", "w").write("global_step300")
    os.remove(tree("deepspeed", "ds-none") + "latest")
    open(tree("megatron", "meg-wrong") + "latest_checkpointed_iteration.txt", "w").write("200")
    os.remove(tree("megatron", "meg-none") + "latest_checkpointed_iteration.txt")
    shutil.copy(f"{FIXTURES}/safetensors/small.safetensors", tree("sharded", "stale") + "model-00003-of-00003.safetensors")
    for name, code, row in (("ds-model", 1, ("missing-zero-file", "blocks", "deepspeed-zero-files-missing")), ("ds-wrong", 1, ("latest-names-nothing", "blocks", "deepspeed-latest-missing")),
                            ("ds-none", 0, ("no-latest", "note", "deepspeed-latest-missing")), ("ds-none/global_step100", 0, None),
                            ("meg-wrong", 1, ("tracker-names-nothing", "blocks", "checkpoint-corrupt-latest-pointer")),
                            ("meg-none", 0, ("no-tracker", "note", "checkpoint-corrupt-latest-pointer")), ("meg-none/iter_0000100", 0, None),
                            ("stale", 0, ("unknown-to-index", "risk", None))):
        p = box.run("-f", "json", name)
        found = rows(json.loads(p.stdout))
        check(p.returncode == code and found == ([row] if row else []), f"{name}: exit {p.returncode}", found)
    shutil.copytree(f"{FIXTURES}/dcp2", f"{box.folder}/step-5")
    os.remove(box.folder + "/step-5/.metadata")
    for name, words in (("ds-model", "A DeepSpeed checkpoint lacks files: ds-model/global_step100"), ("step-5", "A distributed checkpoint is incomplete: step-5")):
        line = box.run(name).stdout.decode().splitlines()[0]
        check(line == "Do not promote: " + words, f"{name}: the first line", line)
    p = subprocess.run([PROGRAM, "check", "."], cwd=box.folder + "/step-5", stdout=subprocess.PIPE, timeout=600)
    check(p.stdout.startswith(b"Do not promote: A distributed checkpoint is incomplete\n"), "the folder we are in has no name", p.stdout)


def test_real_files(box):
    expected = {
        "safetensors/small.safetensors": ("promote", 9), "sharded": ("promote", 4), "hf_torch": ("promote", 2), "dcp": ("promote", 2), "dcp2": ("promote", 4),
        "deepspeed": ("promote", 8), "megatron": ("promote", 1), "numpy/plain.npy": ("promote", 1), "numpy/deflated.npz": ("promote", 2), "torch/modern.pt": ("promote", None),
        "torch/legacy.pt": (("do-not-promote", "cannot-tell"), 0),
    }
    for name, (verdict, n) in expected.items():
        p = box.run("-f", "json", f"{FIXTURES}/{name}")
        check(p.returncode in (0, 1, 2), f"{name}: exit {p.returncode}", p.stderr)
        doc = json.loads(p.stdout)
        check(doc["verdict"] in verdict if isinstance(verdict, tuple) else doc["verdict"] == verdict, f"{name}: {doc['verdict']}", doc["findings"])
        check(n is None or len(doc["tensors"]) == n, f"{name}: {len(doc['tensors'])} tensors, not {n}")
        check(all(t["nan"] == 0 for t in doc["tensors"] if t["read"]), f"{name}: NaN where there is none")


def test_schema(box):
    try:
        import jsonschema
    except ImportError:
        return
    validator = jsonschema.Draft202012Validator(json.load(open(f"{SOURCE}/schema/check.schema.json")))
    for args in (("model/",), ("nan.safetensors",), ("many",), ("--compare", "runs/steps/step-100", "runs/steps/step-200"), (f"{FIXTURES}/numpy",), (f"{FIXTURES}/torch",)):
        for e in validator.iter_errors(box.json(*args)):
            check(False, f"schema: {args} {'/'.join(map(str, e.path))}", e.message)


def test_same_bytes(box):
    for form in FORMATS:
        one = box.run("-f", form, "-j", "1", "many", "nan.safetensors").stdout
        check(one and one == box.run("-f", form, "-j", "5", "many", "nan.safetensors").stdout, f"{form}: threads change the report")
        check(one == box.run("-f", form, "-j", "2", "nan.safetensors", "many").stdout, f"{form}: the order of paths changes the report")


def test_manifest(box):
    shutil.copytree(box.folder + "/model", box.folder + "/kept")
    check(box.run("--write-manifest", "kept/manifest.json", "kept").returncode == 0, "writes a manifest")
    doc = json.load(open(box.folder + "/kept/manifest.json"))
    sums = {f["path"]: f["sha256"] for f in doc["files"]}
    check(sums.get("model.safetensors") == hashlib.sha256(open(box.folder + "/kept/model.safetensors", "rb").read()).hexdigest(), "its hashes", sums)
    check(box.run("--manifest", "kept/manifest.json", "kept").returncode == 0, "the hashes are right")
    with open(box.folder + "/kept/model.safetensors", "r+b") as f:
        f.seek(-1, os.SEEK_END)
        f.write(b"\x01")
    p = box.run("--manifest", "kept/manifest.json", "kept")
    check(p.returncode == 1 and b"'lm_head.weight'" in p.stdout, "one byte differs", p.stdout)
    os.rename(box.folder + "/kept", box.folder + "/moved")
    check(b"unknown-to-index" not in box.run("-f", "json", "--manifest", "moved/manifest.json", "moved").stdout, "manifest and checkpoint move together")


def test_comparison(box):
    doc = box.json("--compare", "runs/steps/step-100", "runs/steps/step-200")
    m = doc["comparisons"][0]
    check(doc["verdict"] == "promote" and not m["replicas"] and m["compared"] == 10 and m["equal"] == 2 and m["first"] == "model.embed_tokens.weight", "two steps", m)
    flipped = small_model()
    dtype, shape, data = flipped["model.layers.0.self_attn.o_proj.weight"]
    flipped["model.layers.0.self_attn.o_proj.weight"] = (dtype, shape, data[:41] + bytes([data[41] ^ 0x40]) + data[42:])
    box.write("flipped.safetensors", safetensors(flipped))
    p = box.run("--replicas", "model/model.safetensors", "flipped.safetensors")
    check(p.returncode == 1 and b"single bit of the exponent, the first is element 20" in p.stdout.replace(b"\n    ", b" "), "a flipped bit", p.stdout)
    other = {n: (d, s, half_weights(len(b) // 2, 1000 + i) if len(s) > 1 else b) for i, (n, (d, s, b)) in enumerate(small_model().items())}
    box.write("other.safetensors", safetensors(other))
    p = box.run("--replicas", "model/model.safetensors", "other.safetensors")
    check(p.returncode == 1 and b"fsdp-divergent-init" in p.stdout, "independent weights", p.stdout)


def test_hostile_names(box):
    evil = "\u001b[31m\u202e<script>alert(1)</script>\n::error::\x9b[2J'\"&"
    box.write("evil\x1b[2J<b>.safetensors", safetensors(with_nan({evil: ("F16", [64, 32], half_weights(64 * 32, 1)), "ok.weight": ("F16", [64, 32], half_weights(64 * 32, 2))}, evil)))
    for form in FORMATS:
        p = box.run("-f", form, "--all", "evil\x1b[2J<b>.safetensors")
        check(p.returncode == 1 and p.stdout, f"{form}: exit {p.returncode}", p.stderr)
        check(b"\x1b" not in p.stdout and b"\xc2\x9b" not in p.stdout and b"\xe2\x80\xae" not in p.stdout, f"{form}: an escape passes through", p.stdout)
        if form == "html":
            check(b"<script" not in p.stdout and b"<b>." not in p.stdout and b"Content-Security-Policy" in p.stdout, "html: markup passes through")
            check(not re.search(rb"(?:src|href)\s*=", p.stdout), "html: it loads something")
        if form == "text":
            check(b"\n::error" not in p.stdout, "text: a line of its own passes through")
    doc = box.json("evil\x1b[2J<b>.safetensors")
    check(any(t["name"] == evil for t in doc["tensors"]), "json keeps the name")


def test_hostile_files(box):
    """One sentence with a byte offset for each, and the rest is still looked at."""
    good = safetensors(small_model())
    n = struct.unpack("<Q", good[:8])[0]
    cases = {
        "huge-header": struct.pack("<Q", 1 << 60) + good[8:], "cut": good[:-100], "tiny": good[:5], "empty": b"", "trailing": good + b"x",
        "overlap": good[:8] + good[8:8 + n].replace(b'"data_offsets": [0,', b'"data_offsets": [2,', 1).ljust(n) + good[8 + n:],
        "dtype": good.replace(b'"F16"', b'"F99"', 1),
    }
    for name, data in cases.items():
        box.write(f"hostile/{name}.safetensors", data)
        p = box.run(f"hostile/{name}.safetensors")
        check(p.returncode in (1, 2, 65), f"{name}: exit {p.returncode}", p.stdout + p.stderr)
        check(len(p.stdout + p.stderr) > 30, f"{name}: says why")
    box.write("hostile/sound.safetensors", good)
    doc = box.json("hostile")
    check(doc["verdict"] == "do-not-promote" and sum(t["file"].endswith("sound.safetensors") for t in doc["tensors"]) == 10, "the sound file beside them is checked",
          [t["file"] for t in doc["tensors"]])


def test_pickle_that_runs_code(box):
    """A gate must say no, not that it cannot tell: nobody writes a call of the shell into weights."""
    with zipfile.ZipFile(os.path.join(box.folder, "evil.pt"), "w") as z:
        z.writestr("evil/data.pkl", b"\x80\x02}X\x01\x00\x00\x00acposix\nsystem\nX\x02\x00\x00\x00ls\x85Rs.")
        z.writestr("evil/version", b"3\n")
    p = box.run("evil.pt")
    check(p.returncode == 1 and b"posix.system" in p.stdout and b"byte" in p.stdout, "a pickle that runs code is not promoted", p.stdout + p.stderr)


def pickled(box, name, pickle, **data):
    with zipfile.ZipFile(os.path.join(box.folder, name), "w") as z:
        for member, content in {"data.pkl": pickle, "version": b"3\n", **{"data/" + k[1:]: v for k, v in data.items()}}.items():
            z.writestr("archive/" + member, content)


def test_objects_besides_tensors(box):
    """training_args.bin lies in every checkpoint of Hugging Face's Trainer: closed, and it hides no numbers unless a storage is left over."""
    args = b"\x80\x02ctransformers.training_args\nTrainingArguments\n)\x81}X\x02\x00\x00\x00lrK\x01sb."
    os.makedirs(os.path.join(box.folder, "trainer/checkpoint-10"))
    box.write("trainer/checkpoint-10/model.safetensors", safetensors(small_model()))
    pickled(box, "trainer/checkpoint-10/training_args.bin", args)
    doc = box.json("trainer")
    check(doc["verdict"] == "promote", "objects without numbers do not hide anything", doc["headline"])
    check(any(f["rule"] == "objects-besides-tensors" and "TrainingArguments" in f["text"] for f in doc["findings"]), "they are named", doc["findings"])
    pickled(box, "trainer/checkpoint-10/training_args.bin", args, _0=b"1234")
    check(box.json("trainer")["verdict"] == "cannot-tell", "a storage that no tensor uses may be theirs")


def test_deepspeed_world(box):
    """A model's file knows of how many model-parallel ranks it is one."""
    shutil.copytree(f"{FIXTURES}/deepspeed", f"{box.folder}/world")
    pickled(box, "world/global_step100/mp_rank_00_model_states.pt", b"\x80\x02}(X\x0d\x00\x00\x00mp_world_sizeK\x02X\x06\x00\x00\x00moduleNu.")
    doc = box.json("world")
    texts = " ".join(f["text"] for f in doc["findings"])
    check(doc["verdict"] == "do-not-promote" and "not there: mp_rank_01_model_states.pt" in texts and "mp_rank_01_optim_states.pt" in texts,
          "the other rank's files are missed", doc["findings"])


def test_pages_fit(box):
    """The page beside a finding is about that finding; where none is, none is named."""
    def model(name, change=lambda t: t, folder=None):
        os.makedirs(f"{box.folder}/{name}", exist_ok=True)
        box.write(f"{name}/model.safetensors", safetensors(change(small_model())))

    def drop_half(t):
        return {k: (d, s, bytes(len(b)) if k == "model.layers.1.mlp.up_proj.weight" else b) for k, (d, s, b) in t.items()}

    model("pages/zero", drop_half)
    model("pages/scale", lambda t: {**t, "model.layers.0.mlp.up_proj.weight_scale": ("F32", [2], struct.pack("<2f", 1, math.nan))})
    model("pages/inf", lambda t: {**t, "w32": ("F32", [2], struct.pack("<2f", 1, math.inf)), "w16": ("F16", [2], b"\x00\x3c\x00\x7c")})
    model("pages/rng")
    for i in (0, 2):
        shutil.copy(f"{FIXTURES}/torch/old.bin", f"{box.folder}/pages/rng/rng_state_{i}.pth")
    model("pages/bad_config")
    box.write("pages/bad_config/config.json", b"{")
    shutil.copytree(f"{FIXTURES}/megatron", f"{box.folder}/pages/tracker")
    box.write("pages/tracker/latest_checkpointed_iteration.txt", b"")
    model("pages/listed")
    box.run("--write-manifest", "pages/listed.json", "pages/listed")
    model("pages/listed", drop_half)
    shutil.copy(f"{FIXTURES}/torch/legacy.pt", f"{box.folder}/pages/legacy.pt")
    rows = (
        (("pages/zero",), "zero-weights", None),
        (("pages/scale",), "bad-scale", "quantization-outlier-damage"),
        (("pages/inf",), "inf-in-weights", {"w32": "loss-nan-generic", "w16": "fp16-activation-overflow"}),
        (("pages/rng",), "missing-part", "rng-or-sampler-state-missing"),
        (("pages/bad_config",), "malformed-file", None),
        (("pages/legacy.pt",), "format-not-read", None),
        (("--manifest", "pages/listed.json", "pages/listed"), "checksum-differs", None),
        (("--max-abs", "0.001", "model"), "over-max-abs", None),
        (("--compare", "model", "model"), "weights-did-not-move", None),
        (("pages/tracker",), "unfinished-save", "checkpoint-corrupt-latest-pointer"),
    )
    for args, rule, page in rows:
        found = [f for f in box.json(*args)["findings"] if f["rule"] == rule]
        fits = lambda f: f["class"] == (page.get(f["tensor"], "?") if isinstance(page, dict) else page)
        check(found and all(fits(f) for f in found), f"check {' '.join(args)}: {rule} names {page}", [(f["rule"], f["class"], f["text"]) for f in box.json(*args)["findings"]])
    check(box.run("pages/rng").returncode == 0, "a rank's state of random numbers is no reason against the weights")


def members(data):
    """Where the packed bytes of the members of a zip lie: {name: (offset, bytes, method)}."""
    r = {}
    for m in zipfile.ZipFile(io.BytesIO(data)).infolist():
        name, extra = struct.unpack("<HH", data[m.header_offset + 26:m.header_offset + 30])
        r[m.filename] = (m.header_offset + 30 + name + extra, m.compress_size, m.compress_type)
    return r


def test_damaged_members(box):
    """One bit of what a zip holds differs from what was written: the checksum inside tells, which torch.load does not look at."""
    for fixture in ("torch/modern.pt", "torch/old.bin", "torch/deflated.pt", "numpy/stored.npz", "numpy/deflated.npz"):
        data = open(f"{FIXTURES}/{fixture}", "rb").read()
        name = "flipped" + os.path.splitext(fixture)[1]
        for member, (at, n, method) in members(data).items():
            if n == 0 or not (member.endswith("data.pkl") or "/data/" in member or member.endswith(".npy")):
                continue
            for k in sorted({0, n // 3, n // 2, n - 1} if method == 0 else {0, n // 2}):  # a stream ends in bits without meaning
                box.write(name, data[:at + k] + bytes([data[at + k] ^ 0x10]) + data[at + k + 1:])
                p = box.run("-f", "json", name)
                rules = {f["rule"]: f for f in json.loads(p.stdout)["findings"]} if p.returncode < 64 else {}
                check(p.returncode == 1, f"{fixture}: byte {k} of {member} was flipped: exit {p.returncode}", p.stdout + p.stderr)
                if method == 0 and not member.endswith(".npy"):
                    f = rules.get("member-damaged", {})
                    check(member in f.get("text", "") and f.get("offset", 0) >= at, f"{fixture}: {member} is named, with its place", rules)
    z = members(data := open(f"{FIXTURES}/torch/modern.pt", "rb").read())
    torn = bytearray(data)  # torch.serialization.set_crc32_options(False) writes zeros
    for i in range(len(torn) - 46):
        if torn[i:i + 4] == b"PK\x01\x02":
            torn[i + 16:i + 20] = b"\0\0\0\0"
    torn[z["modern/data/0"][0]] ^= 1
    box.write("no_sums.pt", bytes(torn))
    check(box.run("no_sums.pt").returncode == 0, "a checksum that was not reckoned is none")


def test_large_members(box):
    """Over 64 MiB only small members are compared, unless --crc is given; the report says so."""
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (17301504,), }"
    header = b"\x93NUMPY\x01\x00\x76\x00" + header.ljust(117) + b"\n"
    body = bytearray(struct.pack("<4096f", *(0.5 + i / 8192 for i in range(4096))) * (17301504 // 4096))
    with zipfile.ZipFile(box.folder + "/large.npz", "w", zipfile.ZIP_STORED) as z:
        z.writestr("w.npy", header + bytes(body))
    with open(box.folder + "/large.npz", "r+b") as f:
        f.seek(40 << 20)
        was = f.read(1)
        f.seek(40 << 20)
        f.write(bytes([was[0] ^ 1]))
    p = box.run("large.npz")
    check(p.returncode == 0 and "1 larger than 64 KiB, which --crc compares" in " ".join(p.stdout.decode().split()), "left out, and said", p.stdout)
    for threads in ("1", "4"):
        p = box.run("--crc", "--threads", threads, "large.npz")
        check(p.returncode == 1 and b"'w.npy'" in p.stdout, "--crc finds it", p.stdout)
    os.unlink(box.folder + "/large.npz")


def test_stand_ins(box):
    for name, data, words in (("pointer.safetensors", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n", b"git lfs pull"),
                              ("page.pt", b"<!DOCTYPE html><html>", b"an HTML page")):
        box.write(name, data)
        p = box.run(name)
        check(p.returncode == 1 and words in p.stdout.replace(b"\n    ", b" "), f"{name}: says what it is", p.stdout)


def test_zero_points(box):
    """A zero point of 0 is how symmetric quantisation looks; a scale of 0 loses the weights."""
    model = small_model()
    model["layer_zero_point"] = ("F32", [8], b"\0" * 32)
    box.write("zero.safetensors", safetensors(model))
    check(box.run("zero.safetensors").returncode == 0, "zero points may be zero", box.run("zero.safetensors").stdout)
    model["layer_scale"] = ("F32", [8], b"\0" * 32)
    box.write("zero.safetensors", safetensors(model))
    check(box.run("zero.safetensors").returncode == 1, "scales may not")


def test_unmoved_are_named(box):
    model = small_model()
    box.write("move/step-1.safetensors", safetensors(model))
    name = sorted(k for k in model if model[k][0] == "F16")[0]
    dtype, shape, data = model[name]
    model[name] = (dtype, shape, half_weights(len(data) // 2, 77))
    box.write("move/step-2.safetensors", safetensors(model))
    found = [f for f in box.json("move/step-2.safetensors", "--compare", os.path.join(box.folder, "move/step-1.safetensors"))["findings"] if f["rule"] == "some-weights-did-not-move"]
    check(len(found) == 1 and name not in found[0]["text"] and all(f"{k}" in found[0]["text"] for k in sorted(model) if k != name and model[k][0] == "F16"[:3])
          or len(model) > 9 and "more" in found[0]["text"], "weights that did not move are named", found)


def test_sarif(box):
    run = json.loads(box.run("-f", "sarif", "nan.safetensors").stdout)["runs"][0]
    r = run["results"][0]
    check(r["level"] == "error" and run["tool"]["driver"]["rules"][r["ruleIndex"]]["id"] == r["ruleId"] == "nan-in-weights", "sarif", r)
    check(r["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == "model.layers.1.mlp.up_proj.weight", "sarif: the tensor")


def test_nothing_is_written(box):
    before = sorted((os.path.join(d, f), os.stat(os.path.join(d, f)).st_mtime_ns) for d, _, fs in os.walk(box.folder + "/model") for f in fs)
    box.run("--compare", "runs/steps", "model")
    after = sorted((os.path.join(d, f), os.stat(os.path.join(d, f)).st_mtime_ns) for d, _, fs in os.walk(box.folder + "/model") for f in fs)
    check(before == after, "the checkpoint is untouched")


def main():
    box = Box()
    try:
        for name, fn in sorted(globals().items(), key=lambda i: getattr(i[1], "__code__", None).co_firstlineno if hasattr(i[1], "__code__") else 0):
            if name.startswith("test_") and callable(fn):
                before = bad
                fn(box)
                print("ok -" if bad == before else "failed -", name)
    finally:
        shutil.rmtree(box.folder, ignore_errors=True)
    sys.exit(1 if bad else 0)


main()
