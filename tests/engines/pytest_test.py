#!/usr/bin/env python3
"""pytest's own runs, with and without xdist, with ration_gpu.pytest: pytest_test.py"""
import json
import pathlib
import re
import signal
import subprocess
import sys

from engines import GIB, HANG, LIBRARY, MIB, RATION, expect, expect_that, main
from python_engine import TOTAL, environment, expect_exactly, expect_readme, held, inside, part, surrounded, until

inside()

PLUGIN = ("-p", "ration_gpu.pytest", "-p", "no:cacheprovider")


def started(folder, program, *options, plugin=PLUGIN, preload=True, **variables):
    """A run of pytest for the tests in `program`. Its file is named after `folder`'s, so that two can run at once. Without xdist
    the process that runs the tests needs the library from its start, and has it with `preload`."""
    number = len(list(pathlib.Path(folder).glob("test_*.py")))
    path = pathlib.Path(folder) / f"test_{number}.py"
    path.write_text("import ctypes, json, os, pathlib, sys\nimport gpu_job\nimport pytest\n" + program)
    made = environment(folder) | ({"LD_PRELOAD": str(LIBRARY)} if preload else {}) | variables
    return subprocess.Popen([sys.executable, "-m", "pytest", *plugin, *options, path.name], env=made, cwd=folder,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def run(folder, program, *options, status=0, **more):
    """What it printed."""
    process = started(folder, program, *options, **more)
    try:
        out, _ = process.communicate(timeout=HANG)
    finally:
        process.kill()
    expect_that(f"status {process.returncode}, expected {status}:\n{out}", process.returncode == status)
    return out


def says(out, *patterns):
    for pattern in patterns:
        expect_that(f"{pattern!r} in\n{out}", re.search(pattern, out))


def outcomes(out):
    """Such as {"passed": 2, "failed": 1}."""
    return {word: int(count) for count, word in re.findall(r"(\d+) (\w+)", out.strip().splitlines()[-1].partition(" in ")[0])}


# A test fills its share, says so in a file, and holds it until there is a file `end`.
FILLS = '''
def test_fills():
    pathlib.Path(f"full-{os.environ['NAME']}").write_text(json.dumps(gpu_job.fill_whole_share()))
    while not pathlib.Path("end").exists(): os.sched_yield()
'''


def full(folder, name):
    path = pathlib.Path(folder) / f"full-{name}"

    def seen():
        try:
            return json.loads(path.read_text())
        except (OSError, ValueError):
            return None
    return until(f"{name} is full", seen)


def unlike_shares(folder):
    """Two runs on one device; one is killed, and the next one has its room."""
    runs = {name: started(folder, FILLS, "--ration", share, NAME=name) for name, share in (("small", "30%"), ("large", "50%"))}
    try:
        expect_exactly("small", full(folder, "small"), TOTAL * 30 // 100)
        expect_exactly("large", full(folder, "large"), TOTAL // 2)
        runs["large"].kill()
        runs["large"].wait()
        runs["next"] = started(folder, FILLS, "--ration", "60%", NAME="next")
        expect_exactly("next", full(folder, "next"), TOTAL * 60 // 100, after_a_death=True)
        (pathlib.Path(folder) / "end").touch()
        for name in ("small", "next"):
            expect(name, runs[name].wait(HANG), 0)
    finally:
        for process in runs.values():
            process.kill()
            process.wait()
            process.stdout.close()
    with surrounded(folder):
        expect("processes under Ration", held(), 0)


def equal_shares(folder):
    """Each xdist worker fills its share, all at once."""
    program = '''
@pytest.mark.parametrize("number", range(3))
def test_fills(number, worker_id):
    pathlib.Path(f"full-{worker_id}").write_text(json.dumps(gpu_job.fill_whole_share()))
    while len([path for path in pathlib.Path(".").glob("full-*")]) < 3: os.sched_yield()
'''
    expect("a test for each worker", outcomes(run(folder, program, "-n", "3")), {"passed": 3})
    for worker in range(3):
        expect_exactly(f"worker {worker}", full(folder, f"gw{worker}"), int(TOTAL * round(1 / 3 - 0.04, 6)))


TOTALS = '''
def test_total(): print(f"total={gpu_job.sizes()[1]}.")
def test_inherited(): print(f"group={os.environ.get('RATION_GROUP')}.")
'''


def ways(folder):
    """Each documented way to ask for a share."""
    for options, total in ((("-n", "2", "--ration", "equal"), part(0.5, 0.04)), (("-n", "2", "--ration", "2GiB"), 2 * GIB),
                           (("--ration", "25%"), TOTAL // 4), (("--ration", "equal"), TOTAL), (("-n", "0", "--ration", "1GiB"), GIB)):
        says(run(folder, TOTALS, "-rP", *options), f"total={total}\\.")
    ini = pathlib.Path(folder) / "pytest.ini"
    ini.write_text("[pytest]\naddopts = -p ration_gpu.pytest --ration 3GiB\n")
    says(run(folder, TOTALS, "-rP", plugin=()), f"total={3 * GIB}\\.")
    ini.unlink()


def by_the_command(folder):
    """Under `ration run` the run has its share from the start, in the same process, and leaves no file behind."""
    (pathlib.Path(folder) / "test_it.py").write_text("import os\nimport gpu_job\nprint(f'imported by {os.getpid()}.')\n" + TOTALS +
                                                     "def test_process(): print(f'run by {os.getpid()}.')\n")
    command = [RATION, "run", "-q", "--", sys.executable, "-m", "pytest", *PLUGIN, "--ration", "3GiB", "--ration-leaks", "-rP", "-s", "test_it.py"]
    done = subprocess.run(command, env=environment(folder), cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    says(done.stdout, f"total={3 * GIB}\\.")
    expect("one process", len(set(re.findall(r"(?:imported|run) by (\d+)", done.stdout))), 1)
    expect("left behind", list(pathlib.Path(folder).glob("pytest-ration-*")), [])


def without_the_library(folder):
    """Without xdist and without the library nothing is run, and the words are those of a command that does it."""
    for options in (("--ration", "1GiB"), ("--ration-leaks",), ("-n", "0", "--ration", "1GiB")):
        out = run(folder, "def test(): pathlib.Path('ran').touch()\n", *options, status=4, preload=False)
        says(out, r"ERROR: this run of pytest would have no limit: it was started without libration\.so in LD_PRELOAD; without xdist start it as",
             rf"\n +ration run -- python3 -m pytest -p ration_gpu.pytest -p no:cacheprovider {' '.join(options)} test_\d\.py")
    expect("nothing ran", (pathlib.Path(folder) / "ran").exists(), False)
    expect("left behind", list(pathlib.Path(folder).glob("pytest-ration-*")), [])
    # What needs no library does not ask for it.
    for options in (("--ration", "1GiB", "--collect-only"), ("--ration-leaks", "--help"), ("-n", "1", "--ration", "1GiB")):
        run(folder, "def test(): pass\n", *options, preload=False)


def from_a_program(folder):
    """pytest.main() in a program: in it, and refused once the program has used CUDA."""
    program = pathlib.Path(folder) / "program.py"
    program.write_text("import pytest, sys\nstatus = pytest.main(['-p', 'ration_gpu.pytest', '--ration', '1GiB', '-rP', 'test_it.py'])\n"
                       "print('status', int(status), 'after')\n")
    (pathlib.Path(folder) / "test_it.py").write_text("import gpu_job\n" + TOTALS.replace("os.environ.get('RATION_GROUP')", "0"))
    made = environment(folder) | {"LD_PRELOAD": str(LIBRARY)}
    done = subprocess.run([sys.executable, program], env=made, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    says(done.stdout, f"total={GIB}\\.", "status 0 after")
    program.write_text("import gpu_job\ngpu_job.sizes()\n" + program.read_text())
    done = subprocess.run([sys.executable, program], env=made, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)
    says(done.stdout, "ERROR: this process has used CUDA already", "status 4 after")


def nothing_asked(folder):
    """Loaded without an option or a mark it does nothing, and needs no command."""
    program = '''
def test_nothing():
    assert not [name for name in sys.modules if name.startswith("ration_gpu._")]
    assert not gpu_job.surroundings()["loaded"]
    assert not [name for name in os.environ if name.startswith(("RATION_LIMIT", "PYTEST_RATION"))]
'''
    run(folder, program, PATH="/usr/bin:/bin", preload=False)
    run(folder, program, "-n", "1", plugin=("-p", "no:cacheprovider"), preload=False)


MARKED = '''
@pytest.fixture(scope="module")
def shared():
    print("set up in", os.getpid())
    yield os.getpid()
    print("torn down in", os.getpid())

def test_before(shared): assert gpu_job.sizes()[1] == OUTSIDE
@pytest.mark.ration("2GiB")
def test_limit(shared, tmp_path):
    assert (gpu_job.sizes()[1], shared) == (2 << 30, os.getpid())
    print("printed by the test")
@pytest.mark.ration("1GiB", show_limit=False)
class TestOfAClass:
    @pytest.mark.parametrize("text", ["a[b]::c", "d e"])
    def test_setting(self, text): assert gpu_job.sizes()[1] == 16 << 30 and gpu_job.take(2 << 30)[0] == 2
@pytest.mark.ration("1GiB")
@pytest.mark.xfail
def test_xfail(): assert gpu_job.take(2 << 30)[0] == 0
@pytest.mark.ration("1GiB")
@pytest.mark.skip(reason="skipped on purpose")
def test_skip(): pass
def test_after(shared): assert shared == os.getpid() and gpu_job.sizes()[1] == OUTSIDE
'''


def marked(folder):
    """A marked test has its limit in a process of its own, and all else is as of any test."""
    for options, outside in (((), TOTAL), (("-n", "2", "--dist", "loadfile"), part(0.5, 0.04)), (("--ration", "50%"), TOTAL // 2)):
        junit = pathlib.Path(folder) / "junit.xml"
        out = run(folder, f"OUTSIDE = {outside}\n{MARKED}", "-rA", "--strict-markers", f"--junit-xml={junit}", *options)
        expect("outcomes", outcomes(out), {"passed": 5, "skipped": 1, "xfailed": 1})
        says(out, "printed by the test", "skipped on purpose")
        expect("in junit.xml", junit.read_text().count("<testcase"), 7)


def without_the_next(folder):
    """Fixtures that were left for a marked test end when the next one does not need them."""
    for name in ("a", "b"):
        (pathlib.Path(folder) / f"test_x{name}.py").write_text(
            f"import pytest\n@pytest.fixture(scope='module', autouse=True)\ndef fixture():\n    yield\n    print('end of {name}')\n"
            "def test_first(): pass\n@pytest.mark.ration('1GiB')\ndef test_marked(): pass\n")
    done = subprocess.run([sys.executable, "-m", "pytest", *PLUGIN, "-s", "test_xa.py", "test_xb.py"], env=environment(folder), cwd=folder,
                          stdout=subprocess.PIPE, text=True, check=False)
    expect("outcomes", outcomes(done.stdout), {"passed": 4})
    says(done.stdout, "(?s)end of a.*test_xb.*end of b")


FAILS = '''
def holder(): return [gpu_job.take(300 << 20) for _ in range(3)]
@pytest.mark.ration("1GiB")
def test_refused():
    kept = holder()
    assert gpu_job.take(200 << 20)[0] == 0
@pytest.mark.ration("1GiB")
def test_killed():
    gpu_job.take(2 << 30)
    os.kill(os.getpid(), 11)
@pytest.mark.ration("lots")
def test_lots(): pass
@pytest.mark.ration("1GiB", "2GiB")
def test_two(): pass
@pytest.mark.ration("1GiB", limt=1)
def test_unknown(): pass
@pytest.mark.ration("1GiB")
def test_no_memory_error(): assert False
'''


def refused(folder):
    """A test that was refused memory says what, and who holds what; one that cannot be limited does not run."""
    out = run(folder, FAILS, status=1)
    expect("outcomes", outcomes(out), {"failed": 6})
    says(out, r"- GPU memory -", r"cuMemAlloc_v2 of 200MiB \(\d+ bytes\) on device 0 was refused \(limit\): the process used 900MiB",
         r"this process held then:\n  900MiB \(\d+ bytes\) in 3 blocks on device 0 "
         r"from \S*gpu_job.py:\d+ in take, called at test_0.py:\d+ in ",
         r"holders of the device:\n  \S+ \(pid \d+, this test's process\) holds 1.00GiB",
         r"was ended by SIGSEGV before the test was over\ncuMemAlloc_v2 of 2.00GiB",
         r"this test was not run: .*it does not begin with a number", r"takes one limit", r"unknown setting 'limt'")
    expect("reports of memory", out.count("- GPU memory -"), 1)
    out = run(folder, "def test_refused(): assert gpu_job.take(8 << 30)[0] == 0\n", "-n", "2", "--ration", "1GiB", status=1)
    says(out, r"1 request for GPU memory refused\nholders of the device:\n  \S+ \(pid \d+, this test's process\)")


LEAKS = '''
kept = []
@pytest.fixture(scope="module")
def of_the_module(): block = gpu_job.take(32 << 20)[1]; yield block; gpu_job.give_back(block)
@pytest.fixture
def of_a_test(): block = gpu_job.take(32 << 20)[1]; yield block; gpu_job.give_back(block)
def test_clean(of_the_module, of_a_test): pass
def test_leaks(of_the_module): gpu_job.take(64 << 20); gpu_job.take(5 << 20)
def test_gives_back_later(): kept.append(gpu_job.take(1000)[1])
def test_gives_back(): gpu_job.give_back(kept[0])
'''


def leaks(folder):
    """Tests that leave memory behind are named, with bytes and lines; those that do not are not."""
    for options in ((), ("-n", "2", "--dist", "loadfile"), ("--ration", "50%")):
        out = run(folder, LEAKS, "--ration-leaks", *options)
        expect("outcomes", outcomes(out), {"passed": 4})
        section = out.partition("GPU memory left behind")[2].splitlines()
        section = [line for line in section if "::" in line]
        expect_that(f"two lines: {section}", len(section) == 2)
        says(section[0], rf"^test_\d.py::test_leaks: 69MiB \({69 * MIB} bytes\) in 2 blocks on device 0 "
                         r"from \S*gpu_job.py:\d+ in take, called at test_\d.py:\d+ in test_leaks")
        says(section[1], r"::test_gives_back_later: 1KiB \(1024 bytes\) in 1 block")
    out = run(folder, "def test_clean(): gpu_job.give_back(gpu_job.take(1 << 20)[1])\n", "--ration-leaks")
    expect_that("no section", "left behind" not in out)


def fails_closed(folder):
    """No test without its limit: a limit that cannot be, no command, and workers that are started without the library."""
    says(run(folder, TOTALS, "--ration", "lots", status=4), "ERROR: .*it does not begin with a number")
    says(run(folder, TOTALS, "-n", "2", "--ration", "120%", status=4), "at most 100%")
    says(run(folder, TOTALS, "-n", "2", "--ration", "equall", status=4), "--ration takes a limit, or equal: equal shares")
    says(run(folder, TOTALS, "--ration", "1GiB", status=4, PATH="/usr/bin:/bin"), "ERROR: no command `ration`")
    says(run(folder, '@pytest.mark.ration("1GiB")\ndef test(): pass\n', status=1, PATH="/usr/bin:/bin"), "was not run: no command `ration`")
    bare = pathlib.Path(folder) / "bare"
    bare.write_text(f'#!/bin/sh\nunset LD_PRELOAD\nexec {sys.executable} "$@"\n')
    bare.chmod(0o755)
    options = ("--tx", f"popen//python={bare}", "--dist", "load", "--ration", "1GiB")
    process = started(folder, "def test(): pathlib.Path('ran').touch()\n", *options)
    out, _ = process.communicate(timeout=HANG)
    says(out, "this process of pytest would have no limit")
    expect("failed, and nothing ran", (process.returncode != 0, (pathlib.Path(folder) / "ran").exists()), (True, False))


def interrupted(folder):
    """Ctrl-C leaves nothing behind."""
    process = started(folder, FILLS, "--ration", "1GiB", NAME="one")
    try:
        full(folder, "one")
        process.send_signal(signal.SIGINT)
        expect("status", process.wait(HANG), 2)
        expect("left behind", list(pathlib.Path(folder).glob("pytest-ration-*")), [])
    finally:
        process.kill()
        process.stdout.close()


main({"unlike_shares": unlike_shares, "equal_shares": equal_shares, "ways": ways, "from_a_program": from_a_program,
      "by_the_command": by_the_command, "without_the_library": without_the_library, "nothing_asked": nothing_asked, "marked": marked, "without_the_next": without_the_next, "refused": refused, "leaks": leaks,
      "fails_closed": fails_closed, "interrupted": interrupted,
      "readme": lambda folder: expect_readme("pytest", folder, PYTEST_PLUGINS="ration_gpu.pytest")})
