#!/usr/bin/env python3
"""How often each 4-byte run occurs in ordinary logs: makes src/match/weights.inc.

usage: gram-weights.py --out src/match/weights.inc KIND=PATH [KIND=PATH ...]

Each KIND is one sort of text (training logs, system logs, source, ...); PATHs of one kind are read together, from at most
--slice bytes taken evenly over all files. A run's weight is the mean over the kinds of its rate per byte, so that no
single corpus decides. Runs are masked and hashed to 65,536 places as the gate does it (src/match/gate.h); a place keeps 22 + floor(log2(rate)), cut to 0..15, as one hex
digit. Only newly gathered text changes the table, so it is checked in and the build reads no logs. --base takes a table made
before in, with the weight of the kinds that its head names: text that is gone still counts.
"""
import argparse
import collections
import math
import os

PLACES = 1 << 16


def files_of(path):
    if os.path.isfile(path):
        yield path
    for base, dirs, names in os.walk(path):
        dirs.sort()
        for name in sorted(names):
            full = os.path.join(base, name)
            if os.path.isfile(full) and not os.path.islink(full) and not name.endswith((".gz", ".xz", ".jsonl")):
                yield full


def sample(paths, limit):
    """Up to limit bytes in 64 KiB pieces spread evenly over everything."""
    files = [(f, os.path.getsize(f)) for p in paths for f in files_of(p)]
    total = sum(size for _, size in files)
    piece = 65536
    step = max(1.0, total / max(1, limit))
    due, at, left = 0.0, 0, limit
    for name, size in files:
        with open(name, "rb") as f:
            pos = 0
            while pos < size and left > 0:
                if at + pos >= due:
                    f.seek(pos)
                    data = f.read(min(piece, left))
                    if b"\0" not in data:
                        left -= len(data)
                        yield data
                    due += len(data) * step
                pos += piece
        at += size


def read_base(path):
    """(kinds, rates) of a table made before."""
    head, *rows = open(path).read().splitlines()
    notes = head[head.index("from: ") + 6:head.rindex(". */")].split(", ")
    digits = "".join(row.strip('"') for row in rows)
    return notes, [0.0 if d == "0" else 1.4 * 2.0 ** (int(d, 16) - 22) for d in digits]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--out", required=True)
    ap.add_argument("--base")
    ap.add_argument("--slice", type=int, default=6 << 20)
    ap.add_argument("kinds", nargs="+", metavar="KIND=PATH")
    a = ap.parse_args()
    kinds = collections.OrderedDict()
    for item in a.kinds:
        kind, path = item.split("=", 1)
        kinds.setdefault(kind, []).append(path)
    notes, rates = read_base(a.base) if a.base else ([], [0.0] * PLACES)
    all_kinds = len(notes) + len(kinds)
    rates = [r * len(notes) / all_kinds for r in rates]
    for kind, paths in kinds.items():
        counts = collections.Counter()
        size = 0
        for data in sample(paths, a.slice):
            size += len(data)
            counts.update(zip(data, data[1:], data[2:], data[3:]))
        notes.append("%s %d bytes" % (kind, size))
        for (b0, b1, b2, b3), n in counts.items():
            key = (b0 | b1 << 8 | b2 << 16 | b3 << 24) & 0x1fffff1f
            place = ((key * 0x9e3779b1) & 0xffffffff) >> 16
            rates[place] += n / max(size, 1 << 20) / all_kinds
    digits = ""
    for r in rates:
        digits += "%x" % (0 if r <= 0 else min(15, max(0, 22 + math.floor(math.log2(r)))))
    with open(a.out, "w") as out:
        out.write("/* Made by tools/gram-weights.py from: %s. */\n" % ", ".join(notes))
        for i in range(0, PLACES, 128):
            out.write('"%s"\n' % digits[i:i + 128])


if __name__ == "__main__":
    main()
