"""One test in a process of its own, under a limit: its reports are those of the test. Called in both processes."""
from __future__ import annotations

import ctypes
import os
import pathlib
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import typing

import pytest

from . import RationError, _log, limit_environment
from .pytest import ALONE

# What the child must not do again, or has done already by naming the test.
_LEFT_OUT = {"lf": False, "failedfirst": False, "newfirst": False, "stepwise": False, "stepwise_skip": False, "cacheclear": False,
             "keyword": "", "markexpr": "", "deselect": None, "ignore": None, "ignore_glob": None, "maxfail": 0, "xmlpath": None,
             "numprocesses": None, "dist": "no", "tx": [], "distload": False, "looponfail": False, "no_cov": True, "pyargs": False,
             "ration": None, "ration_leaks": False}
_PR_SET_PDEATHSIG = 1  # prctl(2)
_START = ("import pickle, sys; job = pickle.load(open(sys.argv[1], 'rb')); sys.path[:] = job['path']; "
          "from ration_gpu import _pytest_alone; sys.exit(_pytest_alone.main(job))")


def _picklable(value: object) -> bool:
    try:
        pickle.dumps(value)
    except Exception:  # whatever a value's own methods raise
        return False
    return True


def _job(item: pytest.Item, folder: pathlib.Path) -> dict[str, typing.Any]:
    config = item.config
    options = {key: value for key, value in {**vars(config.option), **_LEFT_OUT}.items() if _picklable(value)}
    options["plugins"] = [*(options.get("plugins") or []), "ration_gpu.pytest", "no:terminal"]
    # The child has imported that plug-in already, of which pytest warns; under -W error it would not start.
    options["pythonwarnings"] = [*(options.get("pythonwarnings") or []), "ignore::pytest.PytestAssertRewriteWarning"]
    options["rootdir"] = str(config.rootpath)
    if config.inipath is not None:
        options["inifilename"] = str(config.inipath)
    if options.get("basetemp"):
        given = pathlib.Path(options["basetemp"])  # which the child would empty
        options["basetemp"] = given.with_name(f"{given.name}-{folder.name}")
    file, names = str(item.path), item.nodeid.partition("::")[2]
    worker = getattr(config, "workerinput", {"workerid": "master", "workercount": 1, "testrunuid": folder.name})
    return {"path": sys.path, "options": options, "args": [f"{file}::{names}" if names else file], "nodeid": item.nodeid,
            "workerinput": {key: value for key, value in worker.items() if _picklable(value)}, "reports": str(folder / "reports"),
            "logs": str(folder)}


def _failure(item: pytest.Item, words: str, output: str = "") -> pytest.TestReport:
    sections = [("output of its process", output)] if output.strip() else []
    return pytest.TestReport(item.nodeid, item.location, dict.fromkeys(item.keywords, 1), "failed", words, "call", sections)


def _refused(folder: pathlib.Path) -> list[str]:
    """What the processes of a test were refused last."""
    words = []
    for path in sorted(folder.glob("*.jsonl")):
        log = _log.Log(path)
        log.read()
        words += [refusal.words() for refusal in log.refusals[-1:]]
    return words


def _written(path: pathlib.Path) -> typing.Iterator[dict[str, typing.Any]]:
    """The reports that the child has written, all of them whole."""
    if path.exists():
        with open(path, "rb") as file:
            while True:
                try:
                    yield pickle.load(file)
                except (EOFError, pickle.UnpicklingError):
                    return


def _reports(item: pytest.Item, mark: pytest.Mark) -> typing.Iterator[pytest.TestReport]:
    """Runs the test in a child. What it reports."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="pytest-ration-"))
    try:
        settings = {"stacks": "python", **mark.kwargs}
        if len(mark.args) > 1 or not (mark.args or "limit" in settings):
            raise ValueError("@pytest.mark.ration takes one limit, such as \"2GiB\", and settings by their names")
        limit = mark.args[0] if mark.args else settings.pop("limit")
        made = limit_environment(limit, **{"log": f"{folder}/%p.jsonl", **settings})
        made.pop("RATION_DISABLE", None)
        (folder / "job").write_bytes(pickle.dumps(_job(item, folder)))
        shown = item.config.option.capture == "no"
        with open(folder / "output", "wb") as output:
            done = subprocess.run([sys.executable, "-c", _START, str(folder / "job")], env=made, check=False,
                                  cwd=item.config.invocation_params.dir, stdout=None if shown else output, stderr=None if shown else output)
        text = (folder / "output").read_text(encoding="utf-8", errors="replace")
        ended = False
        for data in _written(folder / "reports"):
            report = item.config.hook.pytest_report_from_serializable(config=item.config, data=data)
            ended = report.when == "teardown" or ended
            yield report
        if not ended:
            why = f"was ended by {signal.Signals(-done.returncode).name}" if done.returncode < 0 else f"ended with status {done.returncode}"
            words = [f"the process of this test, under a limit of {limit}, {why} before the test was over", *_refused(folder)]
            yield _failure(item, "\n".join(words), text)
    except (RationError, ValueError, UserWarning) as error:  # a warning: where those are errors
        yield _failure(item, f"this test was not run: {error}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(item: pytest.Item, nextitem: pytest.Item | None, mark: pytest.Mark) -> None:
    """Runs a marked test."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in _reports(item, mark):
        item.ihook.pytest_runtest_logreport(report=report)
    # Fixtures that an earlier test has left for this one end, unless the next one needs them.
    call = pytest.CallInfo.from_call(lambda: item.session._setupstate.teardown_exact(nextitem), when="teardown")
    if call.excinfo is not None:
        report = pytest.TestReport.from_item_and_call(item, call)
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


class _Recorder:
    """In the child: keeps the reports."""

    def __init__(self, config: pytest.Config, job: dict[str, typing.Any]):
        self.config = config
        self.job = job

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid == self.job["nodeid"]]
        if not items:
            print(f"{self.job['nodeid']} was not found again in {self.job['args'][0]}", file=sys.stderr)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            print(report.longreprtext, file=sys.stderr)

    def pytest_internalerror(self, excrepr: object) -> None:
        print(excrepr, file=sys.stderr)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        with open(self.job["reports"], "ab") as file:
            pickle.dump(data, file)


def main(job: dict[str, typing.Any]) -> int:
    """The child."""
    from . import _limits, _pytest_session
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)  # it ends with the pytest that started it, however that ends
    _limits.require_preloaded("this test", "the library could not be loaded")
    config = pytest.Config.fromdictargs(job["options"], job["args"])
    # Plug-ins that write for the whole run keep out of a worker.
    config.workerinput = job["workerinput"]  # type: ignore[attr-defined]
    config.workeroutput = {}  # type: ignore[attr-defined]
    config.stash[ALONE] = True
    config.pluginmanager.register(_Recorder(config, job))
    config.pluginmanager.register(_pytest_session.Refusals(_log.Log(pathlib.Path(job["logs"]) / f"{os.getpid()}.jsonl")))
    return int(config.hook.pytest_cmdline_main(config=config))
