#!/usr/bin/env python3
"""Runs clang-tidy over pool, config and shim: tidy.py BUILD [JOBS]. BUILD is a clang build.

Most of clang-tidy's time goes into library headers. So files that are compiled with the same options are combined into
one, and files that conflict there, because they define the same name, into a further one. The combined files are in
BUILD/tidy. Checks that would give another answer on a combined file run on each file alone.
"""
import concurrent.futures
import json
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PARTS = ("pool", "config", "shim")
# This check follows calls into every visible function, which a combined file has more of, and takes any `new` for a throw.
ALONE = "bugprone-exception-escape"


def sources():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "--",
                             *(f"{part}/*.cc" for part in PARTS)], cwd=ROOT, check=True, capture_output=True, text=True)
    return {ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).exists()}


def compiled_by(command):
    """The compiler's options, without launcher, input and output files."""
    words = shlex.split(command)
    words = words[next(i for i, word in enumerate(words) if re.search(r"clang\+\+[-\d.]*$", word)):]
    options, skipped = [], False
    for word in words:
        if not skipped and word not in ("-o", "-c", "-MF", "-MT", "-MD"):
            options.append(word)
        skipped = not skipped and word in ("-o", "-c", "-MF", "-MT")
    return tuple(options)


def files_of(file):
    """A file of a unity build stands for the files that it includes."""
    if "unity" in file.name:
        return [pathlib.Path(path) for path in re.findall(r'#include "(.+\.cc)"', file.read_text())]
    return [file]


def groups(build):
    """{options: files}. A file that several targets compile counts once."""
    left, found = sources(), {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        for file in files_of(pathlib.Path(entry["directory"]) / entry["file"]):
            if file in left:
                left.remove(file)
                found.setdefault(compiled_by(entry["command"]), []).append(file)
    if left:
        sys.exit("tidy: no target compiles " + " ".join(sorted(str(file.relative_to(ROOT)) for file in left)))
    return found


def write(path, files):
    path.write_text("".join(f'#include "{file}"  // NOLINT\n' for file in sorted(files)))
    return path


def in_the_way(options, path, files, build):
    """The files that do not compile in this combination."""
    done = subprocess.run([*options, "-w", "-ferror-limit=0", "-fsyntax-only", path], cwd=build, capture_output=True, text=True)
    if done.returncode == 0:
        return []
    named = set(re.findall(r"^(/.+?):\d+:\d+: (?:fatal )?error:", done.stderr, re.MULTILINE))
    return [file for file in files if str(file) in named] or files[1:]


def batches(options, files, build, name):
    """Yields (path, options, count) for each combination of files that compiles."""
    number = 0
    while files:
        batch, rest = list(files), []
        path = build / "tidy" / f"{name}_{number}.cc"
        while len(batch) > 1 and (apart := in_the_way(options, write(path, batch), batch, build)):
            rest += apart if len(apart) < len(batch) else batch[1:]
            batch = [file for file in batch if file not in rest]
        yield write(path, batch), options, len(batch)
        files, number = rest, number + 1


def unused_names(file):
    """Unused using declarations and namespace aliases, which clang-tidy reports only for a file of its own."""
    text = file.read_text()
    for found in re.finditer(r"^ *(?:using [\w:]+::(\w+);|namespace (\w+) = )", text, re.MULTILINE):
        name = found[1] or found[2]
        if len(re.findall(rf"\b{name}\b", text)) == 1:
            line = text.count("\n", 0, found.start()) + 1
            yield f"{file}:{line}: error: {name} is declared and not used"


def tidy(path, options, checks, build):
    done = subprocess.run(["clang-tidy", "--quiet", f"--config-file={ROOT}/.clang-tidy", f"--checks={checks}", str(path),
                           "--", *options[1:]], cwd=build, capture_output=True, text=True)
    said = [line for line in (done.stdout + done.stderr).splitlines()
            if not re.match(r"\d+ warnings? (generated|treated)|Suppressed \d+", line)]
    return done.returncode, "\n".join(said)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    ended = [(1, said) for file in sorted(sources()) for said in unused_names(file)]
    (build / "tidy").mkdir(exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(int(sys.argv[2]) if len(sys.argv) > 2 else 1) as workers:
        grouped = groups(build)
        parted = [workers.submit(lambda *given: list(batches(*given)), options, files, build, f"group{number}")
                  for number, (options, files) in enumerate(grouped.items())]
        work = sorted((batch for part in parted for batch in part.result()), key=lambda batch: -batch[2])
        tasks = [(path, options, "-" + ALONE) for path, options, _ in work]
        tasks += [(file, options, "-*," + ALONE) for options, files in grouped.items() for file in files
                  if "noexcept" in file.read_text()]
        ended += list(workers.map(lambda task: tidy(*task, build), tasks))
    for status, said in ended:
        if status != 0 and said:
            print(said)
    print(f"tidy: {sum(count for _, _, count in work)} files as {len(work)}", file=sys.stderr)
    sys.exit(any(status != 0 for status, _ in ended))


main()
