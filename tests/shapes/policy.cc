#include "shapes/policy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "pool/unit.h"

namespace ration::shapes {
namespace {

constexpr std::uint64_t kMiB = (std::uint64_t{1} << 20) / pool::kUnitBytes;  // in granules
constexpr unsigned kAll = std::numeric_limits<unsigned>::max();

// The tightest of the first `look` holes that fit, from one end; of equal ones the one nearest to that end.
std::optional<Choice> tightest(const Holes &holes, std::uint64_t granules, unsigned look, End from) {
  std::optional<Choice> best;
  for (std::size_t i = 0; i < holes.size() && look > 0; ++i) {
    const std::size_t hole = from == End::kLow ? i : holes.size() - 1 - i;
    if (holes.granules[hole] < granules) continue;
    --look;
    if (!best || holes.granules[hole] < holes.granules[best->hole]) best = Choice{hole, from};
  }
  return best;
}

// One rule for every size: `look` 1 is first fit (last fit from the high end), kAll is best fit.
template <unsigned kLook, End kFrom>
class OneEnded final : public Policy {
 public:
  std::optional<Choice> choose(const Holes &holes, std::uint64_t granules) override {
    return tightest(holes, granules, kLook, kFrom);
  }
};

// Two-level segregated fit: 32 steps an octave, each list with the latest entry first. With kLook 0 the search starts
// above the request's own bin, as in textbooks.
template <unsigned kLook>
class Segregated final : public Policy {
 public:
  std::optional<Choice> choose(const Holes &holes, std::uint64_t granules) override {
    const Bin own = bin_of(granules);
    if (const std::optional<Choice> found = in_bin(holes, granules, own, kLook)) return found;
    std::uint64_t above = 0;
    for (const std::uint64_t hole : holes.granules) {
      if (hole >= own.end && (above == 0 || hole < above)) above = hole;
    }
    if (above != 0) return in_bin(holes, granules, bin_of(above), std::max(kLook, 1U));
    return tightest(holes, granules, 1, End::kLow);
  }

 private:
  struct Bin {
    std::uint64_t begin, end;  // granules
  };
  static Bin bin_of(std::uint64_t granules) {
    const auto width = static_cast<unsigned>(std::bit_width(granules)) - 1;
    const std::uint64_t step = width < 5 ? 1 : std::uint64_t{1} << (width - 5);
    return {granules / step * step, granules / step * step + step};
  }
  static std::optional<Choice> in_bin(const Holes &holes, std::uint64_t granules, Bin bin, unsigned look) {
    std::vector<std::size_t> listed;
    for (std::size_t i = 0; i < holes.size(); ++i) {
      if (holes.granules[i] >= bin.begin && holes.granules[i] < bin.end) listed.push_back(i);
    }
    std::sort(listed.begin(), listed.end(),
              [&holes](std::size_t one, std::size_t other) { return holes.entered[one] > holes.entered[other]; });
    listed.resize(std::min<std::size_t>(listed.size(), look));
    std::optional<Choice> best;
    for (const std::size_t hole : listed) {
      if (holes.granules[hole] < granules) continue;
      if (!best || holes.granules[hole] < holes.granules[best->hole]) best = Choice{hole, End::kLow};
    }
    return best;
  }
};

// Large blocks by size at the low end, small ones by address at the high end.
template <std::uint64_t kLargeMiB, class Large>
class Split : public Policy {
 public:
  std::optional<Choice> choose(const Holes &holes, std::uint64_t granules) override {
    if (granules >= kLargeMiB * kMiB) return large_.choose(holes, granules);
    return tightest(holes, granules, 1, End::kHigh);
  }

 private:
  Large large_;
};

enum class Runs {
  kUnseen,
  kLow,    // large ones go to the tightest of the two lowest
  kTiled,  // large ones go to the lowest; long runs, from 2 MiB on, after the last block, then to the low hole with the
           // smallest remainder
};

// As Split at 8 MiB, with two observations. Blocks of one size, allocated in a row, are freed together, so they are
// placed by address. A size whose last freed block was short-lived goes to the high end: which blocks of a size are
// short-lived changes with the phases of a program, and the last one shows the phase.
template <Runs kRuns, bool kSeesLifetimes>
class Lifetimes final : public Policy {
 public:
  std::optional<Choice> choose(const Holes &holes, std::uint64_t granules) override {
    const bool repeats = granules == previous_;
    previous_ = granules;
    if (kSeesLifetimes && granules >= kLarge) {
      const Size &size = slot_of(granules);
      if (size.granules == granules && size.short_lived) return tightest(holes, granules, kShortLivedLook, End::kHigh);
    }
    const bool is_run = repeats && (kRuns == Runs::kLow || (kRuns == Runs::kTiled && is_live_));
    if (kRuns == Runs::kTiled && granules >= kLargeInRun) {
      if (!is_run && length_ > 1) last_length_ = length_;
      length_ = is_run ? length_ + 1 : 1;
      if (is_run && std::max(length_, last_length_) >= kLongRun) return continue_run(holes, granules);
    }
    if (granules < kLarge) return tightest(holes, granules, 1, End::kHigh);
    return tightest(holes, granules, is_run ? kRunLook : kAll, End::kLow);
  }
  void placed(std::uint64_t start) override {
    start_ = start;
    is_live_ = true;
  }
  void freed(const Freed &block) override {
    if (block.granules >= kLarge)
      slot_of(block.granules) = {block.granules, block.lived * kShortLivedShare < block.live};
    if (block.start == start_) is_live_ = false;
  }

 private:
  // After the last block; else the hole with the smallest remainder of the few lowest; the largest hole only if needed.
  [[nodiscard]] std::optional<Choice> continue_run(const Holes &holes, std::uint64_t granules) const {
    const auto after = std::lower_bound(holes.start.begin(), holes.start.end(), start_ + granules);
    const auto next = static_cast<std::size_t>(after - holes.start.begin());
    if (next < holes.size() && *after == start_ + granules && holes.granules[next] >= granules) {
      return Choice{next, End::kLow};
    }
    const auto largest = std::max_element(holes.granules.begin(), holes.granules.end());
    if (largest == holes.granules.end() || *largest < granules) return std::nullopt;
    Choice best{static_cast<std::size_t>(largest - holes.granules.begin()), End::kLow};
    auto best_rest = static_cast<std::int64_t>(granules);
    unsigned left = kTileLook;
    for (std::size_t hole = 0; hole < holes.size() && left > 0; ++hole) {
      if (holes.granules[hole] < granules || holes.granules[hole] == *largest) continue;
      --left;
      const std::uint64_t size = holes.granules[hole];
      const std::int64_t rest =
          static_cast<std::int64_t>(size % granules) - static_cast<std::int64_t>(size / kTolerance);
      if (rest >= best_rest) continue;
      best.hole = hole;
      best_rest = rest;
    }
    return best;
  }

  static constexpr std::uint64_t kLarge = 8 * kMiB;
  static constexpr std::uint64_t kLargeInRun = 2 * kMiB;
  static constexpr unsigned kRunLook = kRuns == Runs::kTiled ? 1 : 2;
  static constexpr unsigned kTileLook = 16;
  static constexpr unsigned kLongRun = 16;
  static constexpr std::uint64_t kTolerance = 64;
  static constexpr unsigned kShortLivedLook = 4;
  static constexpr std::uint64_t kShortLivedShare = 16;
  static constexpr unsigned kSlotBits = 8;
  struct Size {
    std::uint64_t granules = 0;
    bool short_lived = false;
  };
  Size &slot_of(std::uint64_t granules) { return sizes_[granules * 0x9e3779b97f4a7c15U >> (64 - kSlotBits)]; }

  std::array<Size, std::size_t{1} << kSlotBits> sizes_{};
  std::uint64_t previous_ = 0;  // request
  std::uint64_t start_ = 0;     // of its block
  bool is_live_ = false;        // that block
  unsigned length_ = 1;         // of the run
  unsigned last_length_ = 1;    // of the one before
};

template <class Kind>
std::unique_ptr<Policy> make() {
  return std::make_unique<Kind>();
}

using BestFit = OneEnded<kAll, End::kLow>;
using SplitAt32 = Split<32, Segregated<8>>;

constexpr std::array<NamedPolicy, 16> kPolicies{{
    {"split 32 MiB", make<SplitAt32>},
    {"best fit", make<BestFit>},
    {"first fit", make<OneEnded<1, End::kLow>>},
    {"last fit", make<OneEnded<1, End::kHigh>>},
    {"tightest of 4 lowest", make<OneEnded<4, End::kLow>>},
    {"segregated", make<Segregated<0>>},
    {"segregated, own bin", make<Segregated<8>>},
    {"split 64 MiB", make<Split<64, Segregated<8>>>},
    {"split 16 MiB", make<Split<16, Segregated<8>>>},
    {"split 8 MiB", make<Split<8, Segregated<8>>>},
    {"split 8 MiB, best fit", make<Split<8, BestFit>>},
    {"8 MiB, runs low", make<Lifetimes<Runs::kLow, false>>},
    {"8 MiB, lifetimes", make<Lifetimes<Runs::kUnseen, true>>},
    {"8 MiB, runs low and lifetimes", make<Lifetimes<Runs::kLow, true>>},
    {"8 MiB, runs", make<Lifetimes<Runs::kTiled, false>>},
    {"8 MiB, runs and lifetimes", make<Lifetimes<Runs::kTiled, true>>},  // the pool's own policy
}};

}  // namespace

void Policy::placed(std::uint64_t) {}

void Policy::freed(const Freed &) {}

std::span<const NamedPolicy> policies() {
  return kPolicies;
}

}  // namespace ration::shapes
