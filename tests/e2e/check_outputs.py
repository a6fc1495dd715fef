#!/usr/bin/env python3
"""Every fixture through every writer, checked from outside: schemas, parsers and escape rules.

  check_outputs.py TEST_REPORT_PROGRAM SOURCE_DIR

"""
import copy, html.parser, json, re, subprocess, sys, time, xml.etree.ElementTree as ET

PROGRAM, SOURCE = sys.argv[1], sys.argv[2]
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


def main():
    for name, fn in sorted(globals().items()):
        if name.startswith("check_") and callable(fn):
            fn()
            print("ok -" if not failures else "done -", name)
    sys.exit(1 if failures else 0)


main()
