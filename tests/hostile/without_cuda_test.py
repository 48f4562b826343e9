#!/usr/bin/env python3
"""Programs of /usr/bin that know nothing of CUDA: preloaded, they say the same and end the same."""
import concurrent.futures
import hashlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "preload"))
from harness import LIBRARIES, SANITIZED, clean_environment  # noqa: E402

WANTED = 200
FOLDER = pathlib.Path("/usr/bin")
ARGUMENT = "--version"
TIMEOUT = 20
# They ask for a terminal or a window, wait for more than arguments, or change the machine.
LEFT_OUT = {"reset", "tset", "clear", "reboot", "halt", "poweroff", "shutdown", "sg", "newgrp", "su", "login"}


def programs():
    """In an order that mixes the packages, and that is the same on every machine that has the same ones."""
    for path in sorted(FOLDER.iterdir(), key=lambda path: hashlib.sha256(path.name.encode()).digest()):
        if path.name not in LEFT_OUT and path.is_file() and os.access(path, os.X_OK) and not is_set_id(path):
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def is_set_id(path):
    """The loader preloads nothing into those."""
    return path.stat().st_mode & 0o6000 != 0


def ended(path, preload, environment):
    """(status, output, errors), or None where it does not end by itself."""
    with tempfile.TemporaryDirectory() as folder:
        child = environment | {"HOME": folder, "TMPDIR": folder, "LC_ALL": "C.UTF-8", "TERM": "dumb"}
        if preload:
            child |= {"LD_PRELOAD": preload, "RATION_LIMIT": "1GiB"}
        process = subprocess.Popen([str(path), ARGUMENT], env=child, cwd=folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        try:
            out, err = process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None
        folder_name = folder.encode()
        return process.returncode, out.replace(folder_name, b"FOLDER"), err.replace(folder_name, b"FOLDER")


def compare(path):
    """None: twice without Ration it does not say the same; else what differs, or an empty text."""
    environment = clean_environment()
    first, second = ended(path, "", environment), ended(path, "", environment)
    if first is None or first != second or first[0] < 0:
        return None
    seen = ended(path, LIBRARIES, environment)
    return "" if seen == first else f"{path.name}: {seen!r}, without Ration {first!r}"


def main():
    if os.environ.get("PRELOAD_LIST"):
        print("preloaded programs without CUDA")
        return 0
    if SANITIZED:
        print("skipped: a sanitizer's runtime is no library to preload into programs that are built without it")
        return 0
    chosen, passed_over, differing = 0, [], []
    with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
        found = programs()
        while chosen < WANTED:
            batch = [path for _, path in zip(range(WANTED - chosen), found)]
            if not batch:
                break
            for path, difference in zip(batch, pool.map(compare, batch)):
                if difference is None:
                    passed_over.append(path.name)
                    continue
                chosen += 1
                differing += [difference] if difference else []
    print(*(f"FAILED  {difference}" for difference in differing), sep="\n", end="\n" if differing else "")
    print(f"passed over, because they do not say the same twice, or do not end: {' '.join(passed_over) or 'none'}")
    print(f"covered: {chosen - len(differing)} of {WANTED}")
    return 0 if chosen == WANTED and not differing else 1


sys.exit(main())
