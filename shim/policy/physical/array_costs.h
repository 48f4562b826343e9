// Finds how much memory a CUDA array takes of its device, by the driver's figure (cuArrayGetMemoryRequirements, CUDA
// 11.6) or by a bound.
// Layer: policy/physical. Threads: any; driver calls outside the lock, with the context current. Owns: arrays of
// deferred mapping that were queried and are not destroyed yet.
//
// According to cuda.h, the driver gives figures only for arrays with deferred mapping, which take no memory. So one
// such array is created and queried once for each shape. Destroying an array waits for running work, so the queried one
// is destroyed just before the program destroys one. A driver that gives no figure for other arrays honours the flag
// for deferred mapping; a driver that gives figures for every array is asked about the program's own arrays.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/lock.h"
#include "driver/functions.h"
#include "policy/contexts/contexts.h"
#include "policy/physical/array_bytes.h"

namespace ration::policy {

struct ArrayShape {
  CUDA_ARRAY3D_DESCRIPTOR descriptor;
  unsigned levels = 1;
  bool mipmapped = false;

  std::uint64_t bound() const { return array_bytes(descriptor, levels); }
  std::uint64_t least() const { return least_array_bytes(descriptor, levels); }
};

// Design: design/charging.md#arrays
class ArrayCosts {
 public:
  using Key = std::array<std::uint64_t, 8>;

  // The cost of an array that does not exist yet. nullopt if the driver can only be asked about a real array or gives
  // no figure. Queries the driver at most once for each shape.
  std::optional<std::uint64_t> of(const Contexts::Current &where, const ArrayShape &shape) noexcept;
  // The cost of an array that was just created.
  std::optional<std::uint64_t> of(const Contexts::Current &where, const ArrayShape &shape, CUdeviceptr made) noexcept;

  // Whether the driver refuses an array with these extents no matter how much memory there is. Other requirements on
  // the shape are not checked. False if this cannot be found out without taking memory or waiting.
  bool is_impossible(const Contexts::Current &where, const ArrayShape &shape) noexcept;

  // Whether it is still unknown for which arrays this driver gives figures.
  bool is_to_learn() const noexcept;
  // Finds that out using an array of one element. REQUIRES: that array's bound, kProbeBytes, is reserved.
  void probe(const Contexts::Current &where) noexcept;
  static constexpr std::uint64_t kProbeBytes = 64U << 10U;

  bool keeps_any() const noexcept { return keeps_any_.load(std::memory_order_relaxed); }
  // Destroys the arrays that were queried in the context. REQUIRES: the context is current.
  void destroy_queried(const Context &context) noexcept;

 private:
  enum class Tells : unsigned char { unknown, none, deferred, all };
  static constexpr std::size_t kMostShapes = 1024;  // beyond that, shapes are queried again
  static constexpr std::size_t kMostQueried = 256;  // beyond that, an array is destroyed at once
  struct Queried {
    std::weak_ptr<Context> context;
    bool mipmapped;
    CUdeviceptr array;
    static void destroy(bool mipmapped, CUdeviceptr array) noexcept;
    // Whether the driver has destroyed the array with its context.
    bool is_gone() const;
  };

  // The driver's figure for `made`; nullopt and INVALID_VALUE if the driver gives no figure for such an array.
  static std::optional<std::uint64_t> ask(bool mipmapped, CUdeviceptr made, CUresult &error) noexcept;
  // The figure for a new array with deferred mapping; nullopt if the array could not be created or queried, with the
  // reason in `error`.
  std::optional<std::uint64_t> ask_deferred(const ContextRef &context, const ArrayShape &shape,
                                            CUresult &error) noexcept;
  // Whether one more array can be kept.
  bool has_place() noexcept;
  // Keeps an array to be destroyed later. Returns false if too many arrays are kept.
  bool keep(const ContextRef &context, bool mipmapped, CUdeviceptr array) noexcept;
  bool recall(const Key &key, std::optional<std::uint64_t> &bytes);
  void remember(const Key &key, std::optional<std::uint64_t> bytes) noexcept;

  std::atomic<Tells> tells_{Tells::unknown};
  RankedMutex mutex_{Rank::kArrayCosts};
  std::map<Key, std::optional<std::uint64_t>> known_ GUARDED_BY(mutex_);
  std::vector<Queried> queried_ GUARDED_BY(mutex_);
  std::atomic<bool> keeps_any_{false};
};

}  // namespace ration::policy
