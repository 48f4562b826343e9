#!/usr/bin/env python3
"""Builds a Debian package from an installed tree: deb.py PREFIX VERSION ARCHITECTURE WORK FOLDER

PREFIX has bin, lib and share. The libraries go to /usr/lib/ration: nothing is preloaded by itself, and no other program finds
them. WORK is replaced. The package is the same, bit for bit, for the same files and $SOURCE_DATE_EPOCH. Prints its path.
"""
import email.utils
import gzip
import os
import pathlib
import shutil
import subprocess
import sys

MAINTAINER = "Ration maintainers <ration@packages.debian.org>"
CONTROL = """Package: ration
Version: {version}
Architecture: {architecture}
Maintainer: {maintainer}
Installed-Size: {kibibytes}
Depends: libc6 (>= 2.28)
Recommends: libdw1 | libdw1t64
Section: admin
Priority: optional
Description: limit of GPU memory for every CUDA process
 The command ration runs unmodified CUDA programs under a hard limit of device
 memory, lets several of them share one GPU fairly, and logs every allocation.
 A simulated GPU serves where there is none.
 .
 The library is preloaded into the programs that ration starts, and into no
 others.
"""
CHANGELOG = """ration ({version}) unstable; urgency=medium

  * Release {version}; /usr/share/doc/ration/CHANGELOG.md.gz tells what changed.

 -- {maintainer}  {date}
"""
COPYRIGHT = """Ration

Copyright 2026 the authors of Ration

Licensed under the Apache License, Version 2.0. On Debian systems, its full
text is in /usr/share/common-licenses/Apache-2.0.

Libraries of others are linked statically into the programs. Their notices are
in /usr/share/doc/ration/third_party_notices.txt.gz.
"""
# Built for any distribution with glibc 2.28, the programs hold the libraries that differ between distributions.
OVERRIDES = """ration: embedded-library
ration: hardening-no-fortify-functions
"""


def compressed(content: bytes) -> bytes:
    return gzip.compress(content, 9, mtime=0)


def put(path: pathlib.Path, content: bytes | str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    path.chmod(mode)


def place_of(file: pathlib.PurePath) -> pathlib.PurePath:
    """Below /usr, of a file below the prefix."""
    if file.parts[0] == "lib" and len(file.parts) == 2:
        return pathlib.PurePath("lib", "ration", file.name)
    if file.parts[:3] == ("share", "zsh", "site-functions"):
        return pathlib.PurePath("share", "zsh", "vendor-completions", *file.parts[3:])
    return file


def copy_tree(prefix: pathlib.Path, usr: pathlib.Path) -> None:
    for file in sorted(path for path in prefix.rglob("*") if path.is_file()):
        place = file.relative_to(prefix)
        if file.is_symlink():
            (usr / place_of(place)).parent.mkdir(parents=True, exist_ok=True)
            (usr / place_of(place)).symlink_to(file.readlink())
            continue
        content = file.read_bytes()
        if place.parts[:2] == ("share", "man"):
            put(usr / f"{place}.gz", compressed(content))
        elif place.name == "LICENSE":
            continue  # named in copyright, which Debian's rules ask for
        elif place.suffix == ".md" or place.name == "third_party_notices.txt":
            put(usr / f"{place}.gz", compressed(content))
        else:
            put(usr / place_of(place), content, 0o755 if place.parts[0] == "bin" else 0o644)


def main() -> None:
    prefix, work, folder = (pathlib.Path(sys.argv[index]) for index in (1, 4, 5))
    version, architecture = sys.argv[2:4]
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    shutil.rmtree(work, ignore_errors=True)
    usr = work / "usr"
    copy_tree(prefix, usr)
    documents = usr / "share" / "doc" / "ration"
    put(documents / "copyright", COPYRIGHT)
    words = {"version": version, "architecture": architecture, "maintainer": MAINTAINER,
             "date": email.utils.formatdate(epoch, usegmt=False)}
    put(documents / "changelog.gz", compressed(CHANGELOG.format(**words).encode()))
    put(usr / "share" / "lintian" / "overrides" / "ration", OVERRIDES)
    files = sorted(path for path in work.rglob("*") if path.is_file() and not path.is_symlink())
    size = sum((path.stat().st_size + 1023) // 1024 for path in files)
    sums = "".join(subprocess.run(["md5sum", path.relative_to(work)], cwd=work, capture_output=True, text=True, check=True).stdout
                   for path in files)
    put(work / "DEBIAN" / "control", CONTROL.format(**words, kibibytes=size))
    put(work / "DEBIAN" / "md5sums", sums)
    for path in [work, *work.rglob("*")]:
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
        os.utime(path, (epoch, epoch), follow_symlinks=False)
    deb = folder / f"ration_{version}_{architecture}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "--threads-max=1", "--build", work, deb], check=True,
                   stdout=subprocess.DEVNULL)
    print(deb)


if __name__ == "__main__":
    main()
