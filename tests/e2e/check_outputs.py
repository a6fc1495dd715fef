#!/usr/bin/env python3
"""Every fixture through every writer, checked from outside: schemas, parsers and escape rules.

  check_outputs.py TEST_REPORT_PROGRAM SOURCE_DIR

"""
import copy, html.parser, json, os, re, shutil, subprocess, sys, time, xml.etree.ElementTree as ET

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import usage

PROGRAM, SOURCE = usage.arguments(__doc__, "TEST_REPORT_PROGRAM", "SOURCE_DIR")
FIXTURES = ("one-rank single silent all-ranks node unknown healthy inconclusive nothing two-incidents hostile huge").split()
failures = []


def check(ok, what):
    if not ok:
        failures.append(what)
        print("not ok -", what)


def show(fixture, writer, *more):
    start = time.time()
    p = subprocess.run([PROGRAM, "show", fixture, writer, *more], stdout=subprocess.PIPE, check=True)
    check(time.time() - start < 5, f"{fixture} {writer}: took too long")
    return p.stdout


def closed(schema):
    """The published schema is open, so that fields can be added; what we write must all be described in it."""
    s = copy.deepcopy(schema)

    def close(node):
        if isinstance(node, dict):
            if node.get("type") == "object" and "properties" in node:
                node.setdefault("additionalProperties", False)
            for v in node.values():
                close(v)
        elif isinstance(node, list):
            for v in node:
                close(v)

    close(s)
    return s


def check_json():
    import jsonschema
    schema = json.load(open(f"{SOURCE}/schema/diagnosis.schema.json"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(closed(schema))
    for f in FIXTURES:
        out = show(f, "json")
        check(all(b < 0x7F and (b >= 0x20 or b == 0x0A) for b in out), f"{f} json: not plain ASCII")
        doc = json.loads(out)
        for e in validator.iter_errors(doc):
            check(False, f"{f} json: {'/'.join(map(str, e.path))}: {e.message[:200]}")
    doc = json.loads(show("one-rank", "json"))
    check(doc["incidents"][0]["initiator"]["ranks"] == [11], "one-rank json: initiator")
    check(len(doc["incidents"][0]["collateral"]) == 63, "one-rank json: collateral")


def check_text():
    for f in FIXTURES:
        for view in "012":
            for why in ((), ("why",)):
                out = show(f, "text", view, *why)
                out.decode("utf-8")
                check(b"\x1b" not in out and b"\x07" not in out and b"\xc2\x9b" not in out, f"{f} text {view}: escape passes")
                check(b"\xe2\x80\xae" not in out, f"{f} text {view}: bidi override passes")


class Tags(html.parser.HTMLParser):
    """Counts tags and attributes; hostile text must add none."""
    ALLOWED = {
        "html": {"lang"}, "head": set(), "meta": {"charset", "http-equiv", "content", "name"}, "title": set(), "style": set(),
        "body": set(), "main": set(), "section": set(), "h1": {"class"}, "h2": set(), "p": {"class"}, "b": set(), "i": {"class"},
        "span": set(), "pre": {"class"}, "code": set(), "ul": set(), "ol": set(), "li": set(), "div": {"class"}, "table": set(),
        "tr": set(), "th": set(), "td": set(), "details": {"open"}, "summary": set(), "footer": set(), "br": set(),
        "svg": {"viewbox", "role", "aria-label"}, "g": {"class"}, "rect": {"x", "y", "width", "height", "class"},
        "line": {"class", "x1", "y1", "x2", "y2"}, "text": {"class", "x", "y"}, "path": {"class", "d"},
    }
    VOID = {"meta", "br", "rect", "line", "path"}

    def __init__(self, name):
        super().__init__()
        self.name, self.stack, self.count, self.policy = name, [], 0, False

    def handle_starttag(self, tag, attrs):
        self.count += 1
        check(tag in self.ALLOWED and {a for a, _ in attrs} <= self.ALLOWED.get(tag, set()), f"{self.name}: <{tag} {attrs}>")
        self.policy |= ("http-equiv", "Content-Security-Policy") in attrs
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        check(self.stack and self.stack[-1] == tag, f"{self.name}: </{tag}> closes {self.stack[-3:]}")
        if self.stack:
            self.stack.pop()

    def handle_comment(self, data):
        check(False, f"{self.name}: a comment")


def check_html():
    for f in FIXTURES:
        for view in "012":
            out = show(f, "html", view, *(("why",) if view == "0" else ()))
            page = out.decode("utf-8")
            t = Tags(f"{f} html {view}")
            t.feed(page)
            t.close()
            check(t.stack == [] and t.policy, f"{f} html {view}: unclosed {t.stack} or no policy")
            check(not re.search(r"(src|href|url)\s*[=(]", re.sub(r"<title>.*?</title>", "", page)) or f == "hostile", f"{f} html: loads something")
            check(len(out) < 200_000, f"{f} html: {len(out)} bytes")
    rows = show("huge", "html").count(b"<rect x=")
    check(rows <= 256, f"huge html: {rows} lanes")
    check(b">rank 1234</text>" in show("huge", "html"), "huge html: the first rank has no lane of its own")
    check(show("one-rank", "html").count(b'class="p"') == 1, "one-rank html: the first evidence is not marked")


def check_markdown():
    for f in FIXTURES:
        for view in "012":
            out = show(f, "markdown", view, "why").decode("utf-8")
            check(out.endswith("\n") and "\x1b" not in out, f"{f} markdown {view}")
            if shutil.which("cmark-gfm"):
                # --unsafe: raw HTML would come through, so that we see whether there is any.
                p = subprocess.run(["cmark-gfm", "--unsafe", "-e", "autolink", "-e", "table", "-e", "strikethrough"], input=out.encode(),
                                   stdout=subprocess.PIPE, check=True)
                page = p.stdout.decode()
                tags = set(re.findall(r"<([a-z0-9]+)", page))
                check(tags <= set("h2 p strong em code pre ul ol li hr br".split()), f"{f} markdown {view}: renders <{tags}>")
                if f == "hostile" and view == "0":
                    check("<strong>bold" not in page, "hostile markdown: formats")


def check_sarif():
    for f in FIXTURES:
        doc = json.loads(show(f, "sarif"))
        run = doc["runs"][0]
        rules = [r["id"] for r in run["tool"]["driver"]["rules"]]
        check(doc["version"] == "2.1.0" and len(rules) == len(set(rules)), f"{f} sarif: rules")
        for r in run["tool"]["driver"]["rules"]:
            check(len(set(r["properties"]["tags"])) == len(r["properties"]["tags"]), f"{f} sarif: tags twice")
        for r in run["results"]:
            ids = [where["id"] for where in r["relatedLocations"]]
            check(len(set(ids)) == len(ids), f"{f} sarif: related locations without ids of their own")
            check(rules[r["ruleIndex"]] == r["ruleId"], f"{f} sarif: rule index")
            check(r["kind"] == "fail" or r["level"] == "none", f"{f} sarif: level of kind {r['kind']}")
            check(r["message"]["text"], f"{f} sarif: message")
            for where in r["locations"] + r["relatedLocations"]:
                p = where["physicalLocation"]
                check(re.fullmatch(r"[A-Za-z0-9._~/%:-]+", p["artifactLocation"]["uri"]), f"{f} sarif: uri")
                check(p["region"]["startLine"] >= 1, f"{f} sarif: startLine")
        schema = os.environ.get("FR_SARIF_SCHEMA")  # the OASIS schema, where someone has it
        if schema:
            import jsonschema
            for e in jsonschema.Draft7Validator(json.load(open(schema))).iter_errors(doc):
                check(False, f"{f} sarif: {'/'.join(map(str, e.path))}: {e.message[:200]}")


def check_junit():
    for f in FIXTURES:
        suites = ET.fromstring(show(f, "junit").decode("utf-8"))
        suite = suites.find("testsuite")
        cases = suite.findall("testcase")
        check(int(suite.get("tests")) == len(cases) > 0, f"{f} junit: tests")
        check(int(suite.get("failures")) == len(suite.findall("testcase/failure")), f"{f} junit: failures")
        check(int(suite.get("errors")) == len(suite.findall("testcase/error")), f"{f} junit: errors")
        check(suites.get("tests") == suite.get("tests"), f"{f} junit: totals")
    check(ET.fromstring(show("healthy", "junit")).get("failures") == "0", "healthy junit")
    check(ET.fromstring(show("nothing", "junit")).get("errors") == "1", "nothing junit: cannot tell must not be green")


def check_github():
    for f in FIXTURES:
        for line in show(f, "github").decode("utf-8").splitlines():
            m = re.fullmatch(r"::(error|warning|notice) ((?:(?:file|line|title)=[^,:]*,?)+)::(.*)", line)
            check(m, f"{f} github: {line[:200]}")
    check(show("one-rank", "github").startswith(b"::error file=runs/42/rank11.log,line=4812,title=Rank 11 failed first%3A "), "one-rank github")


def main():
    for name, fn in sorted(globals().items()):
        if name.startswith("check_") and callable(fn):
            fn()
            print("ok -" if not failures else "done -", name)
    sys.exit(1 if failures else 0)


main()
