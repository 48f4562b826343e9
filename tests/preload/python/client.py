"""The virtual environment of the tests of Python clients."""
import subprocess
import sys

NO_INDEX, SKIPPED = 3, 77


def expect(what, seen, wanted):
    if seen != wanted:
        sys.exit(f"{what}: {seen!r}, expected {wanted!r}")


def interpreter(source, build):
    made = subprocess.run([source / "tests/python_env.sh", build], stdout=subprocess.PIPE, text=True, check=False)
    if made.returncode == NO_INDEX:
        print("skipped: the pinned packages are not installed and no package index answers")
        sys.exit(SKIPPED)
    expect("python_env.sh", made.returncode, 0)
    return made.stdout.strip()
