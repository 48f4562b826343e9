// Random histories of one account, compared with a plain sum. RC_PARAMS="seed=N" repeats a run.
#include <rapidcheck.h>

#include <algorithm>
#include <vector>

#include "catch.h"
#include "ledger/ledger.h"

using namespace ration::ledger;

namespace {

__extension__ typedef unsigned __int128 Wide;

// Near the limit, near zero and near the largest values, where a wrong comparison shows.
rc::Gen<std::uint64_t> amounts() {
  const auto below = [](std::uint64_t most) {
    return rc::gen::map(rc::gen::inRange<std::uint64_t>(0, 2000), [=](std::uint64_t less) { return most - less; });
  };
  return rc::gen::oneOf(rc::gen::inRange<std::uint64_t>(0, 2000), rc::gen::arbitrary<std::uint64_t>(),
                        below(UINT64_MAX), below(kMostHeld), below(kMostHeld + 1000));
}

struct Model {
  std::vector<std::uint64_t> held;
  Wide limit = kMostHeld;

  Wide sum() const {
    Wide all = 0;
    for (const std::uint64_t bytes : held) {
      all += bytes;
    }
    return all;
  }
};

void step(Account &account, Model &model) {
  const std::uint64_t amount = *amounts();
  const auto index = model.held.empty() ? 0 : *rc::gen::inRange<std::size_t>(0, model.held.size());
  switch (*rc::gen::inRange(0, 5)) {
    case 0:
      account.set_limit(amount);
      model.limit = std::min(amount, kMostHeld);
      break;
    case 1:
      if (!model.held.empty()) {
        account.release(model.held[index]);
        model.held.erase(model.held.begin() + static_cast<std::ptrdiff_t>(index));
      }
      break;
    case 2:
      if (!model.held.empty() && amount <= model.held[index]) {
        account.commit(model.held[index], amount);
        model.held[index] = amount;
      }
      break;
    case 3:
      if (model.sum() + amount <= UINT64_MAX) {
        account.charge(amount);
        model.held.push_back(amount);
      }
      break;
    default: {
      const bool fits = model.sum() + amount <= model.limit;
      RC_ASSERT((account.reserve(amount) == ReserveOutcome::granted) == fits);
      if (fits) {
        model.held.push_back(amount);
      }
    }
  }
}

}  // namespace

TEST_CASE("an account agrees with the sum of what is held after any history") {
  CHECK(rc::check("account against model", [] {
    Account account;
    Model model;
    const int steps = *rc::gen::inRange(1, 200);
    for (int i = 0; i < steps; ++i) {
      step(account, model);
      RC_ASSERT(account.charged() == static_cast<std::uint64_t>(model.sum()));
      const Wide left = model.sum() < model.limit ? model.limit - model.sum() : 0;
      RC_ASSERT(account.available() == static_cast<std::uint64_t>(left));
    }
  }));
}
