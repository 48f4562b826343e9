#!/usr/bin/env python3
"""A second build, in another folder, of one machine's packages is the first, bit for bit: reproducible_test.py SOURCE"""
import pathlib
import subprocess
import sys
import tempfile

source = pathlib.Path(sys.argv[1])
with tempfile.TemporaryDirectory() as folder:
    subprocess.run([source / "scripts/package.sh", "--work", folder, "x86_64"], check=True, stdout=subprocess.DEVNULL)
    first, second = source / "dist", pathlib.Path(folder) / "dist"
    names = sorted(path.name for path in second.iterdir() if path.name != "SHA256SUMS")
    differing = [name for name in names if (first / name).read_bytes() != (second / name).read_bytes()]
    for name in differing:
        print(f"FAILED  {name} differs")
print(f"covered: {len(names) - len(differing)} of {len(names)}")
sys.exit(1 if differing or len(names) != 3 else 0)
