#!/usr/bin/env python3
"""ffmpeg sends frames to the device and takes them back: the same frames without a device, on one, and in every mode."""
from clients import MODES, limited, needs, run, same_in_every_mode
from harness import MIB, expect, expect_that, main

needs("ffmpeg", "ffmpeg")
FORMATS = ("yuv420p", "nv12", "p010le", "yuv444p", "bgr0")
FRAMES = 25


def command(layout, there="hwupload", back="hwdownload"):
    way = ",".join(step for step in (f"format={layout}", there, back, f"format={layout}") if step)
    return ["ffmpeg", "-nostdin", "-hide_banner", "-loglevel", "error", "-init_hw_device", "cuda", "-f", "lavfi", "-i",
            f"testsrc2=size=1280x720:rate=25:duration={FRAMES / 25}", "-vf", way, "-f", "framemd5", "-"]


def frames(out, err):
    expect("stderr", err, "")
    return [line.split(",")[-1].strip() for line in out.splitlines() if not line.startswith("#")]


def there_and_back(layout):
    def case(folder):
        wanted = frames(*run(command(layout, there="", back=""), folder, "2GiB"))
        expect("frames", len(wanted), FRAMES)
        calls = ["cuMemAlloc_v2"]
        expect("on the device", same_in_every_mode(command(layout), folder, of=frames, calls=calls), wanted)
    return case


def full(mode):
    def case(folder):
        refused = "CUDA_ERROR_OUT_OF_MEMORY"
        natively = run(command("yuv444p"), folder, "1MiB", status=None)[1]
        expect_that(f"a device of 1 MiB is full: {natively}", refused in natively)
        seen = run(command("yuv444p"), folder, "2GiB", status=None, **limited(mode, MIB))[1]
        expect_that(f"a limit of 1 MiB is full: {seen}", refused in seen)
    return case


main({f"frames of {layout}": there_and_back(layout) for layout in FORMATS}
     | {f"a limit below a frame in mode {mode}": full(mode) for mode in MODES})
