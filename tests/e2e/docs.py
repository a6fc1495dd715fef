#!/usr/bin/env python3
"""Keeps the documentation true.

  docs.py FAULTRANK SOURCE_DIR [--update]     --update rewrites the shown outputs

Every `$ faultrank ...` or `$ tools/...` command in a ```console block, and in the examples of the man page, is run in a folder that
holds the files of make_sandbox.py and links to the repository. Where output is shown it must be what the command prints ("..." stands
for any lines). Every path, test, case, make target and quoted constant that the text names must exist.
"""
import glob, os, re, subprocess, sys, tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import make_sandbox
import usage

PROGRAM, SOURCE, UPDATE = usage.arguments(__doc__, "FAULTRANK", "SOURCE_DIR", update=True)
LINKED = ("docs", "examples", "failures", "tests", "tools")
PLACES = ("src/", "include/", "failures/", "schema/", "tests/", "docs/", "man/", "tools/", "examples/", "completions/", "bench/", ".ci/")
MADE = {"bench/results.csv"}  # appears with the first `make bench`
bad = 0


def check(ok, what):
    global bad
    if not ok:
        bad += 1
        print("not ok -", what)


def pages():
    found = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "examples/README.md"]
    found += [os.path.relpath(p, SOURCE) for p in glob.glob(SOURCE + "/docs/**/*.md", recursive=True)]
    return sorted(p for p in found if p != "docs/scorecard.md")


def run(line, folder):
    env = {k: v for k, v in os.environ.items() if k not in ("XDG_CACHE_HOME", "NO_COLOR")}
    env.update(HOME=folder, PATH=os.path.dirname(PROGRAM) + ":" + env["PATH"], TERM="dumb", LC_ALL="C")
    p = subprocess.run(["bash", "-c", "set -o pipefail; " + line], cwd=folder, env=env, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    return p.returncode, p.stdout.decode().rstrip("\n").split("\n") if p.stdout else []


def same(shown, got):
    """Whether the lines are equal, where a shown "..." stands for any lines."""
    if not shown:
        return not got
    if shown[0] == "...":
        return any(same(shown[1:], got[i:]) for i in range(len(got) + 1))
    return bool(got) and shown[0].rstrip() == got[0].rstrip() and same(shown[1:], got[1:])


def wanted_status(line):
    return (0, 141) if "| head" in line else (1,) if "--exit-code" in line else (0,)


def is_ours(line):
    return re.search(r"(^|\| |; )(faultrank|tools/\S+) ?", line) is not None


def replay(page, block, folder):
    """The block as it should be."""
    out, i = [], 0
    while i < len(block):
        command, shown = block[i], []
        out.append(command)
        i += 1
        while i < len(block) and not block[i].startswith("$ "):
            shown.append(block[i])
            i += 1
        if not command.startswith("$ ") or not is_ours(command[2:]):
            out += shown
            continue
        while shown and not shown[-1].strip():
            shown.pop()
        status, got = run(command[2:].split("   #")[0], folder)
        check(status in wanted_status(command), "%s: `%s` exits with %d: %s" % (page, command[2:], status, " ".join(got)[:300]))
        if shown and UPDATE and "..." not in shown:
            shown = got
        check(not shown or same(shown, got), "%s: `%s` prints something else than is shown; run %s FAULTRANK SOURCE_DIR --update" % (
            page, command[2:], os.path.relpath(__file__, SOURCE)))
        out += shown + ([""] if shown and i < len(block) else [])
    return out


def check_commands(page, text, folder):
    def one(found):
        block = replay(page, found.group(1).rstrip("\n").split("\n"), folder)
        return "```console\n" + "\n".join(block) + "\n```"

    fresh = re.sub(r"```console\n(.*?)```", one, text, flags=re.S)
    if UPDATE and fresh != text:
        open(os.path.join(SOURCE, page), "w").write(fresh)
    return fresh


def check_manual(folder):
    text = open(SOURCE + "/man/faultrank.1").read().replace("\\-", "-")
    for line in re.findall(r"^\.Dl \$ (faultrank .*|.*\| faultrank .*)$", text, re.M):
        replay("man/faultrank.1", ["$ " + line], folder)
    for block in re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed", text, re.M | re.S):
        if block.startswith("$ "):
            replay("man/faultrank.1", block.rstrip("\n").split("\n"), folder)


def exists(path):
    return path in MADE or bool(glob.glob(os.path.join(SOURCE, path)))


def check_names(page, text):
    prose = re.sub(r"```.*?```", "", text, flags=re.S)
    spans = re.findall(r"`([^`\n]+)`", prose)
    for span in spans:
        if span.startswith(PLACES) and not re.search(r"[<>\s]|NAME", span):
            check(exists(span.split(":")[0]), "%s names `%s`, which does not exist" % (page, span))
        found = re.fullmatch(r"(test_\w+\.c):(\w+)", span)
        if found:
            path = "%s/tests/unit/%s" % (SOURCE, found.group(1))
            check(os.path.exists(path) and "T_TEST(%s)" % found.group(2) in open(path).read(), "%s: there is no test `%s`" % (page, span))
        found = re.fullmatch(r"cases/(\w+/[\w.-]+?)/?", span)
        if found:
            check(exists("tests/cases/" + found.group(1)), "%s: there is no case `%s`" % (page, span))
    targets = set(re.search(r"^\.PHONY: (.*)$", open(SOURCE + "/Makefile").read(), re.M).group(1).split())
    for target in re.findall(r"(?:`|^\$ |\n)make ([a-z]+)", text):
        check(target in targets, "%s: there is no target `make %s`" % (page, target))
    for link in re.findall(r"\]\(([^)#:\s]+)[^):]*\)", prose):
        check(exists(os.path.normpath(os.path.join(os.path.dirname(page), link))), "%s links to %s, which does not exist" % (page, link))
    for row in prose.split("\n"):  # | limit | `the source's own words` | `file` |
        found = re.fullmatch(r"\|[^|]*\| `([^`]+)` \| `((?:src|include|tools)/[^`]+)` \|", row.strip())
        if found:
            path = os.path.join(SOURCE, found.group(2))
            check(os.path.exists(path) and found.group(1) in open(path).read(), "%s: `%s` does not say `%s`" % (
                page, found.group(2), found.group(1)))


def main():
    folder = tempfile.mkdtemp(prefix="faultrank-docs-")
    try:
        make_sandbox.make(folder)
        for name in LINKED:
            os.symlink(os.path.join(SOURCE, name), os.path.join(folder, name))
        for page in pages():
            before = bad
            text = open(os.path.join(SOURCE, page)).read()
            check_names(page, check_commands(page, text, folder))
            print("ok -" if bad == before else "failed -", page)
        check_manual(folder)
    finally:
        subprocess.run(["rm", "-rf", folder])
    sys.exit(1 if bad else 0)


main()
