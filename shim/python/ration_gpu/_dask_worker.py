"""Dask imports this into a worker that ration_gpu.dask has started. RationError, and no worker, if it has no limit."""
from __future__ import annotations

import os

from . import RationError, _limits
from .dask import LIMITED, STATE

if os.environ.get(STATE) != LIMITED:
    raise RationError(f"this Dask worker would have no limit: {os.environ.get(STATE, 'its nanny set none')}")
_limits.require_preloaded("this Dask worker", "let its nanny start it by the multiprocessing method `spawn`, Dask's default")
