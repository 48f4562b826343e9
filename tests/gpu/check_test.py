#!/usr/bin/env python3
"""Shows that the check reports what fails: check_test.py BUILD. Uses a tree whose programs are scripts, over the simulator."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # the source tree is only read
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import conformance  # noqa: E402
import differences  # noqa: E402
import frameworks  # noqa: E402
import items  # noqa: E402
import questions  # noqa: E402
import results  # noqa: E402
import runs  # noqa: E402
import tree as trees  # noqa: E402

GOOD = """echo '{"name": "one", "status": "ok", "figures": {"n": 1}, "note": ""}'"""


def expect(what, holds):
    if not holds:
        raise AssertionError(what)


def make_tree(build, folder, **scripts):
    """A tree with the build's command and libraries, and a shell script for each question."""
    tree = folder / "tree"
    (tree / questions.FOLDER).mkdir(parents=True)
    for name in ("bin", "lib"):
        (tree / name).symlink_to(build / name)
    for name, text in scripts.items():
        script = tree / questions.FOLDER / name
        script.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        script.chmod(0o755)
    return tree


def command(tree, out, *arguments):
    return [sys.executable, "-B", HERE / "check.py", "--sim", "--prebuilt", tree, "--out", out, *arguments]


def run_check(tree, folder, *arguments):
    """(exit status, name -> result)."""
    out = folder / "out.json"
    done = subprocess.run(command(tree, out, *arguments), capture_output=True, text=True, timeout=120, check=False)
    expect(f"a result file; it said {done.stderr}", out.exists())
    found = json.loads(out.read_text(encoding="utf-8"))
    expect("the keys of the contract", {"gpu", "uuid", "driver", "cuda", "date", "commit", "tests"} == set(found))
    return done.returncode, {test["name"]: test for test in found["tests"]}


def a_failure_is_reported(build, folder):
    tree = make_tree(build, folder, good=GOOD, crash="kill -SEGV $$", silent="true", hang=f"{GOOD}\nsleep 60")
    status, seen = run_check(tree, folder, "--only", "environment|questions", "--seconds", "6")
    expect(f"exit status {status}", status == 1)
    expect("the device is named", seen["environment"]["status"] == "ok")
    expect(f"a good answer: {seen}", seen["questions.good.one"]["figures"] == {"n": 1})
    expect("a good program", seen["questions.good"]["status"] == "ok")
    expect("a crash fails", seen["questions.crash"]["status"] == "failed")
    expect("a program that hangs keeps its answers", seen["questions.hang.one"]["status"] == "ok")
    expect("a program that hangs is cut off", "timed out" in seen["questions.hang"]["note"])


def all_held_is_success(build, folder):
    status, seen = run_check(make_tree(build, folder, good=GOOD), folder, "--only", "questions.good")
    expect(f"exit status {status}", status == 0 and len(seen) == 2)


def a_killed_check_leaves_its_results(build, folder):
    tree = make_tree(build, folder, a_good=GOOD, b_hang="echo $$ >\"$0.pid\"; sleep 60")
    out, pid = folder / "out.json", tree / questions.FOLDER / "b_hang.pid"
    with subprocess.Popen(command(tree, out, "--only", "questions"), stdout=subprocess.DEVNULL) as check:
        end = time.monotonic() + 60
        while not (pid.exists() and pid.read_text(encoding="utf-8").strip() and out.exists() and
                   "questions.a_good.one" in out.read_text(encoding="utf-8")) and time.monotonic() < end:
            time.sleep(0.02)
        check.send_signal(signal.SIGTERM)
        expect(f"status {check.wait(20)}", check.returncode == 128 + signal.SIGTERM)
    found = json.loads(out.read_text(encoding="utf-8"))
    expect("what had ended is there", [test["name"] for test in found["tests"]][:1] == ["questions.a_good.one"])
    hung = pathlib.Path("/proc", pid.read_text(encoding="utf-8").strip(), "cmdline")
    expect("no process is left", not hung.exists() or not hung.read_bytes())


def differing_output_fails(*_):
    native = runs.Ended(0, "a\nb\n", "", 0.1)
    for status, out, wanted in ((0, "a\nb\n", "ok"), (0, "a\nc\n", "failed"), (0, "a\n", "failed"), (1, "a\nb\n", "failed"),
                                (None, "a\nb\n", "failed")):
        seen = items.compared(native, runs.Ended(status, out, "", 0.1), {}, str.splitlines)
        expect(f"{status} {out!r}: {seen}", seen.status == wanted)


def failed_assertions_are_read(*_):
    report = """<TestCase name="x"><Info>
        of &lt;x&gt;
      </Info><Expression success="false" type="CHECK" filename="/a/b_test.cc" line="7">
        <Original>
          free &lt; total
        </Original>
        <Expanded>
          3 &lt; 2
        </Expanded>
      </Expression><FatalErrorCondition filename="/a/b_test.cc" line="9">
        SIGSEGV
      </FatalErrorCondition></TestCase>"""
    lines = conformance.failed_assertions(runs.Ended(1, report, "", 0.1))
    expect(f"{lines}", lines == ["b_test.cc:7 CHECK( free < total ) with 3 < 2; of <x>", "b_test.cc:9 FatalErrorCondition: SIGSEGV"])
    expect("a crash without a report", len(conformance.failed_assertions(runs.Ended(-11, "", "", 0.1))) == 1)


def bad_verdicts_are_found(*_):
    name, case = "conformance: a capture, once: again", "a capture, once: again"
    for text, wrong in ((f"{name}: simcuda, as on H100", None), (f"{name}: incomparable, as: test, so", None), ("", "no verdict"),
                        (f'{name}: test, renamed; now "a \'new\' name"', None), (f'{name}: test, renamed; now "none"', "no case 'none'"),
                        (f"{name}: mended, as on H100", "unknown verdict 'mended'"), (f"{name} is mended", "unknown verdict ''"),
                        (f"{name}: simcuda", "no reason"), (f"{name}: simcuda, ", "no reason"),
                        (f"demo: test, mended\n{name}: test, mended", "stale"), (f"{name}: test, a\n{name}: test, b", "several lines")):
        listed = f"# a comment: test, of it\nbefore 2026-11-28\n{text}\n"
        found, covered = differences.problems(listed, {name: "2026-11-26T06"}, {case, "a 'new' name"})
        expect(f"{text!r}: {found}", not found if wrong is None else any(wrong in line for line in found.values()))
        expect(f"{text!r}: {covered}", covered == (0 if wrong and wrong != "stale" else 1))
    found, _ = differences.problems(f"before 2026-11-28\n{name}: ration, so", {name: "2026-11-26"}, set())
    expect(f"a case that is gone: {found}", "has no case" in found[name])
    for verdict, again in (("simcuda", True), ("test", True), ("incomparable", False)):
        found, _ = differences.problems(f"before 2026-11-28\n{name}: {verdict}, so", {name: "2026-11-29T06"}, {case})
        expect(f"{verdict} and a later run: {found}", ("failed again" in found.get(name, "")) == again)


def what_cannot_be_compared_is_skipped(_, folder):
    program = folder / conformance.PROGRAM
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\ncase "$*" in *--list*) printf "first\\nsecond\\n";; first*) exit 1;; esac\n', encoding="utf-8")
    program.chmod(0o755)
    (folder / "lines").write_text("conformance: first: incomparable, another tenant\n", encoding="utf-8")
    shipped, differences.FILE = differences.FILE, folder / "lines"
    try:
        for sim, statuses in ((False, {"conformance: first": "skipped"}), (True, {"conformance: first": "failed"})):
            written = results.Results(folder / "out.json", "", "")
            check = items.Check(trees.Tree(folder, sim, folder, folder / "state"), written, runs.Clock(60), full=True)
            seen = conformance.report(check)
            expect(f"{seen}", seen.status == ("failed" if sim else "ok") and seen.figures["run"] == (2 if sim else 1))
            expect(f"{written.tests}", {test["name"]: test["status"] for test in written.tests} == statuses)
    finally:
        differences.FILE = shipped


def a_refusal_is_expected(*_):
    figures = {"reasons": {"pool_holds": 2}}
    refused = runs.Ended(1, "", "torch.OutOfMemoryError: CUDA\n", 0.1)
    for ended, seen, status in ((refused, figures, "ok"), (refused, {"reasons": {"pool_holds": 1, "limit": 1}}, "failed"), (refused, {}, "failed"),
                                (runs.Ended(0, "", "", 0.1), figures, "failed"), (runs.Ended(1, "", "KeyError", 0.1), figures, "failed"),
                                (runs.Ended(None, "", "torch.OutOfMemoryError", 0.1), figures, "failed")):
        expect(f"{ended} {seen}", frameworks.as_refused(ended, seen).status == status)


def a_framework_that_fails_natively_is_skipped(_, folder):
    check = items.Check(trees.Tree(folder, False, folder, folder / "state"), None, runs.Clock(60))
    (folder / "numba.py").touch()  # found, and has nothing of Numba
    references = items.References()
    os.environ["PYTHONPATH"] = str(folder)
    try:
        seen = frameworks.run_one(check, sys.executable, references, "numba", trees.NATIVE)
        expect(f"natively: {seen}", seen.status == "skipped" and "does not run here: ended with 1" in seen.note)
        frameworks.run_one(check, sys.executable, references, "numba", "vmm")
        raise AssertionError("it was compared")
    except items.Skip as reason:
        expect(f"{reason}", "native run failed" in str(reason))
    finally:
        del os.environ["PYTHONPATH"]


def what_differs_is_not_judged(*_):
    expect("none", questions.note_on([]) == "ended, with the native answers")
    expect("one", questions.note_on(["a"]) == "ended; 1 difference from its native run: recorded, not judged")


def differences_are_found_on_both_sides(*_):
    natively = [("one", "ok", {"code": 900, "lost": 2, "us": 1.5, "same": 1}, ""), ("gone", "ok", {}, "")]
    here = [("one", "ok", {"code": 0, "kept": True, "us": 2.5, "same": 1}, ""), ("new", "ok", {"code": 0}, "")]
    found = questions.differing(natively, here)
    wanted = ["one.code: 900 natively, 0 here", "one.lost: 2 natively, None here", "one.kept: None natively, True here",
              "new: missing natively, ok here: ", "new.code: None natively, 0 here", "gone: only natively"]
    expect(f"{found}", found == wanted)


def two_files_are_compared(_, folder):
    files = [results.Results(folder / f"{number}.json", "", "") for number in range(2)]
    for number, file in enumerate(files):
        file.add("questions.both", "ok", {"code": number, "us": 0.5 + number})
        file.add("questions.same", "ok", {"code": 1})
        file.add(f"questions.only{number}", "ok", {"code": number})
    for pattern, status, said in (("", 1, "questions.both.code: 0 in the first, 1 in the second\n1 differences in 2 tests\n"),
                                  ("same", 0, "0 differences in 1 tests\n"), ("only", 1, "0 differences in 0 tests\n")):
        done = subprocess.run([sys.executable, "-B", HERE / "compare.py", *(file.path for file in files), pattern], capture_output=True,
                              text=True, timeout=60, check=False)
        expect(f"{pattern!r}: {done}", (done.returncode, done.stdout) == (status, said))


def few_figures_are_printed(*_):
    expect("few", results.short({"code": 0, "waited": True}) == "code 0, waited True")
    for figures in (None, {}, {"list": [1]}, {f"figure_{number}": number for number in range(20)}):
        expect(f"nothing of {figures}", results.short(figures) == "")


def figures_come_from_the_summary(build, folder):
    tree = trees.Tree(build, True, folder, folder / "state")
    line, more = tree.under("vmm", [tree.path("tests/gpu/programs/first")], "1GiB", trees.SUMMARY)
    done = subprocess.run(line, env=tree.environment(**more), capture_output=True, text=True, timeout=60, check=False)
    figures = trees.summary_figures(done.stderr)
    mib = 1 << 20
    expect(f"{figures}", figures == {"peak": 2 * mib, "refused": 0, "reserved_peak": figures["reserved_peak"]})
    expect("within its limit", 2 * mib <= figures["reserved_peak"] <= 1024 * mib)
    expect("nothing", trees.summary_figures("ration: no device memory was requested\n") == {})


def mistakes_end_before_a_build(_, folder):
    """In a copy of the tree whose setup.sh fails, so that every build does."""
    root = folder / "root"
    shutil.copytree(HERE, root / "tests/gpu", ignore=shutil.ignore_patterns("results", "__pycache__"))
    for name in ("gpu-check.sh", "steps.sh"):
        (root / "scripts").mkdir(exist_ok=True)
        shutil.copy(HERE.parents[1] / "scripts" / name, root / "scripts" / name)
    (root / "scripts/setup.sh").write_text("#!/bin/sh\necho began >&2\nexit 1\n", encoding="utf-8")
    (root / "scripts/setup.sh").chmod(0o755)
    for arguments, status, part in ((["--help"], 0, "--prebuilt FOLDER"), (["--list"], 0, "questions.capture\n"),
                                    (["--only", "nosuchtest"], 2, "no test matches --only 'nosuchtest'"),
                                    (["--only", "framework.torch"], 2, "near it: frameworks.torch"),
                                    (["--only", "kill", "--skip", "."], 2, "--skip '.' leaves no test"),
                                    (["--only", "("], 2, "'(' is no regular expression"), (["--seconds", "-5"], 2, "-5 is no time"),
                                    (["--bogus"], 2, "--bogus"), ([], 3, "began"), (["--sim"], 3, "began")):
        done = subprocess.run([root / "scripts/gpu-check.sh", *arguments], capture_output=True, text=True, timeout=60, check=False)
        said = done.stdout if status == 0 else done.stderr
        expect(f"{arguments}: {done}", done.returncode == status and part in said and (status == 3) == ("began" in done.stderr))


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    for case in (differing_output_fails, failed_assertions_are_read, bad_verdicts_are_found,
                 what_cannot_be_compared_is_skipped, a_refusal_is_expected, a_framework_that_fails_natively_is_skipped,
                 what_differs_is_not_judged, differences_are_found_on_both_sides, two_files_are_compared, few_figures_are_printed,
                 figures_come_from_the_summary, mistakes_end_before_a_build, all_held_is_success, a_failure_is_reported,
                 a_killed_check_leaves_its_results):
        folder = pathlib.Path(tempfile.mkdtemp())
        try:
            case(build, folder)
            print(f"ok      {case.__name__.replace('_', ' ')}", flush=True)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return os.EX_OK


if __name__ == "__main__":
    sys.exit(main())
