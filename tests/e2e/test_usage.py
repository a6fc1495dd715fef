#!/usr/bin/env python3
"""Every program of this folder says how it is called: to --help, and to a call that cannot work.

  test_usage.py FOLDER
"""
import glob, os, subprocess, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import usage

FOLDER, = usage.arguments(__doc__, "FOLDER")
bad = 0
for path in sorted(glob.glob(FOLDER + "/*.py")):
    name = os.path.basename(path)
    if name == "usage.py":
        continue
    for args, code, stream in ((["--help"], 0, "stdout"), ([], 64, "stderr"), (["--odd"], 64, "stderr"), ([FOLDER] * 4, 64, "stderr"), (["no/such"], 64, "stderr")):
        p = subprocess.run([sys.executable, path, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        if p.returncode != code or name not in getattr(p, stream) or "Traceback" in p.stderr:
            bad += 1
            print("not ok -", name, *args, p.returncode, p.stderr[-300:])
sys.exit(bad > 0)
