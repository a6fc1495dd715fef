#!/usr/bin/env python3
"""Bad input and bad output through the real program: a report of what could be read with the reasons for what was not, or exit
66 with one sentence; no crash, no hang, no unbounded memory.

  fault_input.py FAULTRANK [FILES]      FILES: how many tiny files, 20000 (100000 is the full number)
"""
import bz2
import gzip
import io
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import zipfile

PROGRAM = sys.argv[1]
FILES = int(sys.argv[2]) if len(sys.argv) > 2 else 20000
NOBODY = 65534
failures = []

STEP = "2026-03-09 10:0%d:00,000 INFO [fit] step %d0 loss 2.%d grad_norm 1.21 lr 3.0e-04\n"
GOOD = "2026-03-09 10:00:00,410 INFO [fit] rank %d/2 pid 90%d ready on gn11\n" + "".join(STEP % (i, i, 9 - i) for i in range(1, 5))
CRASH = (GOOD % (1, 1) + "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"/home/ivo/fit/loop.py\", line 9, in run\n"
         "[rank1]:     step()\n[rank1]: KeyError: 'token_mask'\n")


def check(ok, what, detail=""):
    if not ok:
        failures.append(what)
        print("not ok -", what, str(detail)[:600])


def write(folder, name, data):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data.encode() if isinstance(data, str) else data)
    return path


def run(*args, **more):
    more.setdefault("stdin", subprocess.DEVNULL)
    more.setdefault("stdout", subprocess.PIPE)
    p = subprocess.run([PROGRAM, "diagnose", *args], stderr=subprocess.PIPE, timeout=120, check=False, **more)
    check(p.returncode in (0, 1, 2, 64, 65, 66, 70, 74), f"{args}: exit {p.returncode}", p.stderr)
    check(b"Sanitizer" not in p.stderr and b"runtime error" not in p.stderr, f"{args}: a sanitizer's finding", p.stderr)
    return p


def report(*args, **more):
    p = run("--format", "json", *args, **more)
    check(p.returncode == 0, f"{args}: no report", p.stderr)
    return json.loads(p.stdout) if p.returncode == 0 else {"input": {"skipped": [], "sources": -1}, "incidents": [], "verdict": None}


def refused(what, *args, words=(), **more):
    p = run(*args, **more)
    text = p.stderr.decode(errors="replace")
    check(p.returncode == 66 and p.stdout == b"", f"{what}: exit 66 and no report", (p.returncode, text))
    check(text.count("\n") == 1 and text.startswith("faultrank: "), f"{what}: one sentence", text)
    for w in words:
        check(w in text, f"{what}: says '{w}'", text)


def is_skipped(doc, name, what, *words):
    rows = [s for s in doc["input"]["skipped"] if name in s["source"]]
    check(rows, f"{what}: '{name}' is listed as skipped", doc["input"]["skipped"])
    for w in words:
        check(any(w in r["why"] for r in rows), f"{what}: the reason says '{w}'", rows)


def finds_crash(doc, what):
    top = (doc["incidents"] or [{}])[0]
    check(doc["verdict"] == "failure" and top.get("class") == "python-exception", f"{what}: the rest is diagnosed", (doc["verdict"], top.get("class")))


# ---- paths

def test_nothing_there(top):
    os.mkdir(f"{top}/empty")
    refused("no such path", f"{top}/absent", words=["absent"])
    refused("an empty folder", f"{top}/empty")
    refused("no such path and an empty folder", f"{top}/absent", f"{top}/empty")
    write(top, "run/rank1.log", CRASH)
    doc = report(f"{top}/run", f"{top}/absent")
    is_skipped(doc, "absent", "one good and one absent path")
    finds_crash(doc, "one good and one absent path")


def test_unreadable(top):
    write(top, "run/rank0.log", GOOD % (0, 0))
    write(top, "run/rank1.log", CRASH)
    os.chmod(top, 0o755)
    os.chmod(f"{top}/run", 0o755)
    os.chmod(f"{top}/run/rank0.log", 0)
    os.mkdir(f"{top}/run/private", 0)
    more = {"user": NOBODY, "cwd": "/"} if os.geteuid() == 0 else {}
    try:
        doc = report(f"{top}/run", **more)
    except PermissionError:
        return  # nobody may not run a program that lies here
    is_skipped(doc, "rank0.log", "an unreadable file", "ermission")
    is_skipped(doc, "private", "an unreadable folder", "ermission")
    finds_crash(doc, "an unreadable file")
    refused("only an unreadable file", f"{top}/run/rank0.log", words=["rank0.log", "ermission"], **more)


def test_loops_pipes_sockets(top):
    write(top, "run/rank1.log", CRASH)
    os.symlink("..", f"{top}/run/again")
    os.symlink("self", f"{top}/run/self")
    os.symlink("gone.log", f"{top}/run/dangling.log")
    os.mkfifo(f"{top}/run/pipe.log")
    s = socket.socket(socket.AF_UNIX)
    s.bind(f"{top}/run/socket.log")
    doc = report(f"{top}/run")
    finds_crash(doc, "loops, pipes and sockets")
    check(doc["input"]["sources"] == 1, "a loop is not read again", doc["input"])
    is_skipped(doc, "pipe.log", "a FIFO in a folder")
    is_skipped(doc, "socket.log", "a socket")
    is_skipped(doc, "dangling.log", "a dangling link")
    deep = top
    for i in range(60):
        deep = os.path.join(deep, "d")
    write(deep, "rank1.log", CRASH)
    doc = report(f"{top}/d", f"{top}/run/rank1.log")
    check(doc["input"]["skipped"], "folders 60 deep are bounded and told", doc["input"])
    s.close()


def test_fifo_that_was_named(top):
    path = f"{top}/pipe"
    os.mkfifo(path)

    def feed():
        with open(path, "w") as f:
            f.write(CRASH)
    t = threading.Thread(target=feed)
    t.start()
    finds_crash(report(path), "a FIFO that was named is read")
    t.join()
    refused("a FIFO that nobody writes to", path)


def test_many_files(top):
    for i in range(FILES):
        if i % 1000 == 0:
            os.makedirs(f"{top}/run/{i // 1000}")
        with open(f"{top}/run/{i // 1000}/rank{i}.log", "w") as f:
            f.write("2026-03-09 10:00:00,000 INFO [fit] hello\n")
    write(top, "run/7/rank7007.log", CRASH.replace("rank 1/2", "rank 7007/20000").replace("[rank1]", "[rank7007]"))
    doc = report("--threads", "2", f"{top}/run")
    check(doc["input"]["sources"] == FILES, f"{FILES} files are read", doc["input"]["sources"])
    finds_crash(doc, f"{FILES} files")
    check((doc["incidents"] or [{}])[0].get("initiator", {}).get("ranks") == [7007], f"{FILES} files: rank 7007", doc["incidents"][:1])


# ---- what files hold

def test_binary_and_nul(top):
    write(top, "run/rank1.log", CRASH)
    write(top, "run/core.log", bytes(range(256)) * 4096)
    doc = report(f"{top}/run")
    finds_crash(doc, "beside a binary file")
    is_skipped(doc, "core.log", "a binary file in a folder", "binary")
    write(top, "nul/rank1.log", CRASH.encode()[:200] + b"\0" * 100000 + CRASH.encode())
    finds_crash(report(f"{top}/nul"), "a block of NUL bytes inside a log")
    write(top, "zeros.log", b"\0" * 1000000)
    p = run("--format", "json", f"{top}/zeros.log")
    check(p.returncode == 66 or json.loads(p.stdout)["verdict"] == "inconclusive", "nothing but NUL bytes is no healthy run")


def test_long_line(top):
    with open(f"{top}/rank1.log", "wb") as f:
        f.write((GOOD % (1, 1)).encode())
        for _ in range(100):
            f.write(b"x" * (1 << 20))
        f.write(b"\n" + CRASH.encode())
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    finds_crash(report(f"{top}/rank1.log"), "a line of 100 MB")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    check(peak <= max(before, 400 << 10), "a line of 100 MB costs no memory", f"{peak} KiB")


def test_archives(top):
    # 540 MiB in a few kilobytes; what some buffers of input may become is let through
    write(top, "bomb/rank0.log.gz", gzip.compress(gzip.compress(b"\n" * (20 << 20), 6) * 27, 9))
    write(top, "bomb/rank1.log", CRASH)
    doc = report(f"{top}/bomb")
    is_skipped(doc, "rank0.log.gz", "a bomb inside another", "2000")
    finds_crash(doc, "beside a bomb")
    inner = CRASH.encode()
    for depth in range(6):
        b = io.BytesIO()
        with zipfile.ZipFile(b, "w", zipfile.ZIP_DEFLATED) as z:
            z.writestr(f"level{depth}.zip" if depth else "rank1.log", inner)
        inner = b.getvalue()
    write(top, "nested/logs.zip", inner)
    write(top, "nested/rank1.log", CRASH)
    doc = report(f"{top}/nested")
    is_skipped(doc, "logs.zip", "an archive in an archive in an archive")
    finds_crash(doc, "beside a nested archive")
    write(top, "cut/rank1.log.gz", gzip.compress((CRASH + "".join("[fit] shard %x\n" % (i * 2654435761 % 4294967291) for i in range(5000))).encode())[:-4000])
    write(top, "cut/rank2.log.bz2", b"BZh9" + os.urandom(200))
    finds_crash(report(f"{top}/cut"), "an archive cut short")
    b = io.BytesIO()
    with tarfile.open(fileobj=b, mode="w") as t:
        for name, data in (("../../etc/escape.log", CRASH), ("/abs/rank1.log", CRASH)):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            t.addfile(info, io.BytesIO(data.encode()))
        info = tarfile.TarInfo("rank9.log")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        t.addfile(info)
    write(top, "evil/logs.tar.bz2", bz2.compress(b.getvalue()))
    doc = report(f"{top}/evil")
    finds_crash(doc, "an archive with names that lead outside")
    check("root:" not in json.dumps(doc), "a link in an archive is not followed")


# ---- output

def test_output(top):
    path = write(top, "rank1.log", CRASH)
    with open("/dev/full", "wb") as full:
        p = run(path, stdout=full)
    check(p.returncode == 74 and p.stderr.count(b"\n") == 1, "standard output on a full disk: 74", (p.returncode, p.stderr))
    p = run("--output", "/dev/full", path)
    check(p.returncode == 74 and p.stderr.count(b"\n") == 1, "--output on a full disk: 74", (p.returncode, p.stderr))
    r, w = os.pipe()
    os.close(r)
    p = run(path, stdout=w)
    os.close(w)
    check(p.returncode == 0 and p.stderr == b"", "a reader that went away is no error", (p.returncode, p.stderr))
    p = subprocess.run(["sh", "-c", '"$0" diagnose "$1" >&-', PROGRAM, path], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    check(p.returncode == 74 and p.stderr.count(b"\n") == 1, "a closed standard output: 74", (p.returncode, p.stderr))
    p = run("--output", f"{top}/absent/report.txt", path)
    check(p.returncode == 74, "--output into a folder that does not exist: 74", (p.returncode, p.stderr))
    before = sorted(os.listdir(top))
    old = write(top, "report.html", "the old report")
    p = run("--format", "html", "--output", old, path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)), restore_signals=False)
    check(p.returncode == 74 and open(old).read() == "the old report", "a report that does not fit leaves the old one", (p.returncode, p.stderr))
    check(sorted(os.listdir(top)) == sorted(before + ["report.html"]), "nothing is left beside it", os.listdir(top))


def main():
    for name, fn in list(globals().items()):
        if name.startswith("test_") and callable(fn):
            top = tempfile.mkdtemp(prefix="faultrank-fault-")
            count = len(failures)
            try:
                fn(top)
            finally:
                if os.path.isdir(f"{top}/run/private"):
                    os.chmod(f"{top}/run/private", 0o700)
                shutil.rmtree(top)
            print("ok -" if len(failures) == count else "not ok -", name)
    sys.exit(1 if failures else 0)


main()
