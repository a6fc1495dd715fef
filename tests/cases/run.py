#!/usr/bin/env python3
"""Runs faultrank over labelled cases and checks every expectation.

  run.py --bin PATH DIR...            each DIR holds labels.jsonl beside its logs
  run.py --bin PATH --json FILE DIR...  also write the judged rows, for the scorecard

A label says what is true, not what the program prints: `accept` (classes that are right; "healthy" and "inconclusive" are
verdicts), `initiator` (scope, ranks where the logs can tell), `began_line`, `action`, `note` (what makes the case hard).
tests/cases/known.txt lists checks that are known to fail: "CORPUS/FILE CHECK why" a line. One that passes is an error
too, so the list can only shrink.
"""
import argparse
import collections
import json
import os
import subprocess
import sys
import time


def diagnose(binary, path):
    start = time.time()
    p = subprocess.run([binary, "diagnose", "--format", "json", path], stdin=subprocess.DEVNULL, capture_output=True,
                       timeout=120, check=False)
    if p.returncode != 0:
        raise RuntimeError("exit %d: %s" % (p.returncode, p.stderr.decode(errors="replace")[:400]))
    return json.loads(p.stdout), time.time() - start


def judge(label, report):
    """{check: (passed, what was got)} for the checks that the label allows."""
    verdict = report["verdict"]
    incident = (report.get("incidents") or [{}])[0]
    got = incident.get("class") if verdict == "failure" else verdict
    band = (incident.get("confidence") or {}).get("band")
    want, have = label.get("initiator") or {}, incident.get("initiator") or {}
    healthy = "healthy" in label["accept"]
    out = {"class": (got in label["accept"], got)}
    ranks, scope = want.get("ranks"), want.get("scope")
    where = "%s %s" % (have.get("scope"), have.get("ranks") or [])
    if healthy:
        pass
    elif scope == "all-ranks":
        out["rank"] = (have.get("scope") == "all-ranks", where)
    elif ranks:
        ok = sorted(have.get("ranks") or []) == sorted(ranks) or bool(want.get("or_scope")) and have.get("scope") == want["or_scope"]
        out["rank"] = (ok, where)
    elif scope in ("unknown", None):
        named = bool(have.get("ranks")) and have.get("scope") in ("rank", "ranks")
        out["overclaim"] = (not named, where)
    if label.get("began_line"):
        line = (incident.get("evidence") or [{}])[0].get("line")
        out["line"] = (line is not None and abs(line - label["began_line"]) <= 3, line)
    if label.get("action"):
        out["action"] = (incident.get("action", "none") == label["action"], incident.get("action", "none"))
    wrong = not out["class"][0] or not out.get("rank", (True,))[0] or not out.get("overclaim", (True,))[0]
    out["sure"] = (not (wrong and band == "certain"), band)
    return out, band


def known_failures():
    known = {}
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "known.txt")
    for line in open(path):
        if line.strip() and not line.startswith("#"):
            name, check, why = line.rstrip("\n").split(" ", 2)
            known[name, check] = why
    return known


def run_directory(binary, directory, rows, failures):
    count = collections.Counter()
    known = known_failures()
    corpus = os.path.basename(directory)
    prefix = "shared-" if os.path.basename(os.path.dirname(os.path.dirname(directory))) == "shared" else ""
    for line in open(os.path.join(directory, "labels.jsonl")):
        label = json.loads(line)
        try:
            report, took = diagnose(binary, os.path.join(directory, label["file"]))
            checks, band = judge(label, report)
        except Exception as e:  # noqa: BLE001 - a crash is a result
            checks, band, took = {"class": (False, "ERROR %s" % e), "crash": (False, str(e))}, None, 0.0
        for check, (ok, got) in checks.items():
            count[check, ok] += 1
            if ok == ((prefix + corpus + "/" + label["file"], check) in known):
                failures.append("%s/%s: %s: got %s, accepts %s %s line %s action %s%s" % (
                    directory, label["file"], check, got, label["accept"], label.get("initiator"), label.get("began_line"),
                    label.get("action"), " (listed in known.txt but passes: remove it)" if ok else ""))
        rows.append({"corpus": prefix + corpus, "file": label["file"], "accept": label["accept"], "band": band, "held_out": label.get("held_out", False),
                     "seconds": took, "checks": {k: v[0] for k, v in checks.items()}, "got": checks["class"][1]})
    names = sorted({c for c, _ in count})
    print("%s: %s" % (directory, ", ".join("%s %d/%d" % (n, count[n, True], count[n, True] + count[n, False]) for n in names)))


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--bin", required=True)
    a.add_argument("--json")
    a.add_argument("dirs", nargs="+")
    o = a.parse_args()
    rows, failures = [], []
    for d in o.dirs:
        run_directory(o.bin, d.rstrip("/"), rows, failures)
    for f in failures:
        print("  " + f)
    if o.json:
        with open(o.json, "w") as out:
            json.dump(rows, out, indent=1)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
