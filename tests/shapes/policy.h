// Where a block could go: placement policies in the simplest form that is surely right, for comparison on traces.
// Layer: test shapes (standard library only). Threads: a policy belongs to one replay.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace ration::shapes {

// In address order, in granules, as plain arrays: every policy may look at all of them.
struct Holes {
  std::vector<std::uint64_t> start;
  std::vector<std::uint64_t> granules;
  std::vector<std::uint64_t> entered;  // counts up with every change of any hole
  [[nodiscard]] std::size_t size() const { return start.size(); }
};

enum class End { kLow, kHigh };

struct Choice {
  std::size_t hole;
  End end;  // of the hole, where the block goes
};

class Policy {
 public:
  Policy() = default;
  Policy(const Policy &) = delete;
  Policy &operator=(const Policy &) = delete;
  virtual ~Policy() = default;
  virtual std::optional<Choice> choose(const Holes &holes, std::uint64_t granules) = 0;
  // Where the block starts for which a hole was chosen last.
  virtual void placed(std::uint64_t start);
  struct Freed {
    std::uint64_t start, granules;
    std::uint64_t lived;  // granules that were allocated in all between its birth and now
    std::uint64_t live;   // granules, now
  };
  virtual void freed(const Freed &block);
};

struct NamedPolicy {
  std::string_view name;
  std::unique_ptr<Policy> (*make)();
};
std::span<const NamedPolicy> policies();

}  // namespace ration::shapes
