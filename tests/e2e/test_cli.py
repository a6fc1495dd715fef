#!/usr/bin/env python3
"""The program as its users meet it.

  test_cli.py FAULTRANK SOURCE_DIR [--update]     --update rewrites completions/
"""
import json, os, pty, re, shutil, stat, subprocess, sys, tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import make_sandbox
import usage

PROGRAM, SOURCE, UPDATE = usage.arguments(__doc__, "FAULTRANK", "SOURCE_DIR", update=True)
SHELLS = {"bash": "faultrank.bash", "zsh": "_faultrank", "fish": "faultrank.fish"}
bad = 0


def check(ok, what, detail=""):
    global bad
    if not ok:
        bad += 1
        print("not ok -", what, str(detail)[:600])


def environment(folder):
    e = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "XDG_CACHE_HOME")}
    e.update(HOME=folder, PATH=os.path.dirname(PROGRAM) + ":" + e["PATH"], TERM="xterm", LC_ALL="C")
    return e


class Sandbox:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="faultrank-e2e-")
        make_sandbox.make(self.folder)

    def run(self, *args, stdin=b"", **more):
        return subprocess.run([PROGRAM, *args], cwd=self.folder, env=environment(self.folder), input=stdin,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600, **more)

    def sh(self, line):
        return subprocess.run(["bash", "-c", "set -o pipefail; " + line], cwd=self.folder, env=environment(self.folder),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600)


def commands(box):
    text = box.run("help").stdout.decode()
    return re.findall(r"^  ([a-z]+) ", text.split("Commands:")[1].split("Start here:")[0], re.M)


def man_text():
    return open(f"{SOURCE}/man/faultrank.1").read()


def test_examples_run(box):
    examples = re.findall(r"^\.Dl \$ (.*)$", man_text(), re.M)
    for c in commands(box):
        text = box.run(c, "--help").stdout.decode()
        found = re.findall(r"^  \$ (.*)$", text, re.M)
        check(found, f"{c} --help has no examples")
        examples += found
    for line in sorted(set(examples)):
        p = box.sh(line)
        wanted = 1 if "--exit-code" in line else 0
        check(p.returncode == wanted, f"example '{line}': exit {p.returncode}, not {wanted}", p.stderr.decode())
        check(p.stdout or "--output" in line or ">" in line, f"example '{line}' prints nothing")
    check("Rank 2 failed first" in box.run("diagnose", "runs/42").stdout.decode(), "the example run: rank 2", box.run("diagnose", "runs/42").stdout.decode())
    check(open(box.folder + "/report.html").read().startswith("<!doctype html>"), "report.html was written")


def test_manual_names_every_option(box):
    manual = man_text()
    for c in commands(box):
        check(f".Ss {c}" in manual, f"the manual has no section on {c}")
        part = manual.split(f".Ss {c}", 1)[-1]
        part = re.split(r"\n\.S[sh] ", part)[0]
        here = set(re.findall(r"^  (?:-., |    )--([a-z-]+)", box.run(c, "--help").stdout.decode(), re.M)) - {"help"}
        there = set(re.findall(r"^\.It .*Fl Fl ([a-z-]+)", part, re.M))
        check(here == there, f"options of {c}: help has {sorted(here)}, the manual {sorted(there)}")


def test_manual_is_clean(box):
    if shutil.which("mandoc"):
        p = subprocess.run(["mandoc", "-Tlint", "-Wall", f"{SOURCE}/man/faultrank.1"], stdout=subprocess.PIPE)
        check(p.returncode == 0 and not p.stdout, "mandoc -Tlint", p.stdout.decode())


def test_completions(box):
    for shell, name in SHELLS.items():
        out = box.run("completion", shell).stdout
        path = f"{SOURCE}/completions/{name}"
        if UPDATE:
            open(path, "wb").write(out)
        check(os.path.exists(path) and open(path, "rb").read() == out, f"completions/{name} is not what the program prints")
        if shutil.which(shell):
            flags = ["--no-execute"] if shell == "fish" else ["-n"]
            check(subprocess.run([shell, *flags, path], stderr=subprocess.PIPE).returncode == 0, f"{shell} cannot read {name}")

    def complete(*words):
        line = "source %s/completions/faultrank.bash; COMP_WORDS=(%s); COMP_CWORD=%d; _faultrank 2>/dev/null; echo ${COMPREPLY[*]}" % (
            SOURCE, " ".join(f"'{w}'" for w in words), len(words) - 1)
        return box.sh(line).stdout.decode().split()

    check("diagnose" in complete("faultrank", "dia"), "bash completes commands")
    check(complete("faultrank", "diagnose", "--form") == ["--format"], "bash completes options")
    check(complete("faultrank", "diagnose", "--format", "ht") == ["html"], "bash completes values")
    check("cuda-oom" in complete("faultrank", "explain", "cuda-o"), "bash completes ids")


def test_exit_codes(box):
    rows = (
        (64, ()), (64, ("diagnos",)), (64, ("diagnose",)), (64, ("diagnose", "--formt", "json", "x")),
        (64, ("diagnose", "--format", "jsn", "x")), (64, ("diagnose", "--threads", "many", "x")), (64, ("diagnose", "-Z", "x")),
        (64, ("diagnose", "--format")), (64, ("diagnose", "--why=yes", "x")), (64, ("--format", "json")), (64, ("version", "x")),
        (64, ("list", "--category", "memry")), (66, ("explain", "no-such-failure-here")), (66, ("diagnose", "nowhere/")),
        (65, ("diagnose", "--failures", "broken/", "runs/42")), (65, ("lint", "broken/")), (64, ("completion", "tcsh")),
        (0, ("diagnose", "--exit-code", "healthy.log")), (1, ("diagnose", "--exit-code", "runs/42")), (0, ("diagnose", "runs/42")),
        (0, ("--help",)), (0, ("-h",)), (0, ("--version",)), (0, ("help", "lint")), (64, ("help", "nothing")), (64, ("diagnose", "--mask", "x")),
    )
    os.makedirs(box.folder + "/broken/memory", exist_ok=True)
    open(box.folder + "/broken/memory/x.md", "w").write("---\nid: x\n---\nnothing\n")
    for code, args in rows:
        p = box.run(*args)
        err = p.stderr.decode()
        check(p.returncode == code, f"{' '.join(args)}: exit {p.returncode}, not {code}", err)
        if code in (64, 65, 66) and args and args[0] != "lint":
            check(err.startswith("faultrank: ") and err.count("\n") == 1, f"{' '.join(args)}: one sentence on stderr", err)
    check("did you mean 'diagnose'" in box.run("diagnos").stderr.decode(), "suggests a command")
    check("did you mean '--format'" in box.run("diagnose", "--formt", "x", "y").stderr.decode(), "suggests an option")
    check("faultrank diagnose runs/42" in box.run("runs/42").stderr.decode(), "a path instead of a command")


def test_output_is_whole_or_untouched(box):
    target = box.folder + "/out.json"
    open(target, "w").write("precious")
    check(box.run("diagnose", "-f", "json", "-o", "out.json", "nowhere/").returncode == 66, "nothing to read")
    check(open(target).read() == "precious", "a failed run does not touch the output file")
    check(box.run("diagnose", "-f", "json", "-o", "out.json", "runs/42").returncode == 0, "writes --output")
    check(json.load(open(target))["verdict"] == "failure", "the output is a report")
    mask = os.umask(0)
    os.umask(mask)
    check(stat.S_IMODE(os.stat(target).st_mode) == 0o666 & ~mask, "the file has ordinary rights")
    check(not [n for n in os.listdir(box.folder) if n.startswith(".out.json")], "no temporary file is left")
    os.symlink("out.json", box.folder + "/link.json")
    check(box.run("diagnose", "-f", "json", "-o", "link.json", "healthy.log").returncode == 0, "writes through a link")
    check(os.path.islink(box.folder + "/link.json") and json.load(open(target))["verdict"] == "healthy", "the link stays a link")
    check(box.run("diagnose", "-o", "no/such/folder/x", "runs/42").returncode == 74, "no folder to write to: 74")
    check(box.run("diagnose", "-o", "runs", "runs/42").returncode == 74, "a folder is no output file: 74")
    check(box.run("diagnose", "-o", "/dev/full", "runs/42").returncode == 74, "a full device: 74")
    check(b"Rank 2" in box.run("diagnose", "-o", "/dev/stdout", "runs/42").stdout, "/dev/stdout")
    p = box.sh(f"faultrank diagnose runs/42 > /dev/full")
    check(p.returncode == 74 and p.stderr.count(b"\n") == 1, "standard output is full: 74", p.stderr)
    p = box.sh("faultrank list | head -c 10")
    check(p.returncode == 0 and p.stderr == b"", "a reader that has seen enough is no failure", p.stderr)


def test_same_bytes(box):
    one = box.run("diagnose", "-f", "json", "-j", "1", "runs/42").stdout
    check(one == box.run("diagnose", "-f", "json", "-j", "4", "runs/42").stdout, "threads change the report")
    files = [f"runs/42/rank{r}.log" for r in range(4)]
    a, b = (box.run("diagnose", "-f", "json", *order).stdout for order in (files, files[::-1]))
    check(a == b, "the order of files changes the report")
    try:
        import jsonschema
    except ImportError:
        return
    validator = jsonschema.Draft202012Validator(json.load(open(f"{SOURCE}/schema/diagnosis.schema.json")))
    for args in (("runs/42",), ("healthy.log",), ("slurm-8123.out", "console.log.gz")):
        for e in validator.iter_errors(json.loads(box.run("diagnose", "-f", "json", *args).stdout)):
            check(False, f"schema: {args} {'/'.join(map(str, e.path))}", e.message)


def on_terminal(box, args, **env):
    """What the program prints when standard output is a terminal."""
    master, slave = pty.openpty()
    p = subprocess.Popen([PROGRAM, *args], cwd=box.folder, env={**environment(box.folder), **env}, stdin=subprocess.DEVNULL,
                         stdout=slave, stderr=subprocess.DEVNULL)
    os.close(slave)
    out = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        if not part:
            break
        out += part
    p.wait()
    os.close(master)
    return out


def test_colours(box):
    check(b"\x1b[" in on_terminal(box, ["diagnose", "runs/42"]), "colours on a terminal")
    check(b"\x1b" not in on_terminal(box, ["diagnose", "runs/42"], NO_COLOR="1"), "NO_COLOR")
    check(b"\x1b" not in on_terminal(box, ["diagnose", "--no-color", "runs/42"]), "--no-color")
    check(b"\x1b" not in on_terminal(box, ["diagnose", "runs/42"], TERM="dumb"), "TERM=dumb")
    check(b"\x1b" not in box.run("diagnose", "runs/42").stdout, "no colours in a pipe")


def test_hostile_log(box):
    text = (b"\x1b]0;owned\x07\x1b[31m[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 6.00 GiB <script>x</script>"
            b" \xc2\x9b31m \xe2\x80\xae\n")
    name = b"evil\x1b[2J\n::error::x.log"
    with open(os.path.join(box.folder.encode(), name), "wb") as f:
        f.write(text)
    for form in ("text", "markdown", "html", "github", "junit", "json", "sarif"):
        out = box.run("diagnose", "-f", form, name).stdout
        check(out and b"\x1b" not in out and b"\x07" not in out and b"\xc2\x9b" not in out, f"{form}: an escape passes through")
        check(form != "html" or b"<script" not in out, "html: markup passes through")
        check(form != "github" or all(l.startswith((b"::error ", b"::warning ", b"::notice ")) for l in out.splitlines()), "github: a command passes through", out)
    p = box.run("diagnose", b"nowhere\x1b[2J")
    check(b"\x1b" not in p.stderr and p.returncode == 66, "a hostile name in an error", p.stderr)


def test_catalogue(box):
    doc = json.loads(box.run("list", "--format", "json").stdout)
    ids = box.run("list", "--ids").stdout.decode().split()
    check([f["id"] for f in doc["failures"]] == ids and len(ids) >= 150, "list")
    page = json.loads(box.run("explain", "--format", "json", "cuda-oom").stdout)["failures"][0]
    check(page["id"] == "cuda-oom" and page["fix"]["primary"], "explain --format json")
    found = json.loads(box.run("explain", "-f", "json", "CUDA out of memory. Tried to allocate 2.00 GiB").stdout)["failures"]
    check(found[0]["id"] == "cuda-oom", "explain by error text", [f["id"] for f in found])
    check("house-token-expired" in box.run("search", "--failures", "my-failures", "artefact", "token").stdout.decode(), "search in --failures")
    check(b"lint" not in box.run("lint", "my-failures").stderr, "lint of a good folder", box.run("lint", "my-failures").stdout)


def main():
    box = Sandbox()
    try:
        for name, fn in sorted(globals().items()):
            if name.startswith("test_") and callable(fn):
                before = bad
                fn(box)
                print("ok -" if bad == before else "failed -", name)
    finally:
        subprocess.run(["rm", "-rf", box.folder])
    sys.exit(1 if bad else 0)


main()
