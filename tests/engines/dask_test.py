#!/usr/bin/env python3
"""Dask's own clusters, with ration_gpu.dask: dask_test.py"""
import contextlib
import subprocess
import sys

from engines import GIB, expect, expect_that, main
from python_engine import TOTAL, end, environment, expect_exactly, expect_readme, held, inside, refused, surrounded, until

inside()

import dask  # noqa: E402
import distributed  # noqa: E402

import gpu_job  # noqa: E402
import ration_gpu.dask  # noqa: E402


@contextlib.contextmanager
def cluster(workers=1, **options):
    with distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0", **options) as made:
        with distributed.Client(made) as client:
            yield client


def all_of(client, function, *arguments):
    """What each worker answers."""
    return list(client.run(function, *arguments).values())


def unlike_shares(folder):
    """Two clusters on one device; a worker is killed, and its nanny's next one has its room, under the same limit."""
    with surrounded(folder), contextlib.ExitStack() as stack:
        with ration_gpu.dask.limits("25%"):
            small = stack.enter_context(cluster())
        with ration_gpu.dask.limits("60%"):
            large = stack.enter_context(cluster())
        first, = all_of(small, gpu_job.fill_whole_share)
        expect_exactly("a quarter", first, TOTAL // 4)
        expect_exactly("beside it", all_of(large, gpu_job.fill_whole_share)[0], TOTAL * 3 // 5)
        end(first["pid"])
        second = until("the nanny's next worker", lambda: all_of(small, gpu_job.fill_whole_share))[0]
        expect_that("another process", second["pid"] != first["pid"])
        expect_exactly("its room", second, TOTAL // 4, after_a_death=True)
    expect("processes under Ration, when the clusters are closed", held_in(folder), 0)


def held_in(folder):
    with surrounded(folder):
        return held()


def equal_shares(folder):
    with surrounded(folder), ration_gpu.dask.limits(workers=3), cluster(3) as client:
        for job in all_of(client, gpu_job.fill_whole_share):
            expect_exactly("a third", job, int(TOTAL * round(1 / 3 - 0.02, 6)))


def for_the_program(folder):
    """Without `with`: clusters that are made later, and workers that come later."""
    with surrounded(folder):
        before = {key: dask.config.get(key, default=None) for key in (f"distributed.{kind}.preload" for kind in ("nanny", "worker"))}
        ration_gpu.dask.limits("2GiB", group="lab")
        try:
            with cluster() as client:
                client.cluster.scale(2)
                client.wait_for_workers(2)
                expect("totals", [job[1] for job in all_of(client, gpu_job.sizes)], [2 * GIB, 2 * GIB])
                expect("groups", {job["settings"]["RATION_GROUP"] for job in all_of(client, gpu_job.surroundings)}, {"lab"})
        finally:
            dask.config.set(before | {"ration": None})


def others(folder):
    """A cluster beside it has no limit, nor has what this process starts."""
    with surrounded(folder):
        with ration_gpu.dask.limits("25%"), cluster() as client:
            expect("a limit", all_of(client, gpu_job.sizes)[0][1], TOTAL // 4)
        with cluster() as client:
            expect("no limit", all_of(client, gpu_job.sizes)[0][1], TOTAL)
        code = "import gpu_job; print(gpu_job.sizes()[1])"
        seen = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
        expect("a process of the client", seen.stdout, f"{TOTAL}\n")


def too_much(folder):
    """More than the share is refused, and the log says why; a limit that cannot be is refused in words."""
    with surrounded(folder), ration_gpu.dask.limits("25%", log=f"{folder}/%p.jsonl"), cluster() as client:
        (result, _), = all_of(client, gpu_job.take, TOTAL // 2)
        expect("CUDA_ERROR_OUT_OF_MEMORY", result, 2)
        expect("refusals", [(record["reason"], record["req"], record["limit"]) for record in refused(folder, "*.jsonl")],
               [("limit", TOTAL // 2, TOTAL // 4)])
    with surrounded(folder):
        for words, asked in (("at most 100%", {"limit": "120%"}), ("either a limit", {}), ("at least one", {"workers": 0}),
                             ("unknown setting", {"limit": "1GiB", "limt": "1"}), ("workers='4' is no number", {"workers": "4"}),
                             ("margin='2%' is no number", {"workers": 4, "margin": "2%"}), ("needs a group", {"limit": "25%", "guarantee": "1GiB"})):
            try:
                ration_gpu.dask.limits(**asked)
                expect_that(f"{asked} is refused", False)
            except (TypeError, ValueError) as error:
                expect_that(f"{words!r} in {error}", words in str(error))


def refuses(words, configuration):
    """No worker starts, and the error says why."""
    with dask.config.set(configuration):
        try:
            with cluster():
                expect_that(f"no worker without a limit: {words}", False)
        except RuntimeError as error:
            expect_that(f"{words!r} in {error.__cause__!r}", words in str(error.__cause__))


def fails_closed(folder):
    with surrounded(folder):
        preload = {"distributed.nanny.preload": ["ration_gpu.dask"]}
        refuses("it does not begin with a number", preload | {"ration": {"limit": "lots"}})
        refuses('no "ration"', preload | {"ration": {}})
        forked = {"ration": {"limit": "1GiB"}, "distributed.worker.multiprocessing-method": "fork"}
        refuses("started without libration.so", preload | forked)
        try:
            with ration_gpu.dask.limits("25%"), cluster(processes=False):
                expect_that("no worker without a limit in this process", False)
        except RuntimeError as error:
            expect_that(f"no nanny: {error!r}", "this Dask worker would have no limit: its nanny set none" in f"{error} {error.__cause__}")
        with cluster(processes=False) as client:
            expect("no limit asked", len(client.scheduler_info()["workers"]), 1)


class OnePerDevice(distributed.LocalCluster):
    """A cluster as LocalCUDACluster is one: workers come later, with a preload, its arguments, variables and configuration."""

    def __init__(self):
        super().__init__(n_workers=0, processes=True, config={"distributed.comm.retry.count": 0}, dashboard_address=":0")
        self.new_spec["options"] |= {"preload": ["json"], "preload_argv": ["--create", "something"], "env": {"CUDA_VISIBLE_DEVICES": "0"}}
        self.scale(2)
        self.sync(self._correct_state)


def other_clusters(folder):
    with surrounded(folder), ration_gpu.dask.limits(workers=2), OnePerDevice() as made, distributed.Client(made) as client:
        client.wait_for_workers(2)
        for job in all_of(client, gpu_job.fill_whole_share):
            expect_exactly("a half", job, int(TOTAL * 0.48))


def command_line(folder):
    """`dask worker` with the configuration in a variable."""
    made = environment(folder) | {"DASK_RATION__LIMIT": "25%"}
    with surrounded(folder), cluster(0) as client:
        words = ["-m", "dask", "worker", "--preload-nanny", "ration_gpu.dask", "--nthreads", "1", "--local-directory", folder]
        with subprocess.Popen([sys.executable, *words, client.scheduler.address], env=made, stderr=subprocess.DEVNULL) as process:
            try:
                client.wait_for_workers(1)
                expect_exactly("a quarter", all_of(client, gpu_job.fill_whole_share)[0], TOTAL // 4)
            finally:
                process.terminate()


main({"unlike_shares": unlike_shares, "equal_shares": equal_shares, "for_the_program": for_the_program, "others": others,
      "too_much": too_much, "fails_closed": fails_closed, "other_clusters": other_clusters, "command_line": command_line,
      "readme": lambda folder: expect_readme("dask", folder)})
