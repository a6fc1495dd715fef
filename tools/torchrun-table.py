#!/usr/bin/env python3
"""What torchrun's own "Root Cause (first observed failure)" table names, against the labels of the real runs, and what faultrank names.

  tools/torchrun-table.py --bin build/release/faultrank [DIR]

DIR (tests/cases/torchrun) holds labels.jsonl beside the runs. Only runs whose logs hold the table are counted; of a healthy run or one
that all ranks failed alike, the right answer is to name no rank.
"""
import argparse
import json
import os
import re
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = re.compile(r"Root Cause \(first observed failure\).*?rank\s+: (\d+) \(local_rank", re.S)


def table_rank(folder):
    """The rank of the table, or None when the logs hold none."""
    for name in sorted(os.listdir(folder)):
        found = ROOT.search(open(os.path.join(folder, name), errors="replace").read())
        if found:
            return int(found.group(1))
    return None


def our_ranks(binary, folder):
    out = subprocess.run([binary, "diagnose", "--format", "json", folder], stdout=subprocess.PIPE, check=True).stdout
    incidents = json.loads(out)["incidents"]
    return incidents[0]["initiator"]["ranks"] if incidents else []


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--bin", default="faultrank")
    a.add_argument("dir", nargs="?", default=os.path.join(HERE, "..", "tests", "cases", "torchrun"))
    o = a.parse_args()
    known, unknown, table_right, table_named, our_right, our_named = 0, 0, 0, 0, 0, 0
    for line in open(os.path.join(o.dir, "labels.jsonl")):
        label = json.loads(line)
        folder = os.path.join(o.dir, label["file"])
        rank = table_rank(folder)
        if rank is None:
            continue
        ours, truth = our_ranks(o.bin, folder), label["initiator"]["ranks"]
        if truth:
            known += 1
            table_right += [rank] == truth
            our_right += ours == truth
        else:
            unknown += 1
            table_named += 1
            our_named += bool(ours)
    print("runs that print the table: %d" % (known + unknown))
    print("                                        torchrun's table  faultrank")
    print("logs tell the rank: named the right one %16s  %9s" % ("%d of %d" % (table_right, known), "%d of %d" % (our_right, known)))
    print("logs cannot tell one: named one anyway  %16s  %9s" % ("%d of %d" % (table_named, unknown), "%d of %d" % (our_named, unknown)))


main()
