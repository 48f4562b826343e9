#!/usr/bin/env python3
"""A server that keeps a buffer of each request that it could not answer: leaky.py [REQUESTS]. It is stopped, as servers
are, by a signal. An ordinary CUDA program with numba-cuda, which knows nothing of Ration. It compiles no kernel, so it
needs only a driver."""
import signal
import sys

import numpy
from numba import cuda

WEIGHTS = 128 << 20
REQUEST = 4 << 20
waiting = []


def answer(request):
    return request % 8 != 7


def serve_request(request):
    buffer = cuda.device_array(REQUEST, dtype=numpy.uint8)
    if not answer(request):
        waiting.append(buffer)  # the mistake: nobody takes it out again


def load_weights():
    return cuda.device_array(WEIGHTS, dtype=numpy.uint8)


def main():
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    weights = load_weights()
    for request in range(requests):
        serve_request(request)
    del weights
    print(f"leaky: served {requests} requests", flush=True)
    signal.raise_signal(signal.SIGTERM)


main()
