// Placement policies in their simplest correct form, for comparison on traces.
// Layer: test shapes (standard library only). Threads: a policy belongs to one replay.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace ration::shapes {

// Holes in address order; starts and sizes are counted in granules. Plain arrays, so that each policy sees all holes.
struct Holes {
  std::vector<std::uint64_t> start;
  std::vector<std::uint64_t> granules;
  std::vector<std::uint64_t> entered;  // a counter's value at the hole's last change
  [[nodiscard]] std::size_t size() const { return start.size(); }
};

enum class End { kLow, kHigh };

struct Choice {
  std::size_t hole;
  End end;  // of the hole
};

class Policy {
 public:
  Policy() = default;
  Policy(const Policy &) = delete;
  Policy &operator=(const Policy &) = delete;
  virtual ~Policy() = default;
  virtual std::optional<Choice> choose(const Holes &holes, std::uint64_t granules) = 0;
  // The start of the block for which choose() was called last.
  virtual void placed(std::uint64_t start);
  struct Freed {
    std::uint64_t start, granules;
    std::uint64_t lived;  // granules allocated during its lifetime
    std::uint64_t live;   // live granules now
  };
  virtual void freed(const Freed &block);
};

struct NamedPolicy {
  std::string_view name;
  std::unique_ptr<Policy> (*make)();
};
std::span<const NamedPolicy> policies();

}  // namespace ration::shapes
