#!/usr/bin/env python3
"""What two runs of the check answered differently, of two cards or of a card and the simulator: compare.py FILE FILE [REGEX]

Compares the tests of questions/ that both files have, by status and by each figure that is no fraction: times are fractions.
Exit status: 0 they agree, 1 they do not, 2 usage.
"""
import json
import pathlib
import re
import sys

sys.dont_write_bytecode = True  # the source tree is only read
import questions  # noqa: E402


def answers(path, chosen):
    tests = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["tests"]
    return {test["name"]: (test["name"], test["status"], test["figures"], test["note"]) for test in tests
            if test["name"].startswith("questions.") and chosen.search(test["name"])}


def main():
    if len(sys.argv) not in (3, 4):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        chosen = re.compile((sys.argv + [""])[3])
        first, second = (answers(path, chosen) for path in sys.argv[1:3])
    except (OSError, ValueError, KeyError, TypeError, re.error) as error:
        print(f"compare: no two result files and a pattern: {error!r}", file=sys.stderr)
        return 2
    both = [name for name in first if name in second]
    found = questions.differing([first[name] for name in both], [second[name] for name in both], "in the first", "in the second")
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{len(found)} differences in {len(both)} tests")
    return 1 if found or not both else 0


if __name__ == "__main__":
    sys.exit(main())
