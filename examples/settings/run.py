#!/usr/bin/env python3
"""Runs the commands of README.md: run.py BUILD_FOLDER. A line `$ COMMAND` of a console block is run by the shell, and its
output must be the lines that follow; pids are replaced by one number. A block of another kind with a line `FILE:` above
it is written to that file first."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def blocks(text):
    """(kind, name, lines) of each fenced block."""
    for match in re.finditer(r"(?:^`([^`\n]+)`:\n+)?^```(\w+)\n(.*?)^```$", text, re.M | re.S):
        yield match[2], match[1], match[3]


def commands(block):
    """(command, expected output)"""
    for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
        command, _, said = part.partition("\n")
        yield command, said


def environment_in(folder, build):
    dropped = ("RATION_", "SIMCUDA_", "LD_", "CUDA_", "XLA_", "TF_", "GPU_", "XDG_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}
    return kept | {"HOME": str(folder), "PATH": f"{build / 'bin'}:{os.environ['PATH']}"}


def run(command, folder, build):
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=environment_in(folder, build), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=100, check=False)
    return re.sub(r"\(pid \d+\)", "(pid 4711)", done.stdout).replace(str(folder), "$HOME")


def main():
    build, seen, good = pathlib.Path(sys.argv[1]).resolve(), 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "whole").symlink_to(build / "examples/settings/whole")
        for kind, file, text in blocks((HERE / "README.md").read_text()):
            if file:
                path = folder / file.removeprefix("~/")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            for command, wanted in commands(text) if kind == "console" else ():
                said = run(command, folder, build)
                seen, good = seen + 1, good + (said == wanted)
                if said != wanted:
                    print(f"$ {command}\n{said}--- but README.md has\n{wanted}")
    print(f"covered: {good} of {seen}")
    return 0 if seen and good == seen else 1


sys.exit(main())
