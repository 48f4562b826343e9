#!/usr/bin/env python3
"""Checks what shipped ELF files need of the machine that they run on: check_elf.py FOLDER | --self-test

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


SAMPLE = """
Dynamic Section:
  NEEDED               libc.so.6
  NEEDED               {library}
  {path}
Version definitions:
2 0x00 0x069691b4 GLIBC_2.34

Version References:
  required from libc.so.6:
    0x0d696912 0x00 03 GLIBC_2.2.5
    0x069691b8 0x00 02 GLIBC_{version}
"""


def self_test() -> int:
    cases = ((("libm.so.6", "SONAME libration.so", "2.28"), []),
             (("libm.so.6", "SONAME libration.so", "2.29"), ["needs GLIBC_2.29"]),
             (("libm.so.6", "SONAME libration.so", "2.28.1"), ["needs GLIBC_2.28.1"]),
             (("libstdc++.so.6", "SONAME libration.so", "2.28"), ["needs libstdc++.so.6"]),
             (("libm.so.6", "RUNPATH /opt/lib", "2.28"), ["has the library path /opt/lib"]))
    wrong = [words for words, wanted in cases if findings_of(SAMPLE.format(**dict(zip(("library", "path", "version"), words)))) != wanted]
    for words in wrong:
        print(f"FAILED  {words}")
    print(f"covered: {len(cases) - len(wrong)} of {len(cases)}")
    return 1 if wrong else 0


def main() -> int:
    if sys.argv[1] == "--self-test":
        return self_test()
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
