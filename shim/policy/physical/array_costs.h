// What a CUDA array costs its device: the driver's figure (cuArrayGetMemoryRequirements, CUDA 11.6), else a bound.
// Layer: policy/physical. Threads: any; driver calls outside the lock, with the context current. Owns: no driver
// object.
//
// The driver answers only for arrays of deferred mapping, which take no memory (cuda.h). So for each shape one such
// array is created, queried and destroyed, once. A driver that refuses to answer for any other array honours that flag;
// one that answers for every array is asked about the program's own.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <optional>

#include "base/lock.h"
#include "driver/functions.h"
#include "policy/physical/array_bytes.h"

namespace ration::policy {

struct ArrayShape {
  CUDA_ARRAY3D_DESCRIPTOR descriptor;
  unsigned levels = 1;
  bool mipmapped = false;

  std::uint64_t bound() const { return array_bytes(descriptor, levels); }
};

class ArrayCosts {
 public:
  using Key = std::array<std::uint64_t, 8>;

  // The cost before an array of the shape exists; nothing where the driver must be asked about a real one first, or has
  // no answer. Queries the driver at most once for each shape.
  std::optional<std::uint64_t> of(int device, const ArrayShape &shape) noexcept;
  // The same for an array that was just created.
  std::optional<std::uint64_t> of(int device, const ArrayShape &shape, CUdeviceptr made) noexcept;

  // Whether it is still unknown for which arrays this driver answers.
  bool is_to_learn() const noexcept;
  // Finds that out with an array of one element. REQUIRES: its bound, kProbeBytes, is reserved.
  void probe() noexcept;
  static constexpr std::uint64_t kProbeBytes = 64U << 10U;

 private:
  enum class Tells : unsigned char { unknown, none, deferred, all };
  static constexpr std::size_t kMostShapes = 1024;  // beyond that, shapes are queried again

  // The driver's figure for `made`; nothing and INVALID_VALUE: it does not answer for such an array.
  static std::optional<std::uint64_t> ask(bool mipmapped, CUdeviceptr made, CUresult &error) noexcept;
  // Nothing: it cannot be created, for the reason in `error`.
  static std::optional<std::uint64_t> ask_deferred(const ArrayShape &shape, CUresult &error) noexcept;
  bool recall(const Key &key, std::optional<std::uint64_t> &bytes);
  void remember(const Key &key, std::optional<std::uint64_t> bytes) noexcept;

  std::atomic<Tells> tells_{Tells::unknown};
  RankedMutex mutex_{Rank::kArrayCosts};
  std::map<Key, std::optional<std::uint64_t>> known_ GUARDED_BY(mutex_);
};

}  // namespace ration::policy
