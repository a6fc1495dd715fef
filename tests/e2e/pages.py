#!/usr/bin/env python3
"""Keeps what failure pages show equal to what the program prints.

  pages.py FAULTRANK SOURCE_DIR [--update]     --update rewrites the shown outputs

In a page, a fenced block whose first line is `$ faultrank repro ...` or `$ faultrank smoke ...` holds that command's output; a line
"..." stands for any lines. Every page with `repro:` shows its own reproduction at least once. Commands that front matter and prose name
(`faultrank repro ID`, `faultrank smoke ID`) must exist, and so must the options of all commands. A page that a finding of `faultrank check`
names (src/tensor/findings.def) has that command among its checks.
"""
import glob, os, re, subprocess, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import usage

PROGRAM, SOURCE, UPDATE = usage.arguments(__doc__, "FAULTRANK", "SOURCE_DIR", update=True)
bad = 0
outputs = {}


def check(ok, what):
    global bad
    if not ok:
        bad += 1
        print("not ok -", what)


def output(command):
    if command not in outputs:
        env = dict(os.environ, PATH=os.path.dirname(PROGRAM) + ":" + os.environ["PATH"], TERM="dumb", LC_ALL="C")
        p = subprocess.run(["bash", "-c", command], env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
        check(p.returncode in (0, 1), "`%s` exits with %d: %s" % (command, p.returncode, p.stderr.decode()[:200]))
        outputs[command] = p.stdout.decode().rstrip("\n").split("\n")
    return outputs[command]


def pieces(shown):
    """The runs of lines between "..." lines, and whether the first and the last one are bound to the ends."""
    runs, run = [], []
    for line in shown:
        if line == "...":
            runs.append(run)
            run = []
        else:
            run.append(line)
    return runs + [run]


def find(run, got, start):
    for i in range(start, len(got) - len(run) + 1):
        if got[i:i + len(run)] == run:
            return i
    return -1


def same(shown, got):
    runs, at = pieces(shown), 0
    if len(runs) == 1:
        return shown == got
    for k, run in enumerate(runs):
        i = find(run, got, at)
        if i < 0 or (k == 0 and i != 0):
            return False
        at = i + len(run)
    return not runs[-1] or got[-len(runs[-1]):] == runs[-1]


def refreshed(shown, got):
    """Every run again, found by its first and last line's beginning; whole outputs are replaced."""
    runs = pieces(shown)
    if len(runs) == 1:
        return got
    out, at = [], 0
    for k, run in enumerate(runs):
        if run:
            begin = 0 if k == 0 else next((i for i in range(at, len(got)) if got[i][:24] == run[0][:24]), -1)
            if begin < 0:
                return shown
            end = min(begin + len(run), len(got))
            out += got[begin:end]
            at = end
        if k < len(runs) - 1:
            out.append("...")
    return out


def one_page(path):
    text = open(path).read()
    page = os.path.relpath(path, SOURCE)
    own = re.search(r"^repro: *'?([a-z0-9-]+)", text, re.M)
    shows = False

    def block(found):
        nonlocal shows
        lines = found.group(1).rstrip("\n").split("\n")
        command, shown = lines[0][2:], lines[1:]
        shows |= own is not None and command.startswith("faultrank repro " + own.group(1))
        got = output(command)
        if UPDATE and not same(shown, got):
            shown = refreshed(shown, got)
        check(same(shown, got), "%s: `%s` prints something else than is shown; run %s FAULTRANK SOURCE_DIR --update" % (
            page, command, os.path.relpath(__file__, SOURCE)))
        return "```\n" + "\n".join(lines[:1] + shown) + "\n```"

    fresh = re.sub(r"```\n(\$ faultrank (?:repro|smoke) .*?)```", block, text, flags=re.S)
    if UPDATE and fresh != text:
        open(path, "w").write(fresh)
    check(own is None or shows, "%s has a reproduction and does not show it" % page)
    for kind, ident in re.findall(r"faultrank (repro|smoke) ([a-z][a-z0-9-]+)", fresh):
        known = repros if kind == "repro" else smokes
        check(ident in known or ident == "all", "%s names `faultrank %s %s`, which does not exist" % (page, kind, ident))


    for command, rest in re.findall(r"faultrank (check|smoke|repro|diagnose|explain|list|search|lint)\b([^`'|;&\n]*)", fresh):
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", rest):
            check(option in options(command), "%s gives `faultrank %s` the option %s, which it does not have" % (page, command, option))
    if os.path.basename(page)[:-3] in named_by_check:
        confirm = re.search(r"^confirm:\n(.*?)^\w", text, re.M | re.S).group(1)
        check("faultrank check" in confirm, "%s is named by `faultrank check`, and does not name it in `confirm`" % page)


def options(command):
    return set(re.findall(r"--[a-z][a-z-]*", "\n".join(output("faultrank %s --help" % command))))


def pages_of_findings():
    found = set()
    for name in glob.glob(SOURCE + "/src/tensor/*.c") + [SOURCE + "/src/tensor/findings.def"]:
        text = open(name).read()
        found |= set(re.findall(r'^X\(\w+, "[^"]*", [A-Z]+, "([a-z0-9-]+)"', text, re.M))
        for call in re.findall(r"fr_found_page\([^;]*;", text):
            found |= set(re.findall(r'"([a-z0-9]+(?:-[a-z0-9]+)+)"', call))
    return found


def ids():
    found = set(re.findall(r"^([a-z0-9-]+)  ", "\n".join(output("faultrank repro")), re.M))
    p = subprocess.run([PROGRAM, "smoke", "-"], stdin=subprocess.DEVNULL, capture_output=True)
    return found, set(re.findall(r"[a-z0-9]+(?:-[a-z0-9]+)+", p.stderr.decode()))


repros, smokes = ids()
named_by_check = pages_of_findings()
for path in sorted(glob.glob(SOURCE + "/failures/*/*.md")):
    one_page(path)
print("not ok" if bad else "ok", "- pages")
sys.exit(1 if bad else 0)
