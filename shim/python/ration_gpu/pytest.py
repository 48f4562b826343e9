"""pytest: tests that share a GPU, tests under a limit, tests that leave memory behind.

    pytest -n 4 --ration equal          each xdist worker gets an equal share of each GPU; so does `-p ration_gpu.pytest` alone
    pytest -n 4 --ration 2GiB           or this limit
    pytest -n 4 --ration-leaks          names each test that leaves device memory behind, the bytes, and the line
    ration run -- pytest --ration 2GiB  without xdist: the whole run has it; --ration-leaks likewise

    @pytest.mark.ration("2GiB")         this test runs in a process of its own under the limit
    def test_small(): ...

A test that fails after it was refused memory says what was refused, and who holds what. Whatever cannot be limited does not run.
Without these options and marks this module does nothing, and imports nothing.
"""
from __future__ import annotations

import os
import typing

import pytest

EQUAL = "equal"
# Set in processes that were started under the library for these options: the folder of their logs.
FOLDER = "PYTEST_RATION"
# In the configuration of a marked test's own process.
ALONE = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("ration", "GPU memory (Ration)")
    group.addoption("--ration", metavar="SHARE",
                    help=f"GPU memory of each xdist worker, or of the run: 2GiB, 25%%, or {EQUAL}: equal shares")
    group.addoption("--ration-leaks", action="store_true", help="name the tests that leave GPU memory behind")


def _asked(config: pytest.Config) -> bool:
    """Whether each worker shall have a limit."""
    return config.option.ration is not None or __name__ in (config.option.plugins or [])


def _limit(option: typing.Any) -> str | int | None:
    return 1 if option.ration == EQUAL else option.ration


def _distributed(option: typing.Any) -> bool:
    return any(getattr(option, name, None) not in (None, 0, False, "no", []) for name in ("numprocesses", "dist", "distload", "tx"))


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "ration(limit, **settings): run the test in a process of its own under this limit of GPU memory")
    if ALONE in config.stash:
        return
    if not (_is_worker(config) or FOLDER in os.environ and not _distributed(config.option)):
        if config.option.ration_leaks:
            _session().show_left_behind(config)
        return
    if _asked(config) or config.option.ration_leaks:
        _session().watch(config)


def _session() -> typing.Any:
    from . import _pytest_session
    return _pytest_session


def _limits_itself(config: pytest.Config, option: typing.Any) -> bool:
    """Whether the tests run in this process, without xdist, and it shall have a limit or a log."""
    return ((option.ration is not None or option.ration_leaks) and FOLDER not in os.environ and ALONE not in config.stash
            and not (option.help or option.collectonly or _distributed(option) or _is_worker(config)))


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> typing.Generator[None, None, None]:
    """Before what conftest.py imports, which may use CUDA."""
    option = early_config.known_args_namespace
    if _limits_itself(early_config, option):
        _session().limit_this_process(early_config, _limit(option))
    yield


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: typing.Sequence[object]) -> None:
    """With xdist: workers are started after this, in this process's environment."""
    if _asked(config):
        _session().prepare_workers(config, len(specs) if config.option.ration in (None, EQUAL) else config.option.ration)
    elif config.option.ration_leaks:
        _session().prepare_workers(config, None)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    mark = item.get_closest_marker("ration")
    if mark is None or ALONE in item.config.stash:
        return None
    from . import _pytest_alone
    _pytest_alone.run(item, nextitem, mark)
    return True
