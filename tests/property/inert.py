#!/usr/bin/env python3
"""Hostile words in real logs, through the real program and every writer: nothing they say may act.

  inert.py FAULTRANK SOURCE_DIR [SEED]

Logs of tests/cases get terminal escapes, HTML, Markdown, workflow commands, bidi overrides, NUL and bad bytes put into their
lines and names; what comes out must parse, must be valid by schema/ and must not hold any of it in a form that works.
"""
import concurrent.futures
import html.parser
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import jsonschema

PROGRAM, SOURCE = sys.argv[1], sys.argv[2]
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 20260311
RUNS = 14
failures, quoted = [], []

POISON = [
    b"\x1b[2J\x1b[31m", b"\x1b]0;owned\x07", b"\x1b]8;;http://frmark.example/\x1b\\click\x1b]8;;\x1b\\", b"\x9b31m", b"\xc2\x9b31m", b"^[[31m",
    b"\x08\x08\x08", b"\x00\x00", b"\xff\xfe\x80", b"\xed\xa0\x80", b"\xe2\x80\xae", b"\xe2\x81\xa6", b"\xe2\x80\x8b", b"\x07",
    b"<script>frmark()</script>", b"<img src=x onerror=frmark()>", b"</pre></code><frmark onclick=frmark()>", b"\"'><svg/onload=frmark()>",
    b"<!-- frmark", b"]]>", b"&lt;frmark&gt;", b"&#60;frmark>", b"`` ``` ````", b"![frmark](http://frmark.example/x.png)", b"[frmark](javascript:frmark())",
    b"@frmark", b"http://frmark.example/", b"| frmark | frmark |", b"\r::error::frmark", b"::set-output name=frmark::1", b"%0A::warning::frmark",
    b"\\\"\\u0000", b"{\"frmark\": 1}", b"${frmark}", b"$(frmark)",
]
NAMES = ["<img src=x onerror=frmark()>.log", "a\x1b[31mred.log", "::error::frmark.log", "`frmark`.log", "new\nline.log", "\u202egol.log", "rank0.log"]


def check(ok, what):
    if not ok:
        failures.append(what)
        print("not ok -", what)


def poisoned(dice, data):
    lines = data.split(b"\n")
    for i in dice.sample(range(len(lines)), min(len(lines), 3 + len(lines) // 3)):
        at = dice.randint(0, len(lines[i]))
        lines[i] = lines[i][:at] + dice.choice(POISON) + lines[i][at:]
    lines += [b"[rank1]: Traceback (most recent call last):", b'[rank1]:   File "/x/' + dice.choice(POISON).replace(b"\r", b"") + b'.py", line 3, in ' + dice.choice(POISON),
              b"[rank1]:     f()", b"[rank1]: KeyError: '" + b"".join(dice.sample(POISON, 6)) + b"'", b""]
    return b"\n".join(lines)


def runs(dice, top):
    paths = []
    for folder, _, names in sorted(os.walk(f"{SOURCE}/tests/cases")):
        paths += [os.path.join(folder, n) for n in sorted(names) if n.endswith((".log", ".out", ".txt", ".json")) and n != "known.txt"]
    for k in range(RUNS):
        folder = os.path.join(top, f"run{k}")
        os.mkdir(folder)
        for n, path in enumerate(dice.sample(paths, 1 + k % 3)):
            with open(os.path.join(folder, NAMES[(k + n) % len(NAMES)]), "wb") as f:
                f.write(poisoned(dice, open(path, "rb").read()))
        yield folder


def show(folder, form, *more):
    p = subprocess.run([PROGRAM, "diagnose", "--format", form, *more, folder], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    check(p.returncode == 0, f"{folder} {form} {more}: exit {p.returncode}: {p.stderr[-600:]!r}")
    check(b"\x1b" not in p.stderr, f"{folder} {form}: ESC on stderr")
    out = p.stdout
    try:
        text = out.decode("utf-8")
    except UnicodeDecodeError as e:
        check(False, f"{folder} {form}: not UTF-8: {e}")
        return ""
    bad = sorted({c for c in text if (ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0 or c in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200b"})
    check(not bad, f"{folder} {form} {more}: passes {[hex(ord(c)) for c in bad]}")
    return text


class Tags(html.parser.HTMLParser):
    def __init__(self, name):
        super().__init__()
        self.name, self.pre, self.shown = name, 0, []

    def handle_starttag(self, tag, attrs):
        check(tag not in ("script", "img", "iframe", "object", "embed", "link", "form", "base", "a", "frmark", "input"), f"{self.name}: <{tag}>")
        for key, value in attrs:
            check(not key.startswith("on") and key not in ("href", "src", "style", "xlink:href"), f"{self.name}: {key}={value}")

    handle_startendtag = handle_starttag

    def handle_comment(self, data):
        check(False, f"{self.name}: a comment: {data[:80]}")


def check_html(name, page):
    t = Tags(name)
    t.feed(page)
    t.close()
    check("Content-Security-Policy" in page, f"{name}: no policy")


def check_markdown(name, text):
    if shutil.which("cmark-gfm"):
        page = subprocess.run(["cmark-gfm", "--unsafe", "-e", "autolink", "-e", "table", "-e", "strikethrough"], input=text.encode(), capture_output=True, check=True)
        tags = set(re.findall(r"<([a-zA-Z0-9]+)", page.stdout.decode()))
        check(tags <= set("h2 p strong em code pre ul ol li hr br".split()), f"{name}: renders {sorted(tags)}")
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", re.sub(r"(?ms)^ *(`{3,})[^`\n]*\n.*?^ *\1 *$", "", text))
    check("@frmark" not in outside, f"{name}: mentions")


def check_run(folder, validator):
    text = show(folder, "json")
    quoted.append("frmark" in text)
    for e in validator.iter_errors(json.loads(text)):
        check(False, f"{folder} json: {'/'.join(map(str, e.path))}: {e.message[:200]}")
    for view in ("engineer", "oncall", "executive"):
        show(folder, "text", "--view", view, "--why")
    check_html(f"{folder} html", show(folder, "html", "--why"))
    check_markdown(f"{folder} markdown", show(folder, "markdown", "--why"))
    check(json.loads(show(folder, "sarif"))["version"] == "2.1.0", f"{folder} sarif")
    xml.etree.ElementTree.fromstring(show(folder, "junit"))
    for line in show(folder, "github").splitlines():
        check(re.fullmatch(r"::(error|warning|notice) ((?:(?:file|line|title)=[^,:]*,?)+)::(.*)", line), f"{folder} github: {line[:160]!r}")


def main():
    dice = random.Random(SEED)
    schema = json.load(open(f"{SOURCE}/schema/diagnosis.schema.json"))
    validator = jsonschema.Draft202012Validator(schema)
    top = tempfile.mkdtemp(prefix="faultrank-inert-")
    try:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(check_run, f, validator) for f in list(runs(dice, top))]:
                done.result()
        check(sum(quoted) * 2 > RUNS, f"only {sum(quoted)} of {RUNS} reports quote what was put in")
    finally:
        if failures:
            print(f"# seed {SEED}, the logs stay in {top}")
        else:
            shutil.rmtree(top)
    print(f"# {RUNS} runs, {len(failures)} failures")
    sys.exit(1 if failures else 0)


main()
