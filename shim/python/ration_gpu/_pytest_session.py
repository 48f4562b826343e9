"""A whole run of pytest, or each of its xdist workers, under a limit: the environment, and what is reported."""
from __future__ import annotations

import gc
import os
import pathlib
import shlex
import shutil
import sys
import tempfile
import typing

import pytest

from . import RationError, _limits, _log, limit_environment, usage
from .pytest import EQUAL, FOLDER

_LEFT = "ration_left_behind"


def _environment(limit: str | int | None, folder: str, leaks: bool) -> dict[str, str]:
    """limit: a number of equal shares, or a limit as it is written. A worker and its marked test are two processes."""
    share = _limits.fraction(1 / limit, 2 * _limits.MARGIN) if isinstance(limit, int) else limit
    log, stacks = (f"{folder}/%p.jsonl", "python") if leaks else (None, None)
    try:
        return {**limit_environment(share, log=log, stacks=stacks), FOLDER: folder}
    except (RationError, ValueError, UserWarning) as error:  # a warning: where those are errors
        more = f"\n--ration takes a limit, or {EQUAL}: equal shares" if f"RATION_LIMIT={limit}:" in str(error) else ""
        raise pytest.UsageError(str(error) + more) from error


def _command(config: pytest.Config) -> str:
    """How this run is started under the library."""
    program = ["python3", "-m", "pytest"] if os.path.basename(sys.argv[0]) == "__main__.py" else ["pytest"]
    return shlex.join(["ration", "run", "--", *program, *map(str, config.invocation_params.args)])


def limit_this_process(config: pytest.Config, limit: str | int | None) -> None:
    """Sets what the library, which is here already, reads at the first CUDA call. UsageError: it is not here, or has read it."""
    try:
        _limits.require_preloaded("this run of pytest", f"without xdist start it as\n  {_command(config)}")
    except RationError as error:
        raise pytest.UsageError(str(error)) from error
    if _limits.loaded("libration-core.so"):
        raise pytest.UsageError("this process has used CUDA already, so it keeps the limit and the log that it has; "
                                "start pytest in a process of its own")
    _prepare(config, limit, config.known_args_namespace.ration_leaks)


def _prepare(config: pytest.Config, limit: str | int | None, leaks: bool) -> None:
    """Sets the environment until the run ends."""
    folder = tempfile.mkdtemp(prefix="pytest-ration-")
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    before = dict(os.environ)

    def restore() -> None:
        os.environ.clear()
        os.environ.update(before)

    made = _environment(limit, folder, leaks)
    config.add_cleanup(restore)
    os.environ.update(made)


def prepare_workers(config: pytest.Config, limit: str | int | None) -> None:
    """Makes what this process starts start under the limit."""
    _prepare(config, limit, config.option.ration_leaks)


def watch(config: pytest.Config) -> None:
    """In the process that runs tests. UsageError: it has no limit."""
    try:
        _limits.require_preloaded("this process of pytest", "workers on other machines are started under `ration run` there")
    except RationError as error:
        if hasattr(config, "workerinput"):  # xdist waits for ever for a worker that ends this early
            config.pluginmanager.register(NoTests(str(error)))
            return
        raise pytest.UsageError(str(error)) from error
    folder = os.environ.pop(FOLDER, "")  # what tests start is no run of this kind
    if os.environ.get("RATION_LIMIT") and "RATION_GROUP" not in os.environ:
        # A marked test's own process takes from the share of the process that runs it.
        os.environ["RATION_GROUP"] = f"pytest-{os.getpid()}"
        os.environ["RATION_GROUP_LIMIT"] = os.environ["RATION_LIMIT"]
    log = _log.Log(pathlib.Path(folder) / f"{os.getpid()}.jsonl") if config.option.ration_leaks else None
    config.pluginmanager.register(Refusals(log))
    if log is not None:
        config.pluginmanager.register(Leaks(log))
        show_left_behind(config)


def show_left_behind(config: pytest.Config) -> None:
    config.pluginmanager.register(Summary())


def _processes() -> str:
    """Who holds what of the devices that this process uses."""
    rows = usage()["processes"]
    devices = {row["uuid"] for row in rows if row["pid"] == os.getpid()}
    lines = []
    for row in sorted(rows, key=lambda row: -row["reserved_bytes"]):
        if row["uuid"] in devices or not devices:
            limit = f" of {_log.size(row['limit'])}" if row["limit"] else ""
            mine = ", this test's process" if row["pid"] == os.getpid() else ""
            group = f"; group {row['group']}" if row["group"] != "-" else ""
            lines.append(f"  {os.path.basename(row['program'])} (pid {row['pid']}{mine}) holds {_log.size(row['reserved_bytes'])}{limit}, "
                         f"{_log.size(row['used_bytes'])} of them in use{group}")
    return "\n".join(lines)


class NoTests:
    """Ends a worker before it imports a test."""

    def __init__(self, words: str):
        self.words = words

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        raise RationError(self.words)


class Refusals:
    """Tells, in the report of a failed test, what it was refused, and who holds what."""

    def __init__(self, log: _log.Log | None):
        self.log = log
        self.seen = 0

    def _new(self) -> list[str]:
        if self.log is not None:
            self.log.read()
            new, self.seen = self.log.refusals[self.seen:], len(self.log.refusals)
            words = [refusal.words() for refusal in new[-3:]]
            if len(new) > 3:
                words.insert(0, f"{len(new)} requests were refused; the last ones:")
            if new and new[-1].held:
                words += ["this process held then:", *("  " + line for line in _log.by_place(new[-1].held)[:10])]
            return words
        failures = sum(row["refusals"] for row in usage()["processes"] if row["pid"] == os.getpid())
        new_failures, self.seen = failures - self.seen, failures
        return [f"{new_failures} request{'s' if new_failures > 1 else ''} for GPU memory refused"] if new_failures > 0 else []

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> typing.Generator[None, typing.Any, None]:
        report = (yield).get_result()
        if report.failed:
            words = self._new()
            if words:
                report.sections.append(("GPU memory", "\n".join([*words, "holders of the device:", _processes()])))


class Leaks:
    """Compares what the process holds before and after each test, without what fixtures of a wider scope allocate."""

    def __init__(self, log: _log.Log):
        self.log = log
        self.shared: set[int] = set()  # blocks of such fixtures
        self.start = 0
        self.failed = False

    def _last(self) -> int:
        self.log.read()
        return max((block.seq for block in self.log.live.values()), default=0)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> typing.Generator[None, None, None]:
        self.start, self.failed = self._last(), False
        yield

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: typing.Any) -> typing.Generator[None, None, None]:
        start = self._last() if fixturedef.scope != "function" else None
        yield
        if start is not None:
            self.log.read()
            self.shared.update(block.seq for block in self.log.live.values() if block.seq > start)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self) -> typing.Generator[None, typing.Any, None]:
        self.failed = (yield).get_result().failed or self.failed

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> typing.Generator[None, None, None]:
        yield
        if self.failed:  # its traceback keeps what its functions held
            return
        gc.collect()
        self.log.read()
        left = [block for block in self.log.live.values() if block.seq > self.start and block.seq not in self.shared]
        if left:
            item.user_properties.append((_LEFT, "; ".join(_log.by_place(left))))


class Summary:
    """Names, at the end, the tests that left memory behind."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            self.lines += [f"{report.nodeid}: {value}" for name, value in report.user_properties if name == _LEFT]

    def pytest_terminal_summary(self, terminalreporter: typing.Any) -> None:
        if self.lines:
            terminalreporter.section("GPU memory left behind")
            for line in self.lines:
                terminalreporter.write_line(line)
