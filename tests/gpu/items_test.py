#!/usr/bin/env python3
"""Shows that the items about members, pairs and the wheel can fail: items_test.py BUILD. They meet a command that does not do
what it says, over the simulator."""
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # the source tree is only read
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import items  # noqa: E402
import live  # noqa: E402
import members  # noqa: E402
import pair  # noqa: E402
import runs  # noqa: E402
import runtime  # noqa: E402
import tree as trees  # noqa: E402
import wheel  # noqa: E402
from check_test import expect, run_check  # noqa: E402

# Limits and guarantees nothing, waits for nothing, changes nothing, and tells other figures.
LIAR = """#!{python}
import os, re, subprocess, sys
real, verb, words = "{real}", sys.argv[1], sys.argv[2:]
if verb == "run":
    end, kept = words.index("--"), []
    for before, word in zip(["", *words], words[:end]):
        if before == "--group-limit":
            kept.append("15GiB")
        elif not word.startswith(("--wait", "--limit", "--guarantee")) and before not in ("--limit", "--guarantee"):
            kept.append(word)
    os.execv(real, [real, "run", *kept, *words[end:]])
if any(word.startswith("--watch") for word in words):
    os.execv(real, [real, verb, *words])
if verb == "set":
    words[words.index("--limit") + 1] = "default"
done = subprocess.run([real, verb, *words], stdout=subprocess.PIPE, text=True)
print(re.sub('"(used|peak_bytes)": ?', '"\\\\1":9', done.stdout).replace("process_without_ration", "process"), end="")
sys.exit(done.returncode)
"""


def write_liar(build, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(LIAR.format(python=sys.executable, real=build / "bin/ration"), encoding="utf-8")
    path.chmod(0o755)


def lying_tree(build, folder):
    tree = folder / "tree"
    write_liar(build, tree / "bin/ration")
    (tree / "tests/gpu").mkdir(parents=True)
    for name in ("lib", "tests/gpu/programs"):
        (tree / name).symlink_to(build / name)
    return tree


def a_command_that_lies_is_found(build, folder):
    status, seen = run_check(lying_tree(build, folder), folder, "--only", r"^(live|verbs)\..*(vmm|doctor|report|wait)")
    wrong = {name: test["note"] for name, test in seen.items() if test["status"] != "failed"}
    expect(f"all fail: {status} {wrong}", status == 1 and not wrong and len(seen) == 9)


def over_sim(tree, folder):
    for name in ("machine", "state"):
        (folder / name).mkdir(mode=0o700)
    return items.Check(trees.Tree(tree, True, folder, folder / "state"), None, runs.Clock(120))


def a_pair_beyond_its_limit_is_found(build, folder):
    check = over_sim(lying_tree(build, folder), folder)
    command = [build / runtime.OVER_SIM.format("churn"), "60"]
    native = check.run("native", command)
    for limit, status, note in ((runtime.GROUP_LIMIT, "ok", ""), (8 * trees.MIB, "failed", "within the limit")):
        seen = pair.run(check, "a.pair", native, command, limit, str.splitlines)
        expect(f"{limit}: {seen}", seen.status == status and note in seen.note)
    seen = pair.run(check, "a.pair", runs.Ended(0, "another line\n", "", 0.1), command, runtime.GROUP_LIMIT, str.splitlines)
    expect(f"other lines: {seen}", seen.status == "failed" and "another line" in seen.note)


def words_that_do_not_come_end_a_wait(build, folder):
    check = over_sim(build, folder)
    for script, words in (("echo began; read line", "began at once"), ("exit 3", "does not say")):
        with members.Lines(check, ["/bin/sh", "-c", script]) as job:
            try:
                live.await_words(job, "waits for room")
                raise AssertionError(script)
            except RuntimeError as found:
                expect(f"{found}", words in str(found))


def make_wheel(build, folder):
    root = folder / "root"
    for name in ("bin", "lib", "share/doc/ration"):
        (root / name).mkdir(parents=True)
    shutil.copy(build / "bin/ration", root / "bin")
    for library in (build / "lib").glob("libration*.so"):
        shutil.copy(library, root / "lib")
    for name in ("README.md", "LICENSE"):
        shutil.copy(trees.SOURCE / name, root / "share/doc/ration")
    packer = [trees.SOURCE / "scripts/package/wheel.py", root, trees.SOURCE / "shim/python/ration_gpu"]
    packed = subprocess.run([*packer, "1.2.3", f"linux_{platform.machine()}", folder], capture_output=True, text=True, check=True,
                            env=os.environ | {"SOURCE_DATE_EPOCH": "1700000000"})
    return pathlib.Path(packed.stdout.strip())


def a_wheel_that_limits_nothing_is_found(build, folder):
    """Its command is replaced in the environment where it has held."""
    check, file = over_sim(build, folder), make_wheel(build, folder)
    home = wheel.install(check, file)
    shipped, wheel.install = wheel.install, lambda *_: home
    try:
        seen = wheel.report(check, file)
        expect(f"as it is: {seen}", seen.status == "ok")
        write_liar(build, home / "bin/ration")
        seen = wheel.report(check, file)
        expect(f"that lies: {seen}", seen.status == "failed" and "limited, its own libraries" in seen.note)
    finally:
        wheel.install = shipped


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    for case in (words_that_do_not_come_end_a_wait, a_command_that_lies_is_found, a_pair_beyond_its_limit_is_found,
                 a_wheel_that_limits_nothing_is_found):
        folder = pathlib.Path(tempfile.mkdtemp())
        try:
            case(build, folder)
            print(f"ok      {case.__name__.replace('_', ' ')}", flush=True)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return os.EX_OK


if __name__ == "__main__":
    sys.exit(main())
