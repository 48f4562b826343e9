// Random commands against a pool that grows under a budget, gives back, and reclaims what its upstream finds clean,
// beside the trivially correct model; invariants checked after every step.
#include <rapidcheck.h>

#include <deque>
#include <ostream>
#include <vector>

#include "catch.h"
#include "pool/shared_pool.h"
#include "pool_model.h"

using namespace ration::pool;

namespace {

constexpr Address kBase = 0x7f0000000000;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

struct Command {
  enum class Kind { kAllocate, kFree, kRetire, kReclaim, kGiveBack, kBecomeClean };
  Kind kind;
  std::uint64_t number;  // a size, or which block, or how many
};

std::ostream &operator<<(std::ostream &out, const Command &command) {
  return out << '{' << static_cast<int>(command.kind) << ", " << command.number << '}';
}

// Keeps the budget and the quarantine, and tells the model of all that it does.
class Supply final : public Upstream {
 public:
  Supply(SharedPool &pool, PoolModel &model, std::uint64_t budget) : pool_(pool), model_(model), budget_(budget) {}

  bool collect() noexcept override {
    const std::size_t before = quarantine_.size();
    for (; clean_ != 0 && !quarantine_.empty(); --clean_) reclaim_oldest();
    return quarantine_.size() != before;
  }
  std::optional<Slab> grow(std::uint64_t minimum_bytes) noexcept override {
    if (minimum_bytes > budget_) (void)pool_.give_back(*this);
    if (minimum_bytes > budget_) return std::nullopt;
    const std::uint64_t bytes = std::min(budget_, minimum_bytes + minimum_bytes % 7 * kMiB);
    budget_ -= bytes;
    ++slabs_;
    const Slab slab{kBase + slabs_ * kMaximumBytes / 1024 + slabs_ % 3 * 300, bytes, slabs_};
    (void)model_.seen_slab(slab);
    return slab;
  }
  void shrink(const Slab &slab) noexcept override {
    if (model_.occupied_in(slab)) wrong_ = "gave back a slab that is in use";
    if (model_.slabs().count(slab.address) == 0) wrong_ = "gave back what was no slab";
    model_.lose_slab(slab.id);
    budget_ += slab.bytes;
  }
  bool wait() noexcept override {
    if (quarantine_.empty()) return false;
    reclaim_oldest();
    return true;
  }

  void retired(Address address) { quarantine_.push_back(address); }
  void become_clean(std::size_t blocks) { clean_ = std::min(clean_ + blocks, quarantine_.size()); }
  void reclaim_oldest() {
    const Address address = quarantine_.front();
    quarantine_.pop_front();
    if (std::string wrong = model_.seen_reclaim(address, pool_.reclaim(address)); !wrong.empty()) wrong_ = wrong;
  }
  [[nodiscard]] std::uint64_t budget() const { return budget_; }
  [[nodiscard]] bool holds_any() const { return !quarantine_.empty(); }
  [[nodiscard]] const std::string &wrong() const { return wrong_; }

 private:
  SharedPool &pool_;
  PoolModel &model_;
  std::uint64_t budget_;
  std::uint64_t slabs_ = 0;
  std::deque<Address> quarantine_;
  std::size_t clean_ = 0;
  std::string wrong_;
};

std::string obey(const Command &command, SharedPool &pool, PoolModel &model, Supply &supply) {
  using Kind = Command::Kind;
  if (command.kind == Kind::kAllocate) {
    const std::uint64_t bytes = command.number;
    const AllocateOutcome outcome = pool.allocate(bytes, supply);
    if (!outcome && bytes <= SharedPool::kMostBytes) {
      if (supply.holds_any()) return "refused before everything was clean";
      if (Pool::slab_bytes_for(bytes) <= supply.budget()) return "refused although the pool could have grown";
    }
    return model.seen_allocate(bytes, outcome);
  }
  if (command.kind == Kind::kGiveBack) {
    (void)pool.give_back(supply);
    for (const auto &[address, slab] : model.slabs()) {
      if (!model.occupied_in(slab)) return "kept a slab that is wholly free";
    }
    return "";
  }
  if (command.kind == Kind::kBecomeClean) return supply.become_clean(command.number % 50), "";
  if (command.kind == Kind::kReclaim) {
    if (supply.holds_any()) supply.reclaim_oldest();
    return "";
  }
  if (model.live().empty()) return "";
  const Address address =
      std::next(model.live().begin(), static_cast<std::ptrdiff_t>(command.number % model.live().size()))->first;
  if (command.kind == Kind::kFree) return model.seen_free(address, pool.free(address));
  supply.retired(address);
  return model.seen_retire(address, pool.retire(address));
}

rc::Gen<Command> any_command() {
  using Kind = Command::Kind;
  const auto with = [](Kind kind, const rc::Gen<std::uint64_t> &number) {
    return rc::gen::map(number, [kind](std::uint64_t value) { return Command{kind, value}; });
  };
  const auto any = rc::gen::resize(100, rc::gen::arbitrary<std::uint64_t>());
  const auto size = rc::gen::weightedOneOf<std::uint64_t>(
      {{8, rc::gen::inRange<std::uint64_t>(0, kMiB)},
       {4, rc::gen::element<std::uint64_t>(512, 65536, 2 * kMiB, 33 * kMiB, 40 * kMiB)},
       {1, rc::gen::element<std::uint64_t>(200 * kMiB, ~std::uint64_t{0}, kMaximumBytes, SharedPool::kMostBytes)}});
  return rc::gen::weightedOneOf<Command>({{60, with(Kind::kAllocate, size)},
                                          {8, with(Kind::kFree, any)},
                                          {40, with(Kind::kRetire, any)},
                                          {3, with(Kind::kReclaim, any)},
                                          {1, with(Kind::kGiveBack, any)},
                                          {4, with(Kind::kBecomeClean, any)}});
}

}  // namespace

TEST_CASE("a pool that grows, gives back and reclaims answers as the model does") {
  CHECK(rc::check("nobody is refused while there is memory to be had", [] {
    const auto count = static_cast<std::size_t>(*rc::gen::inRange(0, 2000));
    const auto commands = *rc::gen::container<std::vector<Command>>(count, any_command());
    SharedPool pool;
    PoolModel model;
    Supply supply(pool, model, 128 * kMiB);
    for (const Command &command : commands) {
      std::string wrong = obey(command, pool, model, supply);
      if (wrong.empty()) wrong = supply.wrong();
      if (wrong.empty()) wrong = pool.check_invariants();
      if (wrong.empty()) wrong = model.seen_statistics(pool.statistics());
      if (!wrong.empty()) RC_FAIL(wrong);
    }
  }));
}
