#!/usr/bin/env python3
"""Writes docs/scorecard.md: what a build gets right on labelled cases, and what it does not.

  scorecard.py --bin build/release/faultrank --out docs/scorecard.md [--reliability src/incident/reliability.def] DIR...

With --reliability also writes the table from which the program takes the number beside a confidence band.

Each DIR holds labels.jsonl beside its logs (see tests/cases/run.py). Nothing here is typed in by hand: every number comes from
running the given build over the given cases.
"""
import argparse
import collections
import importlib.util
import os
import resource
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
spec = importlib.util.spec_from_file_location("run", os.path.join(HERE, "..", "tests", "cases", "run.py"))
cases = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cases)

CHECKS = [("class", "class right"), ("rank", "first rank (or scope) right"), ("overclaim", "named no rank where none can be told"),
          ("line", "first evidence within 3 lines"), ("action", "action right"), ("sure", "not wrong while certain")]


def share(ok, n):
    return "%d / %d (%.1f %%)" % (ok, n, 100.0 * ok / n) if n else "-"


def tally(rows, check):
    seen = [r["checks"][check] for r in rows if check in r["checks"]]
    return sum(seen), len(seen)


def corpus_table(rows):
    corpora = sorted({r["corpus"] for r in rows})
    out = ["| | " + " | ".join(corpora) + " | all |", "|---" * (len(corpora) + 2) + "|"]
    for key, title in CHECKS:
        cells = [share(*tally([r for r in rows if r["corpus"] == c], key)) for c in corpora]
        out.append("| %s | %s | %s |" % (title, " | ".join(cells), share(*tally(rows, key))))
    healthy = [[r for r in rows if r["accept"] == ["healthy"] and c in (None, r["corpus"])] for c in corpora + [None]]
    out.append("| false alarms on healthy runs | " + " | ".join(
        "%d / %d" % (sum(not r["checks"]["class"] for r in h), len(h)) for h in healthy) + " |")
    return out


def right(r):
    return r["checks"]["class"] and r["checks"].get("rank", True) and r["checks"].get("overclaim", True)


def reliability(rows):
    """Per band: how often the whole answer was right, and what the OTHER corpora would have promised for each corpus."""
    out = ["| band | cases | whole answer right | promised by the other corpora (mean) | mean gap |", "|---|---|---|---|---|"]
    corpora = sorted({r["corpus"] for r in rows})
    for band in ("certain", "likely", "possible"):
        mine = [r for r in rows if r["band"] == band]
        promised, gaps = [], []
        for c in corpora:
            train = [right(r) for r in mine if r["corpus"] != c]
            test = [right(r) for r in mine if r["corpus"] == c]
            if train and test:
                p, t = sum(train) / len(train), sum(test) / len(test)
                promised.append((p, len(test)))
                gaps.append((abs(p - t), len(test)))
        mean = lambda v: "%.2f" % (sum(x * n for x, n in v) / sum(n for _, n in v)) if v else "-"
        out.append("| %s | %d | %s | %s | %s |" % (band, len(mine), share(sum(map(right, mine)), len(mine)), mean(promised), mean(gaps)))
    return out


def write_reliability(rows, path):
    """X(BAND, cases, right) of the cases that nobody looked at while the rules were written (`held_out` in their labels); the program
    shows a number only where the table holds enough of them."""
    with open(path, "w") as f:
        f.write("/* Made by `make scorecard` from the held-out cases: band, cases, whole answers right. Do not edit. */\n")
        for band in ("possible", "likely", "certain"):
            mine = [right(r) for r in rows if r["band"] == band and r["held_out"]]
            f.write("X(%s, %d, %d)\n" % (band.upper(), len(mine), sum(mine)))


def class_table(rows):
    by = collections.defaultdict(list)
    for r in rows:
        by[r["accept"][0]].append(r)
    out = ["| class (first accepted) | cases | class right | first rank right |", "|---|---|---|---|"]
    for name in sorted(by):
        ok, n = tally(by[name], "class")
        rk = tally(by[name], "rank")
        out.append("| %s | %d | %d | %s |" % (name, n, ok, "%d / %d" % rk if rk[1] else "-"))
    return out


def misses(rows):
    out = []
    for r in rows:
        bad = [k for k, v in r["checks"].items() if not v]
        if bad:
            out.append("- %s/%s: %s (answered %s, accepts %s)" % (r["corpus"], r["file"], ", ".join(bad), r["got"], ", ".join(r["accept"])))
    return out or ["- none"]


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--bin", required=True)
    a.add_argument("--out", required=True)
    a.add_argument("--reliability")
    a.add_argument("dirs", nargs="+")
    o = a.parse_args()
    rows, ignored = [], []
    for d in o.dirs:
        cases.run_directory(o.bin, d.rstrip("/"), rows, ignored)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024.0
    version = subprocess.run([o.bin, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    seconds = sorted(r["seconds"] for r in rows)
    text = ["# Scorecard", "", "Made by `make scorecard` with %s. Cases: %d. Do not edit." % (version, len(rows)), "",
            "## By corpus", ""] + corpus_table(rows)
    text += ["", "A corpus is a folder of labelled cases: `torchrun`, `slurm` and `runs` are real multi-rank runs with an injected fault; the others are",
             "public reports, or renderings of their kinds under `tests/cases`.", "", "## How much a confidence band is worth", ""] + reliability(rows)
    text += ["", "A band is honest when the promise of the other corpora and what this corpus shows lie close together. The rules were",
             "written with these cases at hand: on logs they have never seen, every share on this page is lower.", "",
             "## Speed and memory", "", "Median %.0f ms a case, slowest %.0f ms, start of the process included; peak memory of any case %.0f MiB." % (
                 1000 * seconds[len(seconds) // 2], 1000 * seconds[-1], peak), "", "## What it gets wrong", ""] + misses(rows)
    text += ["", "## By class", ""] + class_table(rows) + [""]
    with open(o.out, "w") as f:
        f.write("\n".join(text))
    if o.reliability:
        write_reliability(rows, o.reliability)
    return 0


if __name__ == "__main__":
    sys.exit(main())
