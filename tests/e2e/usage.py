"""The command line of the programs beside this file: arguments that are paths, perhaps --update. Anything else gets their usage."""
import os, sys


def arguments(doc, *names, update=False):
    """The absolute paths given for `names`, and with `update` whether --update is there. --help prints `doc` and ends with 0; what
    does not fit says what is missing and ends with 64."""
    given = sys.argv[1:]
    if "-h" in given or "--help" in given:
        print(doc.strip())
        sys.exit(0)
    paths = [a for a in given if not a.startswith("--")]
    wrong = [a for a in given if a.startswith("--") and not (update and a == "--update")]
    problem = (f"there is no option {wrong[0]}" if wrong else f"{names[len(paths)]} is missing" if len(paths) < len(names)
               else f"'{paths[len(names)]}' is one argument too many" if len(paths) > len(names)
               else next((f"{n}: there is no '{p}'" for n, p in zip(names, paths) if not os.path.exists(p)), None))
    if problem:
        own = os.path.basename(sys.argv[0])
        print(f"{own}: {problem}\nusage: {own} {' '.join(names)}{' [--update]' if update else ''}", file=sys.stderr)
        sys.exit(64)
    paths = [os.path.abspath(p) for p in paths]
    return paths + ["--update" in given] if update else paths
