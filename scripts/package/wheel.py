#!/usr/bin/env python3
"""Writes a wheel from an installed tree: wheel.py PREFIX PACKAGE VERSION TAG FOLDER

PREFIX has bin, lib and share; PACKAGE is the folder of the Python package. Programs go to .data/scripts, so that pip puts them
on PATH; all else to .data/data, whose files go below the prefix of the environment, where man and completions find theirs. What
is in lib goes to libexec/ration, where the programs look, too: `pip install --target` leaves out a folder lib of the data. The
wheel is the same, bit for bit, for the same files and $SOURCE_DATE_EPOCH. Prints its path.
"""
import base64
import hashlib
import os
import pathlib
import sys
import time
import zipfile

METADATA = """Metadata-Version: 2.1
Name: ration-gpu
Version: {version}
Summary: A ration of GPU memory for every CUDA process
License: Apache-2.0
Requires-Python: >=3.9
Classifier: Development Status :: 4 - Beta
Classifier: Environment :: GPU :: NVIDIA CUDA
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: System :: Monitoring
Description-Content-Type: text/markdown

{description}"""
# pytest loads what is listed here. Under the module's own name, so that `-p ration_gpu.pytest` is the same plug-in.
ENTRY_POINTS = """[pytest11]
ration_gpu.pytest = ration_gpu.pytest
"""
# RECORD is written last, and holds no hash of itself (PEP 376).
WHEEL = """Wheel-Version: 1.0
Generator: ration
Root-Is-Purelib: false
Tag: py3-none-{tag}
"""


class Wheel:
    """A zip file with the record that it needs."""

    def __init__(self, path: pathlib.Path, info: str):
        epoch = max(int(os.environ["SOURCE_DATE_EPOCH"]), 315532800)  # a zip file knows no time before 1980
        self.time = time.gmtime(epoch)[:6]
        self.info = info
        self.record: list[str] = []
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)

    def write(self, name: str, content: bytes, mode: int = 0o644) -> None:
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(content)}")
        self._put(name, content, mode)

    def close(self) -> None:
        name = f"{self.info}/RECORD"
        self._put(name, "".join(line + "\n" for line in [*self.record, f"{name},,"]).encode(), 0o644)
        self.zip.close()

    def _put(self, name: str, content: bytes, mode: int) -> None:
        entry = zipfile.ZipInfo(name, self.time)
        entry.create_system = 3  # Unix, whose modes these are
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(entry, content)


def files_below(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def place_of(file: pathlib.PurePath) -> pathlib.PurePath:
    """Below the prefix of the environment, of a file below the installed tree's."""
    if file.parts[0] != "lib":
        return file
    return pathlib.PurePath("libexec", "ration", *file.parts[2 if file.parts[1] == "ration" else 1:])


def main() -> None:
    prefix, package, folder = (pathlib.Path(sys.argv[index]) for index in (1, 2, 5))
    version, tag = sys.argv[3], sys.argv[4]
    stem = f"ration_gpu-{version}"
    info, data = f"{stem}.dist-info", f"{stem}.data"
    documents = prefix / "share" / "doc" / "ration"
    path = folder / f"{stem}-py3-none-{tag}.whl"
    wheel = Wheel(path, info)
    for file in files_below(package):
        wheel.write(f"{package.name}/{file.relative_to(package)}", file.read_bytes())
    for file in files_below(prefix):
        place = file.relative_to(prefix)
        is_program = place.parts[0] == "bin"
        name = f"{data}/scripts/{place.name}" if is_program else f"{data}/data/{place_of(place)}"
        wheel.write(name, file.read_bytes(), 0o755 if is_program else 0o644)
    description = (documents / "README.md").read_text(encoding="utf-8")
    wheel.write(f"{info}/LICENSE", (documents / "LICENSE").read_bytes())
    wheel.write(f"{info}/METADATA", METADATA.format(version=version, description=description).encode())
    wheel.write(f"{info}/entry_points.txt", ENTRY_POINTS.encode())
    wheel.write(f"{info}/WHEEL", WHEEL.format(tag=tag).encode())
    wheel.close()
    print(path)


if __name__ == "__main__":
    main()
