#!/usr/bin/env python3
"""Runs the commands of an example's README.md: run_readme.py EXAMPLE_FOLDER BUILD_FOLDER. A line
`$ COMMAND` of a console block is run by the shell, and its output must be the lines that follow; pids are replaced by
one number, and times of pytest, records and reports. A block of another kind with a line `FILE:` above it is written to that file first. The example's programs
are in the folder, the build folder is build, and python3 is that of the tests, which has the pinned packages, or README_PYTHON."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile


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
    python = pathlib.Path(os.environ["README_PYTHON"]).parent if "README_PYTHON" in os.environ else build / "venv/bin"
    path = f"{build / 'bin'}:{python}:{os.environ['PATH']}"
    return kept | {"HOME": str(folder), "PATH": path, "RATION_STATE_DIR": str(folder / ".state")}


def run(command, folder, build):
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=environment_in(folder, build), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=100, check=False)
    said = re.sub(r"\b\d\.\d{3} s\b", "0.500 s", done.stdout)
    said = re.sub(r" in \d+\.\d\ds\b", " in 0.50s", re.sub(r"\(pid \d+\b", "(pid 4711", said))
    said = re.sub(r" +$", "", said, flags=re.M)  # a record of a log is padded where it would cross a page
    said = re.sub(r'"ts":\d+', '"ts":43048613', re.sub(r'"tid":\d+', '"tid":4711', said))
    return re.sub(r"python3\.\d+ ", "python3.11 ", said).replace(str(folder), "$HOME")


def has_numba(build):
    python = build / "venv/bin/python3"
    return python.exists() and subprocess.run([python, "-c", "import numba_cuda"], capture_output=True, check=False).returncode == 0


def main():
    example, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    seen, good, no_python = 0, 0, "README_PYTHON" not in os.environ and not has_numba(build)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        built = build / "examples" / example.name
        (folder / "build").symlink_to(build)
        for program in [*(built.iterdir() if built.is_dir() else ()), *example.glob("*.py")]:
            if program.suffix == ".py" or program.is_file() and os.access(program, os.X_OK):
                (folder / program.name).symlink_to(program)
        for kind, file, text in blocks((example / "README.md").read_text()):
            if file:
                path = folder / file.removeprefix("~/")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            if no_python and "python3 " in text:
                print("left out, without numba-cuda:", *(command for command, _ in commands(text)), sep="\n  ")
                continue
            for command, wanted in commands(text) if kind == "console" else ():
                said = run(command, folder, build)
                seen, good = seen + 1, good + (said == wanted)
                if said != wanted:
                    print(f"$ {command}\n{said}--- but README.md has\n{wanted}")
    print(f"covered: {good} of {seen}")
    return 0 if seen and good == seen else 1


sys.exit(main())
