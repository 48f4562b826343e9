#!/usr/bin/env python3
"""Each test that failed in a file of results/ has its verdict in differences.txt, and none failed again after it."""
import pathlib
import sys

sys.dont_write_bytecode = True  # the source tree is only read
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "scripts")]
import differences  # noqa: E402
import test_case  # noqa: E402


def cases():
    suite = HERE.parent / "simcuda/conformance"
    return {name for file in suite.glob("*.cc") for name in test_case.names_in(file.read_text(encoding="utf-8"))}


def main():
    failed = differences.failed_names(HERE / "results")
    found, covered = differences.problems(differences.FILE.read_text(encoding="utf-8"), failed, cases())
    for name, wrong in found.items():
        print(f"{name}: {wrong}")
    print(f"covered: {covered} of {len(failed)}")
    return 1 if found or not failed else 0


if __name__ == "__main__":
    sys.exit(main())
