// The version of CUDA that the simulated driver and its libnvidia-ml.so.1 report. Layer: none.
#pragma once

namespace simcuda {
inline constexpr int kDriverVersion = 13050;
}  // namespace simcuda
