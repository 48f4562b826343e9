#!/usr/bin/env python3
"""Three actors with unlike parts of one GPU, which each take all that they get: share.py [--alone | --limit SIZE | --plugin SIZE]"""
import argparse
import ctypes
import sys

import ray
import ration_gpu.ray

MIB = 1 << 20


@ray.remote
class Hungry:
    def eat(self):
        cuda = ctypes.CDLL("libcuda.so.1")
        context, block, free, total = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_size_t(), ctypes.c_size_t()
        cuda.cuInit(0)
        if cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) != 0:
            return "FAILED: no memory for a context"
        cuda.cuCtxSetCurrent(context)
        cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        taken = 0
        while cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(8 * MIB)) == 0:
            taken += 8
        return f"sees {total.value // MIB} MiB, got {taken} MiB"


parser = argparse.ArgumentParser()
parser.add_argument("--alone", action="store_true", help="without Ration")
parser.add_argument("--limit", help="by hand, for each actor")
parser.add_argument("--plugin", help="by hand, in the runtime_env's field `ration`")
asked = parser.parse_args()
try:
    runtime_env = {} if asked.alone else {"ration": asked.plugin} if asked.plugin else ration_gpu.ray.runtime_env(asked.limit)
except ValueError as error:
    sys.exit(str(error))
ray.init(num_gpus=1, num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR", runtime_env=runtime_env)
actors = {part: Hungry.options(num_gpus=part).remote() for part in (0.5, 0.25, 0.2)}
for part, actor in actors.items():
    print(f"num_gpus={part}:", ray.get(actor.eat.remote()))
