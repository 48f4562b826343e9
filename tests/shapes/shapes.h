// What programs of several kinds allocate and free, as traces; README.md says what each models.
// Layer: test shapes, over pool/replay's trace. Threads: every call stands alone.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "pool/replay/trace.h"

namespace ration::shapes {

// The whole trace of one seed. `length` shortens or lengthens what the shape repeats (steps, requests, frames).
using Generate = pool::replay::Trace (*)(std::uint64_t seed, double length);

pool::replay::Trace train(std::uint64_t seed, double length);
pool::replay::Trace serve(std::uint64_t seed, double length);
pool::replay::Trace steady1k(std::uint64_t seed, double length);
pool::replay::Trace steady10k(std::uint64_t seed, double length);
pool::replay::Trace experts(std::uint64_t seed, double length);
pool::replay::Trace diffusion(std::uint64_t seed, double length);
pool::replay::Trace graph(std::uint64_t seed, double length);
pool::replay::Trace rays(std::uint64_t seed, double length);

struct Shape {
  std::string_view name;
  Generate generate;
};
std::span<const Shape> all();
// Null when there is no shape of that name.
const Shape *find(std::string_view name);
// How often something happens that happens `times` in a trace of length 1; at least once.
std::uint64_t repeated(std::uint64_t times, double length);

}  // namespace ration::shapes
