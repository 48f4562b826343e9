#!/usr/bin/env python3
"""Ray's own tasks and actors, with ration_gpu.ray: ray_test.py"""
import contextlib
import pathlib
import subprocess
import sys

from engines import GIB, expect, expect_that, main
from python_engine import TOTAL, end, expect_exactly, expect_readme, held, inside, part, refused, surrounded, until

inside()

import ray  # noqa: E402

import gpu_job  # noqa: E402
import ration_gpu.ray  # noqa: E402

PLUGIN = '[{"class": "ration_gpu.ray.Plugin"}]'


@contextlib.contextmanager
def started(folder, runtime_env=None, **environment):
    """A Ray of this machine with one GPU, which is no more after it. Where its logs are."""
    with surrounded(folder, RAY_AUTH_MODE="disabled", RAY_USAGE_STATS_ENABLED="0", **environment):
        # runtime_env: a function, as the environment counts in which it is made.
        try:
            ray.init(num_gpus=1, num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR", _temp_dir=f"{folder}/ray",
                     object_store_memory=80 << 20, _node_ip_address="127.0.0.1", runtime_env=runtime_env and runtime_env())
            yield pathlib.Path(folder) / "ray/session_latest/logs"
        finally:
            ray.shutdown()


@ray.remote
class Job:
    """An actor that does what a job does, each time in the same process."""

    def do(self, name, *arguments):
        return getattr(gpu_job, name)(*arguments)


@ray.remote(num_gpus=0.25)
def quarter(name, *arguments):
    return getattr(gpu_job, name)(*arguments)


@ray.remote
def anything(name, *arguments):
    return getattr(gpu_job, name)(*arguments)


def words_in(logs, words):
    return any(words in path.read_text(errors="replace") for path in logs.iterdir() if path.is_file())


def unlike_shares(folder):
    """Actors of a half, a quarter and a fifth fill their shares at once; one is killed, and the next one has its room."""
    with started(folder, ration_gpu.ray.runtime_env):
        shares = (0.5, 0.25, 0.2)
        actors = [Job.options(num_gpus=share).remote() for share in shares]
        jobs = ray.get([actor.do.remote("fill_whole_share") for actor in actors])
        for job, share in zip(jobs, shares):
            expect_exactly(f"num_gpus={share}", job, part(share))
        expect("processes", len({job["pid"] for job in jobs}), 3)
        end(jobs[1]["pid"])
        another = Job.options(num_gpus=0.25).remote()
        expect_exactly("its room", ray.get(another.do.remote("fill_whole_share")), part(0.25), after_a_death=True)
        expect("more than its share", ray.get(another.do.remote("take", GIB))[0], 2)
    with surrounded(folder):
        expect("processes under Ration, when Ray has ended", held(), 0)


def tasks(folder):
    """Each task has its own limit; one without a GPU has none, and the library does nothing in it."""
    with started(folder, ration_gpu.ray.runtime_env):
        for _ in range(2):
            expect_exactly("a task", ray.get(quarter.remote("fill_whole_share")), part(0.25), after_a_death=True)
        expect("a whole GPU", ray.get(quarter.options(num_gpus=1).remote("sizes"))[1], TOTAL)
        expect("no GPU", ray.get(anything.remote("sizes"))[1], TOTAL)
        expect("inert", ray.get(anything.remote("surroundings"))["settings"]["RATION_DISABLE"], "1")


def of_one_task(folder):
    """Given to a task, runtime_env() concerns it alone: nothing is loaded elsewhere."""
    with started(folder):
        environment = ration_gpu.ray.runtime_env(margin=0.05, base={"env_vars": {"MINE": "1"}})
        expect("automatic", ray.get(quarter.options(runtime_env=environment).remote("sizes"))[1], part(0.25, 0.05))
        by_hand = ration_gpu.ray.runtime_env("4GiB", group="lab")
        expect("by hand", ray.get(quarter.options(runtime_env=by_hand).remote("sizes"))[1], 4 * GIB)
        settings = ray.get(quarter.options(runtime_env=by_hand).remote("surroundings"))["settings"]
        expect("settings", (settings["RATION_LIMIT"], settings["RATION_GROUP"]), ("4GiB", "lab"))
        actor = Job.options(num_gpus=0.5, runtime_env=by_hand).remote()
        expect("an actor by hand", ray.get(actor.do.remote("sizes"))[1], 4 * GIB)
        elsewhere = ray.get(anything.remote("surroundings"))
        expect("elsewhere", (elsewhere["loaded"], [key for key in elsewhere["settings"] if key != "RATION_STATE_DIR"]), (False, []))


def the_plugin(folder):
    def error(value):
        try:
            ray.get(quarter.options(runtime_env={"ration": value}).remote("sizes"))
        except ray.exceptions.RuntimeEnvSetupError as refusal:
            return str(refusal)
        return "none"

    for job in (None, ration_gpu.ray.runtime_env):
        with started(folder, job, RAY_RUNTIME_ENV_PLUGINS=PLUGIN):
            expect("a share", ray.get(quarter.options(runtime_env={"ration": "30%"}).remote("sizes"))[1], TOTAL * 30 // 100)
            settings = {"ration": {"limit": "2GiB", "group": "lab"}}
            expect("settings", ray.get(anything.options(runtime_env=settings).remote("sizes"))[1], 2 * GIB)
            if job is None:
                wrong = {"it does not begin with a number": "lots", "at most 100%": "120%", "needed is a limit": {"group": "lab"}}
                for words, value in wrong.items():
                    expect_that(f"{value} is refused in words: {(seen := error(value))}", words in seen)


def reused(folder):
    """A worker that Ray gives another share follows, and keeps its first limit with a warning where that cannot be."""
    with started(folder, ration_gpu.ray.runtime_env):
        jobs = [ray.get(anything.options(num_gpus=share).remote("fill_whole_share")) for share in (0.25, 0.5, 0.25)]
        expect("a process", len({job["pid"] for job in jobs}), 1)
        expect("limits", [job["total"] for job in jobs], [part(0.25), part(0.5), part(0.25)])
        expect("got", [job["got"] // GIB for job in jobs], [3, 4, 0])  # what an earlier task has not given back counts
    with started(folder, lambda: ration_gpu.ray.runtime_env(base={"env_vars": {"PATH": "/usr/bin:/bin"}})) as logs:
        totals = [ray.get(anything.options(num_gpus=share).remote("sizes"))[1] for share in (0.25, 0.5)]
        expect("limits", totals, [part(0.25), part(0.25)])
        words = "this worker keeps its first limit, 0.230000 of each GPU, and this task was given 0.480000: no command `ration`"
        until("a warning", lambda: words_in(logs, words))


def too_much(folder):
    """More than its share is refused, and the log says why; a limit that cannot be is refused in words."""
    with started(folder, lambda: ration_gpu.ray.runtime_env(log=f"{folder}/%p.jsonl")):
        expect("CUDA_ERROR_OUT_OF_MEMORY", ray.get(quarter.remote("take", 8 * GIB))[0], 2)
    expect("refusals", [(record["reason"], record["req"], record["limit"]) for record in refused(folder, "*.jsonl")],
           [("limit", 8 * GIB, part(0.25))])
    with surrounded(folder):
        for words, asked in (("at most 100%", {"limit": "120%"}), ("margin=2", {"margin": 2}), ("unknown setting", {"limt": 1}),
                             ("is in use", {"base": {"worker_process_setup_hook": "mine.setup"}})):
            try:
                ration_gpu.ray.runtime_env(**asked)
                expect_that(f"{asked} is refused", False)
            except ValueError as error:
                expect_that(f"{words!r} in {error}", words in str(error))


def fails_closed(folder):
    """No worker without a limit: the library is missing, or nothing was preloaded, or the plug-in is not registered."""
    def crashes(runtime_env):
        try:
            ray.get(quarter.options(max_retries=0, runtime_env=runtime_env).remote("sizes"))
            expect_that(f"{runtime_env} is no limit", False)
        except ray.exceptions.WorkerCrashedError:
            pass

    with started(folder) as logs:
        missing = ration_gpu.ray.runtime_env()
        missing["env_vars"]["LD_PRELOAD"] = f"{folder}/libration.so"
        crashes(missing)
        until("which library", lambda: words_in(logs, f"this Ray worker would have no limit: {folder}/libration.so could not be loaded"))
    with started(folder, lambda: {"worker_process_setup_hook": ration_gpu.ray.setup}) as logs:
        crashes({})
        until("what to do", lambda: words_in(logs, "it was started without libration.so in LD_PRELOAD; start it with runtime_env="))
    with started(folder, ration_gpu.ray.runtime_env) as logs:
        crashes({"ration": "25%"})
        until("which plug-in", lambda: words_in(logs, "the plug-in is not registered on this node"))
    # Ray keeps workers without a GPU apart from those with one, but promises it nowhere.
    code = ("import ctypes, ration_gpu.ray; assignment = ration_gpu.ray._Assignment(dict, 0.02); assignment.inert = True; "
            "ctypes.CDLL('libcuda.so.1'); assignment._check_reuse('0.23')")
    with surrounded(folder):
        done = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, check=False)
    expect_that(f"no limit after CUDA without one: {done.stderr}", "has loaded CUDA in a task without num_gpus" in done.stderr)


def beside_a_hook(folder):
    """A program with a setup function of its own calls ours."""
    def runtime_env():
        made = ration_gpu.ray.runtime_env()
        made["env_vars"].pop(ration_gpu.ray.HOOK)
        return made | {"worker_process_setup_hook": gpu_job.ray_setup}

    with started(folder, runtime_env):
        expect("limit", ray.get(quarter.remote("sizes"))[1], part(0.25))


main({"unlike_shares": unlike_shares, "tasks": tasks, "of_one_task": of_one_task, "the_plugin": the_plugin, "reused": reused,
      "too_much": too_much, "fails_closed": fails_closed, "beside_a_hook": beside_a_hook,
      "readme": lambda folder: expect_readme("ray", folder)})
