#include "logs/history/growth.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/saturating.h"

namespace ration::logs {
namespace {

constexpr std::size_t kSamples = 128;  // the most samples
constexpr std::size_t kParts = 9;
constexpr std::size_t kLeastSamples = 2 * kParts;
constexpr std::size_t kEighths = 8;
constexpr std::size_t kLatestEighth = 5;  // the latest of the three starting points: 1, 3 or 5 eighths
constexpr std::size_t kStep = 2;
constexpr std::size_t kEnding = 16;   // one sixteenth
constexpr int kRisesAtLeast = 7;      // of eight steps
constexpr std::uint64_t kShare = 20;  // one twentieth
constexpr std::uint64_t kMuch = std::uint64_t{1} << 20;
constexpr std::size_t kPartsBefore = 6;
constexpr std::uint64_t kAllocsOfAFree = 16;
constexpr std::uint64_t kShortEnd = 1'000'000'000;  // ending an interpreter may take as long as its program ran

using Run = std::span<const Stretch>;

std::uint64_t least_of(Run part) {
  const auto least =
      std::min_element(part.begin(), part.end(), [](const Stretch &a, const Stretch &b) { return a.least < b.least; });
  return least->least;
}

std::optional<Rise> rise_through(Run run) {
  std::array<std::uint64_t, kParts> least{};
  for (std::size_t part = 0; part < kParts; ++part) {
    const std::size_t begin = part * run.size() / kParts;
    least[part] = least_of(run.subspan(begin, (part + 1) * run.size() / kParts - begin));
  }
  int rises = 0;
  for (std::size_t part = 1; part < kParts; ++part) {
    if (least[part] < least[part - 1]) {
      return std::nullopt;
    }
    rises += least[part] > least[part - 1] ? 1 : 0;
  }
  const Rise rise{least.front(), least.back()};
  const bool is_still_rising = least[kParts - 1] > least[kParts - 2];
  return rises >= kRisesAtLeast && is_still_rising && rise.to - rise.from >= std::min(rise.to / kShare, kMuch)
             ? std::optional(rise)
             : std::nullopt;
}

// True if the level was not above `level` in any of the preceding parts of that length.
bool was_below(Run before, std::size_t part, std::uint64_t level) {
  for (std::size_t i = 1; i <= kPartsBefore && i * part <= before.size(); ++i) {
    if (least_of(before.subspan(before.size() - i * part, part)) > level) {
      return false;
    }
  }
  return true;
}

bool is_work(Run run) {
  std::uint64_t allocs = 0;
  std::uint64_t frees = 0;
  for (const Stretch &each : run) {
    allocs += each.allocs;
    frees += each.frees;
  }
  return frees >= allocs / kAllocsOfAFree;
}

// The rise from the stretch `begin` on, if there is one.
std::optional<Rise> rise_since(std::size_t begin, Run run, std::uint64_t quiet_ns) {
  const Run late = run.subspan(begin);
  if (late.size() < kLeastSamples || !is_work(late)) {
    return std::nullopt;
  }
  const std::optional<Rise> rise = rise_through(late);
  if (!rise || !was_below(run.first(begin), late.size() / kParts, rise->from + (rise->to - rise->from) / 2)) {
    return std::nullopt;
  }
  const auto lower =
      std::find_if(late.rbegin(), late.rend(), [&](const Stretch &each) { return each.least < rise->to; });
  return lower.base() != late.end() && lower.base()->begun_ns >= quiet_ns ? rise : std::nullopt;
}

// The first stretch after this many eighths of the time.
std::size_t after_eighths_of_time(std::size_t eighths, Run run) {
  const std::uint64_t span = run.back().begun_ns - run.front().begun_ns;
  const std::uint64_t ts_ns = run.front().begun_ns + span / kEighths * eighths;
  const auto found = std::find_if(run.begin(), run.end(), [&](const Stretch &each) { return each.begun_ns >= ts_ns; });
  return static_cast<std::size_t>(found - run.begin());
}

}  // namespace

std::optional<Rise> rise_of(std::span<const Stretch> run, std::uint64_t quiet_ns) {
  for (const Run looked_at : {run, run.first(run.size() - run.size() / kEnding)}) {
    for (std::size_t eighths = 1; eighths <= kLatestEighth && looked_at.size() >= kLeastSamples; eighths += kStep) {
      for (const std::size_t begin :
           {looked_at.size() * eighths / kEighths, after_eighths_of_time(eighths, looked_at)}) {
        if (const auto rise = rise_since(begin, looked_at, quiet_ns)) {
          return rise;
        }
      }
    }
  }
  return std::nullopt;
}

void Work::Clock::tick(std::uint64_t ts_ns, std::uint64_t allocs) {
  ++count;
  if (count / stride >= kSamples) {
    for (std::size_t i = 0; 2 * i < moments.size(); ++i) {
      moments[i] = moments[2 * i];
    }
    moments.resize((moments.size() + 1) / 2);
    stride *= 2;
  }
  if (count / stride >= moments.size()) {
    moments.push_back({ts_ns, allocs});
  }
}

void Work::alloc(std::uint64_t ts_ns) {
  if (allocs_.count == 0) {
    first_alloc_ns_ = ts_ns;
    allocs_.moments.push_back({ts_ns, 0});
    frees_.moments.push_back({ts_ns, 0});
  }
  last_alloc_ns_ = ts_ns;
  frees_at_last_alloc_ = frees_.count;
  allocs_.tick(ts_ns, allocs_.count + 1);
}

void Work::free(std::uint64_t ts_ns) {
  frees_.tick(ts_ns, allocs_.count);
}

bool Work::is_counted_in_allocs() const {
  return frees_at_last_alloc_ < kLeastSamples && frees_at_last_alloc_ < allocs_.count / kAllocsOfAFree;
}

std::vector<Stretch> Work::stretches() const {
  const bool by_allocs = is_counted_in_allocs();
  const Clock &clock = by_allocs ? allocs_ : frees_;
  std::vector<Stretch> all((by_allocs ? allocs_.count : frees_at_last_alloc_) / clock.stride);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::uint64_t allocs_after = i + 1 < clock.moments.size() ? clock.moments[i + 1].allocs : allocs_.count;
    all[i] = {0, clock.moments[i].ts_ns, by_allocs ? clock.stride : allocs_after - clock.moments[i].allocs,
              clock.stride};
  }
  return all;
}

std::uint64_t Work::quiet_ns(std::uint64_t end_ns) const {
  const auto half_to = [this](std::uint64_t ts_ns) {
    return first_alloc_ns_ + minus_or_zero(ts_ns, first_alloc_ns_) / 2;
  };
  return std::max(half_to(last_alloc_ns_), std::min(half_to(end_ns), minus_or_zero(end_ns, kShortEnd)));
}

void Levels::Samples::note(std::uint64_t count, std::uint64_t held) {
  if (!least.empty()) {
    least.back() = std::min(least.back(), held);
  }
  while (count / stride >= kSamples) {
    for (std::size_t i = 0; 2 * i < least.size(); ++i) {
      least[i] = 2 * i + 1 < least.size() ? std::min(least[2 * i], least[2 * i + 1]) : least[2 * i];
    }
    least.resize((least.size() + 1) / 2);
    stride *= 2;
  }
  if (least.size() <= count / stride) {
    least.resize(count / stride + 1, held);
  }
}

void Levels::note(const Work &work, std::uint64_t held) {
  by_allocs_.note(work.allocs(), held);
  by_frees_.note(work.frees(), held);
}

std::optional<Rise> Levels::rise(const Work &work, std::uint64_t quiet_ns) const {
  std::vector<Stretch> run = work.stretches();
  const std::vector<std::uint64_t> &least = (work.is_counted_in_allocs() ? by_allocs_ : by_frees_).least;
  for (std::size_t i = 0; i < run.size(); ++i) {
    run[i].least = least[i];
  }
  return rise_of(run, quiet_ns);
}

}  // namespace ration::logs
