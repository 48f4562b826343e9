// What a CUDA array costs its device: what the driver says (cuArrayGetMemoryRequirements, CUDA 11.6), else a bound.
// Layer: policy. Threads: any; driver calls outside the lock, with the context current. Owns: nothing of the driver's.
//
// The driver tells of arrays of deferred mapping only, which take no memory (cuda.h). So once for each shape one like
// it is made with that flag, asked, and destroyed. That a driver honours the flag is taken from its refusal to tell of
// any other array; one that tells of every array is asked of the program's own, when that is there.
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

  // What is known without an array of the shape; nothing where the driver must be asked of a real one first, or has no
  // answer. Asks it at most once for each shape.
  std::optional<std::uint64_t> of(int device, const ArrayShape &shape) noexcept;
  // The same of one that was just made.
  std::optional<std::uint64_t> of(int device, const ArrayShape &shape, CUdeviceptr made) noexcept;

  // Whether the first array of this driver would tell how it is to be asked.
  bool is_to_learn() const noexcept;
  // Learns that by an array of one element. REQUIRES: its bound, kProbeBytes, is reserved.
  void probe() noexcept;
  static constexpr std::uint64_t kProbeBytes = 64U << 10U;

 private:
  enum class Tells : unsigned char { unknown, none, deferred, all };
  static constexpr std::size_t kMostShapes = 1024;  // a program that has more of them is asked for them again

  // What the driver says of `made`; nothing and INVALID_VALUE: not of such an array.
  static std::optional<std::uint64_t> ask(bool mipmapped, CUdeviceptr made, CUresult &error) noexcept;
  // nothing: it cannot be made, which `error` says.
  static std::optional<std::uint64_t> ask_deferred(const ArrayShape &shape, CUresult &error) noexcept;
  bool recall(const Key &key, std::optional<std::uint64_t> &bytes);
  void remember(const Key &key, std::optional<std::uint64_t> bytes) noexcept;

  std::atomic<Tells> tells_{Tells::unknown};
  RankedMutex mutex_{Rank::kArrayCosts};
  std::map<Key, std::optional<std::uint64_t>> known_ GUARDED_BY(mutex_);
};

}  // namespace ration::policy
