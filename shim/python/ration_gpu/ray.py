"""Ray: a task or an actor is held to the part of a GPU that Ray gave it.

    import ray
    import ration_gpu.ray

    ray.init(runtime_env=ration_gpu.ray.runtime_env())         # every worker; num_gpus becomes the limit

    @ray.remote(num_gpus=0.25)
    def train(): ...                                           # sees a quarter of the GPU, less 2 % for its context

    @ray.remote(num_gpus=0.25, runtime_env=ration_gpu.ray.runtime_env("4GiB"))
    def small(): ...                                           # by hand

Given to a task or an actor instead of ray.init, only its workers load the library. Where nodes have Ration in different places,
register the plug-in before Ray starts (RAY_RUNTIME_ENV_PLUGINS='[{"class": "ration_gpu.ray.Plugin"}]') and write
runtime_env={"ration": "25%"}. A worker that cannot be limited does not start.
"""
from __future__ import annotations

import functools
import os
import typing
import warnings

import ray
import ray._private.ray_constants as constants
import ray._private.utils
from ray._private.runtime_env.plugin import RuntimeEnvPlugin

from . import RationError, _limits, limit_environment, set_limit

__all__ = ["HOOK", "Plugin", "runtime_env", "setup"]

# The variable by which a worker learns of its setup function; only ray.init takes worker_process_setup_hook, variables go anywhere.
HOOK = constants.WORKER_PROCESS_SETUP_HOOK_ENV_VAR

# The limit of a worker to which Ray has given nothing yet: the smallest there is. One that never hears from Ray keeps it.
_NOTHING = "1MiB"
_MARGIN = "RAY_RATION_MARGIN"
_REMEDY = "start it with runtime_env=ration_gpu.ray.runtime_env(), with Ration in the same place on every node"

_Limit = typing.Union[str, int, float]
_Setting = typing.Union[str, int, float, bool, None]


def _variables(limit: _Limit | None, given: typing.Mapping[str, str], settings: typing.Mapping[str, _Setting]) -> dict[str, str]:
    """Environment variables of a worker: `given`, and those of a limit."""
    start = {key: os.environ[key] for key in ("LD_PRELOAD", "LD_LIBRARY_PATH") if key in os.environ}
    # LD_LIBRARY_PATH is only handed on where it was given or changes.
    made = limit_environment(_NOTHING if limit is None else limit, environment={**start, **given}, **settings)  # type: ignore[arg-type]
    if "LD_LIBRARY_PATH" not in given and made.get("LD_LIBRARY_PATH") == start.get("LD_LIBRARY_PATH"):
        made.pop("LD_LIBRARY_PATH", None)
    made.setdefault("RATION_DISABLE", "0")  # the node may have been started inert
    made.setdefault(HOOK, f"{__name__}.setup")
    return made


def runtime_env(limit: _Limit | None = None, *, margin: float = _limits.MARGIN,
                base: typing.Mapping[str, typing.Any] | None = None, **settings: _Setting) -> dict[str, typing.Any]:
    """A runtime_env for ray.init, a task or an actor, in which workers are limited.

    limit: by hand, as in ration_gpu.limit_environment; None: num_gpus less `margin`, the part of a GPU that a process leaves to the
    driver for its context and modules, which take memory beside a limit. A task or actor without num_gpus then has no limit, as it
    has no GPU. base: what else the runtime_env has, which is not changed. settings: as in limit_environment. ValueError: a setting
    that cannot be used as written.
    """
    made = dict(base or {})
    if made.get("worker_process_setup_hook") is not None:
        raise ValueError(f"worker_process_setup_hook is in use: leave it out, call {__name__}.setup() in it, and write it into the result "
                         f"in place of the variable {__name__}.HOOK")
    variables = _variables(limit, made.get("env_vars") or {}, settings)
    if limit is None:
        _limits.fraction(0.5, margin)  # for its ValueError
        variables[_MARGIN] = f"{margin:.6f}"
    made["env_vars"] = variables
    return made


class Plugin(RuntimeEnvPlugin):
    """runtime_env={"ration": LIMIT} or {"ration": {"limit": LIMIT, "group": NAME, ...}}, with the library of each node."""

    name = "ration"

    @staticmethod
    def _settings(runtime_env_dict: typing.Mapping[str, typing.Any]) -> dict[str, typing.Any]:
        value = runtime_env_dict["ration"]
        settings = dict(value) if isinstance(value, dict) else {"limit": value}
        if settings.get("limit") is None or isinstance(settings["limit"], bool) or not isinstance(settings["limit"], (str, int, float)):
            raise ValueError(f'runtime_env={{"ration": {value!r}}}: needed is a limit: "25%" or {{"limit": "8GiB", ...}}')
        return settings

    @staticmethod
    def validate(runtime_env_dict: dict[str, typing.Any]) -> None:
        Plugin._settings(runtime_env_dict)

    def modify_context(self, uris: list[str], runtime_env: typing.Mapping[str, typing.Any], context: typing.Any,
                       logger: typing.Any) -> None:
        settings = self._settings(runtime_env)
        limit = settings.pop("limit")
        # A limit of the whole job, which runtime_env() gave, is replaced.
        given = {key: value for key, value in context.env_vars.items() if key not in (_MARGIN, "RATION_LIMIT")}
        context.env_vars = _variables(limit, given, settings)


class _Assignment:
    """Stands in for the function by which a worker makes the GPUs visible that Ray gives to its next task or actor."""

    def __init__(self, original: typing.Callable[[], typing.Mapping[str, str | None]], margin: float):
        self.original = original
        self.margin = margin
        self.stated: str | None = None  # what the last task was given
        self.in_force: str | None = None  # the limit that the library has read; it reads once
        self.inert = False  # the last task had no GPU, and no limit
        self.escaped = False

    def __call__(self) -> dict[str, str | None]:
        """The variables as they were before, which Ray restores when a task has ended."""
        before = dict(self.original())
        context: typing.Any = ray.get_runtime_context()
        if context.runtime_env.get(Plugin.name) is not None:  # it would have set a limit before this worker started
            raise RationError(f'runtime_env={{"{Plugin.name}": ...}} has no effect: the plug-in is not registered on this node '
                              "(RAY_RUNTIME_ENV_PLUGINS)")
        gpus = float(context.get_assigned_resources().get("GPU", 0))
        limit = _limits.fraction(min(gpus, 1.0), self.margin) if gpus > 0 else None
        self._check_reuse(limit)
        changes = {"RATION_DISABLE": "1"} if limit is None else {"RATION_LIMIT": limit, "RATION_DISABLE": "0"}
        for key, value in changes.items():
            before[key] = os.environ.get(key)
            os.environ[key] = value
        self.stated, self.inert = limit, limit is None
        return before

    def _check_reuse(self, limit: str | None) -> None:
        if self.in_force is None:
            libraries = _limits.loaded("libration-core.so", "libcuda.so.1")
            if "libration-core.so" in libraries:
                self.in_force = self.stated or _NOTHING
            elif libraries and self.inert:
                self.escaped = True
        if limit is None or self.in_force == limit:
            return
        if self.escaped:
            raise RationError("this worker has loaded CUDA in a task without num_gpus, so it can have no limit any more: "
                              "declare num_gpus, or max_calls=1, where that task is defined")
        if self.in_force is None:
            return
        try:
            set_limit(os.getpid(), limit)
        except RationError as error:
            warnings.warn(f"this worker keeps its first limit, {self.in_force} of each GPU, and this task was given {limit}: {error}; "
                          "declare num_gpus, or max_calls=1, where the earlier task is defined", RuntimeWarning, stacklevel=3)
        else:
            self.in_force = limit


def setup() -> None:
    """In a worker, as its worker_process_setup_hook: from now on what Ray assigns becomes the limit.

    RationError: this worker cannot be limited; Ray then ends it, and its task fails with these words. Where a limit was set by
    hand, that one holds.
    """
    _limits.require_preloaded("this Ray worker", _REMEDY)
    if os.environ.setdefault("RATION_LIMIT", _NOTHING) != _NOTHING:
        return
    original = getattr(ray._private.utils, "set_visible_accelerator_ids", None)
    if original is None:
        raise RationError(f"Ray {ray.__version__} tells a worker of its GPUs in a way that is not known here; set limits by hand")
    if not isinstance(original, _Assignment):
        assignment = _Assignment(original, float(os.environ.get(_MARGIN) or _limits.MARGIN))
        ray._private.utils.set_visible_accelerator_ids = functools.update_wrapper(assignment, original)
