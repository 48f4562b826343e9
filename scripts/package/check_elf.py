#!/usr/bin/env python3
"""Checks what shipped ELF files need of the machine that they run on: check_elf.py FOLDER

Exit status 1, with a line for each finding, if a file needs a newer glibc than 2.28, or another library than those of
glibc itself (auditwheel's manylinux_2_28 allows more), or has a library path, or if the folder has no ELF file.
"""
import pathlib
import re
import subprocess
import sys

HIGHEST = (2, 28)
LIBRARIES = re.compile(r"(libc\.so\.6|libm\.so\.6|libpthread\.so\.0|libdl\.so\.2|librt\.so\.1|ld-linux[-a-z0-9_]*\.so\.[0-9])")


def findings_of(text: str) -> list[str]:
    """Of what `objdump -p` prints for one file."""
    found = []
    references = text.partition("Version References:")[2]
    for version in re.findall(r"\bGLIBC_([0-9.]+)", references):
        if tuple(int(part) for part in version.split(".")) > HIGHEST:
            found.append(f"needs GLIBC_{version}")
    found += [f"needs {name}" for name in re.findall(r"NEEDED\s+(\S+)", text) if not LIBRARIES.fullmatch(name)]
    found += [f"has the library path {path}" for path in re.findall(r"(?:RPATH|RUNPATH)\s+(\S+)", text)]
    return found


def main() -> int:
    folder = pathlib.Path(sys.argv[1])
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()
             and path.read_bytes()[:4] == b"\x7fELF"]
    findings = [] if files else [f"{folder}: no ELF file"]
    for path in files:
        text = subprocess.run(["objdump", "-p", path], capture_output=True, text=True, check=True).stdout
        findings += [f"{path.relative_to(folder)}: {finding}" for finding in findings_of(text)]
    print("\n".join(findings + [f"elf: {len(files)} files checked, {len(findings)} findings"]))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
