// Traces of several kinds of programs; README.md describes each model.
// Layer: test shapes, over the trace of logs/replay. Threads: calls are independent.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "logs/replay/trace.h"

namespace ration::shapes {

// The whole trace for one seed. `length` scales the repetitions of the shape (steps, requests, frames).
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
// Null if there is no shape of that name.
const Shape *find(std::string_view name);
// `times` scaled by the length of the trace; at least 1.
std::uint64_t repeated(std::uint64_t times, double length);

}  // namespace ration::shapes
