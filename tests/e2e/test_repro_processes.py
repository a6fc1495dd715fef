#!/usr/bin/env python3
"""Reproductions with real processes: what they leave behind, and that `faultrank diagnose` names the rank and the class from their logs.

  test_repro_processes.py FAULTRANK
"""
import concurrent.futures, glob, json, os, re, signal, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import usage

PROGRAM, = usage.arguments(__doc__, "FAULTRANK")
INIT, PIPE = "fsdp-divergent-init", "megatron-pp-stage-asymmetry-hang"
bad = 0


def check(ok, what, detail=""):
    global bad
    if not ok:
        bad += 1
        print("not ok -", what, detail[:600])


def start(*args, tmp):
    env = dict(os.environ, TERM="dumb", LC_ALL="C", TMPDIR=tmp)
    return subprocess.Popen([PROGRAM, *args], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def run(*args, tmp):
    p = start(*args, tmp=tmp)
    out, err = p.communicate(timeout=600)
    return p.returncode, out.decode(), err.decode()


def processes(tmp):
    """Those of this test, ranks too: they have its TMPDIR. Other tests may run the program at the same time."""
    found = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as f:
                if f"TMPDIR={tmp}".encode() in f.read().split(b"\0"):
                    found.append(int(path.split("/")[2]))
        except OSError:
            pass
    return found


def until(true, seconds):
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.01)
    return true()


def diagnosis(folder, tmp):
    code, out, err = run("diagnose", "--format", "json", folder, tmp=tmp)
    check(code == 0, f"diagnose {folder}", err)
    return json.loads(out)


# reproduction, its parameters, the class, scope and ranks that its failing folder must be diagnosed with
CASES = [(INIT, f"rank={r}", "rank", [r], ["--policy", p, "--seed", str(r + 1)]) for r in range(4) for p in ("seed", "load")]
CASES += [(INIT, "rank=1", "all-ranks", [], ["--policy", "every"]), (INIT, "rank=4,ranks=6", "rank", [4], [])]
CASES += [(PIPE, f"rank={r},timeout=600", "rank", [r], ["--seed", str(r + 1)]) for r in range(4)]
CASES += [(PIPE, f"rank={r},timeout=600", "rank", [r], ["--policy", "fewer-microbatches"]) for r in (2, 3)]
# two stages wait for each other: the logs do not tell which of them is wrong
CASES += [(PIPE, "rank=1,timeout=600", "unknown", [], ["--policy", "fewer-microbatches"])]
CASES += [(PIPE, "rank=5,stages=6,timeout=600", "rank", [5], []), (PIPE, "rank=1,stages=3,timeout=600", "rank", [1], [])]


def one_case(ident, settings, scope, ranks, more, tmp):
    name = f"{ident} {settings} {' '.join(more)}"
    with tempfile.TemporaryDirectory(dir=tmp) as folder:
        code, out, err = run("repro", ident, "--folder", folder, "--set", settings, *more, tmp=tmp)
        check(code == 0, f"{name} exits with 0", out + err)
        doc = diagnosis(f"{folder}/fails", tmp)
        got = doc["incidents"][0] if doc["incidents"] else {"class": "none", "initiator": {"scope": "none", "ranks": []}}
        who = got["initiator"]
        check(doc["verdict"] == "failure" and len(doc["incidents"]) == 1, f"{name}: one failure", doc["verdict"])
        check(got["class"] == ident, f"{name}: class", got["class"])
        check(who["scope"] == scope and who["ranks"] == ranks, f"{name}: {scope} {ranks}", json.dumps(who))
        healthy = diagnosis(f"{folder}/fixed", tmp)
        check(healthy["verdict"] == "healthy" and not healthy["incidents"], f"{name}: the fix is healthy", healthy["verdict"])
        check(healthy["input"]["world_size"] in (doc["input"]["world_size"], -1), f"{name}: world size")
        if ident == INIT: # as its page says: nothing in these lines shows the failure
            check(diagnosis(f"{folder}/silent", tmp)["verdict"] == "healthy", f"{name}: without the check, nothing is to be seen")
        lines(name, ident, folder)


def lines(name, ident, folder):
    """The words of PyTorch, torchrun and Megatron."""
    logs = sorted(glob.glob(f"{folder}/fails/none_*/attempt_0/*/stderr.log"))
    texts = [open(p).read() for p in logs]
    check(len(texts) >= 3, f"{name}: one stderr per rank")
    for rank, text in enumerate(texts):
        if ident == PIPE:
            check(re.match(r"\[rank%d\]:\[E\d{3,4} \d\d:\d\d:\d\d\.\d{9} ProcessGroupNCCL\.cpp:\d+\] \[Rank %d\] Watchdog caught collective operation "
                           r"timeout: WorkNCCL\(SeqNum=\d+, OpType=(COALESCED|ALLREDUCE), NumelIn=\d+, NumelOut=\d+, Timeout\(ms\)=\d+\) ran for \d+ "
                           r"milliseconds before timing out\.\n" % (rank, rank), text) is not None, f"{name}: the watchdog of rank {rank}", text)
            check(re.search(r"PG GUID \d\(\w+\) Rank %d\]  failure detected by watchdog at work sequence id: \d+ PG status: last enqueued work: \d+, "
                            r"last completed work: \d+\n" % rank, text) is not None, f"{name}: counters of rank {rank}", text)
        else:
            check(text.startswith(f"[rank{rank}]: Traceback (most recent call last):\n") and "RuntimeError: " in text.splitlines()[-1],
                  f"{name}: the exception of rank {rank}", text)
    table = open(f"{folder}/fails/torchrun.log").read()
    code = -6 if ident == PIPE else 1
    check(f"failed (exitcode: {code}) local_rank: 0" in table and "Root Cause (first observed failure):" in table, f"{name}: torchrun's table", table)


def hung(tmp):
    """A pipeline that waits for half a minute: the leader and its four ranks."""
    p = start("repro", PIPE, "--set", "timeout=30000", tmp=tmp)
    check(until(lambda: len(processes(tmp)) == 5 or p.poll() is not None, 20) and p.poll() is None, "it hangs")
    return p


def ended_by_signals(tmp):
    for signum in (signal.SIGINT, signal.SIGTERM):
        p = hung(tmp)
        p.send_signal(signum)
        p.communicate(timeout=600)
        check(p.returncode == -signum, f"signal {signum} ends it by that signal", str(p.returncode))
        check(processes(tmp) == [], "no process is left after an interrupt", str(processes(tmp)))
        check(os.listdir(tmp) == [], "no folder is left after an interrupt", str(os.listdir(tmp)))
    p = hung(tmp)
    p.kill()
    p.communicate()
    check(until(lambda: processes(tmp) == [], 10), "ranks die with their leader", str(processes(tmp)))
    for left in os.listdir(tmp):
        check(left.startswith("faultrank-repro-"), "only the killed one's folder is left", left)
        subprocess.run(["rm", "-r", os.path.join(tmp, left)])


def errors(tmp):
    code, out, err = run("repro", PIPE, "--set", "rank=7", tmp=tmp)
    check(code == 64 and "there is no stage 7 in a pipeline of 4" in err, "a stage that is not there", err)
    code, out, err = run("repro", INIT, "--folder", f"{tmp}/no/such", tmp=tmp)
    check(code == 74 and "cannot make the folder" in err, "a folder that cannot be made", err)


def main():
    with tempfile.TemporaryDirectory(prefix="faultrank-crew-") as tmp:
        with concurrent.futures.ThreadPoolExecutor(4) as pool: # they wait, mostly
            list(pool.map(lambda case: one_case(*case, tmp), CASES))
        for ident in (INIT, PIPE):
            began = time.monotonic()
            first, second = run("repro", ident, tmp=tmp), run("repro", ident, tmp=tmp)
            check(first[0] == 0 and first == second, f"{ident} prints the same twice", first[2])
            check((time.monotonic() - began) / 2 < 5, f"{ident} takes less than 5 s", f"{(time.monotonic() - began) / 2:.1f} s")
        ended_by_signals(tmp)
        errors(tmp)
        check(processes(tmp) == [] and os.listdir(tmp) == [], "nothing is left", str(os.listdir(tmp)))
    print("not ok" if bad else "ok", "- reproductions with processes")
    sys.exit(1 if bad else 0)


main()
