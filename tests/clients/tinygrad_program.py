"""Tensors on tinygrad's CUDA device: tinygrad_program.py [fill]. It launches no kernel: that would need NVRTC."""
import sys

import numpy
from tinygrad import Device, Tensor

MIB = 1 << 20
SIZES = (1, 511, 4096, MIB + 1, 12 * MIB)


def tensor(size, start):
    values = (numpy.arange(size, dtype=numpy.uint32) * 2654435761 + start >> 13).astype(numpy.uint8)
    return values, Tensor(values, device="CUDA").realize()


def there_and_back():
    wrong = total = 0
    for turn in range(2):
        made = [tensor(size, turn) for size in SIZES]
        for values, there in made:
            total += 1
            wrong += not (there.numpy() == values).all()
    print(f"{wrong} of {total} differ")


def fill():
    values = numpy.zeros(4 * MIB, dtype=numpy.uint8)
    kept = []
    try:
        while True:
            kept.append(Tensor(values, device="CUDA").realize())
    except MemoryError as full:
        print(f"{len(kept)} tensors, then {full.__cause__}")


if sys.argv[1:] == ["fill"]:
    fill()
    fill()
else:
    there_and_back()
Device["CUDA"].synchronize()
Device["CUDA"].allocator.free_cache()  # tinygrad keeps what is freed
