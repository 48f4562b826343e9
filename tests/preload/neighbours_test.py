#!/usr/bin/env python3
"""Neighbours in the process: programs without CUDA, callers whose identity matters, other preloads that interpose dlsym."""
import os
import re
import subprocess

from harness import LIBRARIES, PROGRAMS, SANITIZED, clean_environment, expect, expect_that, main, run

LIMITED = {"RATION_LIMIT": "1GiB"}


def holds(done):
    expect_that(f"status {done.status}: {done.out} {done.err}", done.status == 0)
    expect_that(f"no sum: {done.out!r}", re.search(r"^covered: (\d+) of \1$", done.out, re.MULTILINE))


def without_cuda(folder):
    """A process that never uses CUDA loads no driver, never maps the core and writes no log."""
    done = run("without_cuda", folder=folder, LD_LIBRARY_PATH=PROGRAMS, **LIMITED)
    holds(done)
    expect("stderr", done.err, "")


def true(folder):
    environment = clean_environment() | {"LD_PRELOAD": LIBRARIES, "RATION_LOG": f"{folder}/run.jsonl", **LIMITED}
    done = subprocess.run(["cat", "/proc/self/maps"], env=environment, capture_output=True, text=True, check=True)
    expect_that("the preload library is mapped", "libration.so" in done.stdout)
    expect_that("the core is mapped", "libration-core.so" not in done.stdout)
    expect("files", os.listdir(folder), [])


def errors(sim):
    def case(folder):
        holds(run("errors", preload=None, sim=sim))
        done = run("errors", sim=sim, **LIMITED)
        holds(done)
        expect("stderr", done.err, "")
    return case


def chain(level):
    def case(folder):
        plain = run(f"next_who_O{level}", preload=None)
        expect("without Ration", plain.out, "linked BC next BC\n")
        expect("with Ration", run(f"next_who_O{level}", **LIMITED).out, plain.out)
    return case


def origin(folder):
    plain = run("origin", preload=None)
    expect("without Ration", plain.out, "beside found\n")
    expect("with Ration", run("origin", **LIMITED).out, plain.out)


def interposer(library, order, is_used=True):
    """`is_used`: Ration's own look-ups go through the interposer."""
    def case(folder):
        ours, theirs = LIBRARIES, str(PROGRAMS / library)
        first, _, last = LIBRARIES.rpartition(":")
        between = f"{first}:{theirs}:{last}" if first else f"{theirs}:{last}"
        for how in ("dlsym", "dlsym_by_dlvsym_next_newest", "dlsym_by_dlsym_libc"):
            preload = between if order == "before" else f"{ours}:{theirs}"
            # The interposer wraps the call of which slabs are made.
            done = run("looked_up", "soname", how, folder=folder, preload=preload, RATION_BACKING="slab", **LIMITED)
            expect_that(f"{how}: status {done.status}: {done.out} {done.err}",
                        "blocks=10 code=2 null=1" in done.out)
            if how == "dlsym" and is_used:
                expect_that(f"{how}: it is not in the chain: {done.out}", re.search(r"interposed=[1-9]", done.out))
    return case


def direct_link(folder):
    for library in ("libinterposer.so", "libinterposer_wraps.so"):
        done = run("linked_lazy", preload=f"{LIBRARIES}:{PROGRAMS / library}", **LIMITED)
        expect("stdout", done.out, "blocks=10 code=2 null=1\n")


CASES = {
    "a program without CUDA": without_cuda,
    "a program that never heard of CUDA": true,
    "dlerror()": errors("sim"),
    "dlerror(), a driver that lacks much": errors("sim_small"),
    "dlerror(), a driver that lacks nearly everything": errors("sim_bare"),
    "RTLD_NEXT, -O0": chain(0),
    "RTLD_NEXT, -O2": chain(2),
    "$ORIGIN of the caller": origin,
    "an interposer of dlsym before us": interposer("libinterposer.so", "before"),
    "an interposer of dlsym after us": interposer("libinterposer.so", "after"),
    "an interposer that wraps cuMemAlloc_v2 before us": interposer("libinterposer_wraps.so", "before"),
    "an interposer that wraps cuMemAlloc_v2 after us": interposer("libinterposer_wraps.so", "after"),
    "an interposer that asks libc before us": interposer("libinterposer_asks_libc.so", "before"),
    "an interposer that asks libc after us": interposer("libinterposer_asks_libc.so", "after"),
    "an interposer and a direct link": direct_link,
}
if SANITIZED:
    # A sanitizer's runtime interposes dlopen itself: it loses the caller, and serves no call before
    # its own start.
    for name in ("$ORIGIN of the caller", "an interposer that asks libc before us", "an interposer that asks libc after us"):
        del CASES[name]
main(CASES)
