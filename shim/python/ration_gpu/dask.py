"""Dask: each worker of a cluster is held to its share of a GPU.

    import ration_gpu.dask
    from distributed import LocalCluster

    ration_gpu.dask.limits(workers=4)                          # each of four workers on a GPU: equal shares
    cluster = LocalCluster(n_workers=4)

    with ration_gpu.dask.limits("25%"):                        # only clusters that are made here
        cluster = LocalCluster(n_workers=2)

It is Dask's configuration that is set, so LocalCUDACluster and whatever else starts workers through a nanny follow it. Where Dask is
started by commands, the limit is in the configuration, and an option puts the library into the nanny:

    DASK_RATION__LIMIT=25% dask worker --preload-nanny ration_gpu.dask tcp://SCHEDULER:8786

The nanny puts the library into the environment before it starts its worker, each time; a worker without a limit does not start.
"""
from __future__ import annotations

import functools
import numbers
import os
import typing

import dask.config

from . import RationError, _limits, limit_environment

__all__ = ["dask_setup", "limits"]

# The nanny tells its worker whether it could set the limit: STATE is LIMITED, or why not.
STATE = "DASK_RATION"
LIMITED = "limited"
_CHECK = "ration_gpu._dask_worker"


def limits(limit: str | int | float | None = None, *, workers: int | None = None, margin: float = _limits.MARGIN,
           **settings: str | int | float | bool | None) -> dask.config.set:
    """From now on, or in a `with` statement, nannies that are made start their workers under a limit.

    limit: of each worker, as in ration_gpu.limit_environment; or workers: how many share a GPU, each of which gets an equal part less
    `margin`, the part of a GPU that a process leaves to the driver for its context and modules, which take memory beside a limit.
    settings: as in limit_environment. ValueError: a setting that cannot be used as written. In an asynchronous program the cluster is
    awaited within the `with` statement; a cluster that grows later takes the configuration of that moment.
    """
    if (limit is None) == (workers is None):
        raise ValueError("either a limit for each worker or the number of workers on a GPU is needed")
    if workers is not None:
        if not isinstance(workers, numbers.Real):
            raise TypeError(f"workers={workers!r} is no number: write how many workers share a GPU, such as 4")
        if workers < 1:
            raise ValueError(f"workers={workers}: at least one")
        limit = _limits.fraction(1 / workers, margin)
    asked = {"limit": limit, **{key: value for key, value in settings.items() if value is not None}}
    _variables(asked, os.environ)  # for its ValueError
    # What workers load refuses those that no nanny has limited, such as those in this process (processes=False).
    return dask.config.set({"distributed.nanny.preload": _with(dask.config.get("distributed.nanny.preload", default=None), __name__),
                            "distributed.worker.preload": _with(dask.config.get("distributed.worker.preload", default=None), _CHECK),
                            "ration": asked})


def _with(preloads: str | typing.Sequence[str] | None, name: str) -> list[str]:
    """A list of modules to load, with this one in it."""
    return [*(other for other in ([preloads] if isinstance(preloads, str) else preloads or []) if other != name), name]


def _variables(asked: object, before: typing.Mapping[str, str]) -> dict[str, str]:
    """LD_PRELOAD and RATION_ variables for the settings `ration` of Dask's configuration. before: what the worker starts with."""
    if not isinstance(asked, dict) or asked.get("limit") is None:
        raise RationError('Dask\'s configuration has no "ration": {"limit": ...}')
    settings = tuple((key.replace("-", "_"), value) for key, value in asked.items())
    return dict(_asked_once(settings, tuple((key, before[key]) for key in ("LD_PRELOAD", "LD_LIBRARY_PATH") if key in before)))


@functools.lru_cache
def _asked_once(settings: tuple[tuple[str, typing.Any], ...], given: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """The command is asked once for all nannies of a cluster in this process."""
    return limit_environment(environment=dict(given), **dict(settings))


def dask_setup(nanny: typing.Any) -> None:
    """Dask calls this in a nanny that preloads this module, before its first worker starts."""
    if not hasattr(nanny, "pre_spawn_env"):
        # Dask logs any other exception and goes on: a worker without a limit.
        raise SystemExit(f"{__name__} is for nannies (--preload-nanny, distributed.nanny.preload): this worker would have no limit")
    # Dask goes on after an error in here, and its own environment may have the library already: the worker must be told.
    present = len(_with(nanny.preload, "")) - 1
    nanny.preload = _with(nanny.preload, _CHECK)
    if len(nanny.preload) > present and nanny.preload_argv and not isinstance(nanny.preload_argv[0], str):
        nanny.preload_argv = [*nanny.preload_argv, []]
    nanny.env[STATE] = "setting it failed"
    try:
        variables = _variables(nanny.config.get("ration"), {**os.environ, **nanny.pre_spawn_env})
    except (RationError, ValueError) as error:
        nanny.env[STATE] = str(error)
        raise
    # What is set before a worker starts stays in this process. Here the library must be inert, in what else this process starts, too,
    # unless this process is under it.
    before = {key: value for key, value in variables.items() if not key.startswith("RATION_")}
    if not _limits.loaded("libration.so"):
        before["RATION_DISABLE"] = "1"
    nanny.pre_spawn_env.update(before)
    nanny.env.update({**variables, "RATION_DISABLE": "0", STATE: LIMITED})
