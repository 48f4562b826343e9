#!/usr/bin/env python3
"""GStreamer's cudaupload and cudadownload: the same frames without a device, on one, and in every mode."""
import hashlib
import os
import pathlib

from clients import needs, run, same_in_every_mode
from harness import expect, expect_that, main

needs("gst-launch-1.0", "gstreamer1.0-tools")
VIDEO = os.environ["CLIENTS_VIDEO"]  # the folder of libnvcuvid.so.1
FORMATS = ("I420", "NV12", "P010_10LE", "Y444", "BGRA")
FRAMES = 25


def settings(folder):
    return {"more_libraries": (VIDEO,), "GST_REGISTRY": f"{folder}/registry", "GST_DEBUG": "none"}


def command(layout, target, device=True):
    caps = f"format={layout},width=1280,height=720,framerate=25/1"
    there = f"cudaupload ! video/x-raw(memory:CUDAMemory),{caps} ! cudadownload ! video/x-raw,{caps} !".split() if device else ()
    return ["gst-launch-1.0", "-q", "videotestsrc", f"num-buffers={FRAMES}", "pattern=smpte", "!", f"video/x-raw,{caps}", "!",
            *there, "filesink", f"location={target}"]


def elements(folder):
    """The nvcodec plugin offers its two elements for copies."""
    out, _ = run(["gst-inspect-1.0", "nvcodec"], folder, "2GiB", **settings(folder))
    for element in ("cudaupload", "cudadownload"):
        expect_that(f"{element} is offered: {out}", f"{element}:" in out)


def there_and_back(layout):
    def case(folder):
        target = pathlib.Path(folder) / "frames"

        def digest(_, err):
            expect("stderr", err, "")
            seen = hashlib.sha256(target.read_bytes()).hexdigest()
            target.unlink()
            return seen

        wanted = digest(*run(command(layout, target, device=False), folder, "2GiB", **settings(folder)))
        seen = same_in_every_mode(command(layout, target), folder, of=digest, calls=("cuMemAllocPitch_v2",), **settings(folder))
        expect("on the device", seen, wanted)
    return case


main({"elements": elements} | {f"frames of {layout}": there_and_back(layout) for layout in FORMATS})
