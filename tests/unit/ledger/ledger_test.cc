#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "catch.h"
#include "ledger/ledger.h"

using namespace ration::ledger;

TEST_CASE("an account without a limit grants everything that a member can hold") {
  Account account;
  CHECK(account.limit() == UINT64_MAX);
  CHECK(account.available() == kMostHeld);
  CHECK(account.reserve(kMostHeld + 1) == ReserveOutcome::over_limit);
  CHECK(account.reserve(UINT64_MAX) == ReserveOutcome::over_limit);
  CHECK(account.reserve(kMostHeld) == ReserveOutcome::granted);
  CHECK(account.reserve(1) == ReserveOutcome::over_limit);
  CHECK(account.charged() == kMostHeld);
}

TEST_CASE("the last byte of a limit is granted and the next one refused") {
  Account account;
  account.set_limit(100);
  CHECK(account.reserve(99) == ReserveOutcome::granted);
  CHECK(account.available() == 1);
  CHECK(account.reserve(2) == ReserveOutcome::over_limit);
  CHECK(account.charged() == 99);
  CHECK(account.reserve(1) == ReserveOutcome::granted);
  CHECK(account.reserve(1) == ReserveOutcome::over_limit);
  CHECK(account.reserve(0) == ReserveOutcome::granted);
  CHECK(account.available() == 0);
}

TEST_CASE("a request that would wrap around is refused") {
  Account account;
  account.set_limit(1000);
  REQUIRE(account.reserve(600) == ReserveOutcome::granted);
  CHECK(account.reserve(UINT64_MAX) == ReserveOutcome::over_limit);
  CHECK(account.reserve(UINT64_MAX - 599) == ReserveOutcome::over_limit);
  CHECK(account.charged() == 600);
}

TEST_CASE("committing less than was reserved releases the rest") {
  Account account;
  account.set_limit(1000);
  REQUIRE(account.reserve(800) == ReserveOutcome::granted);
  account.commit(800, 300);
  CHECK(account.charged() == 300);
  CHECK(account.available() == 700);
  account.commit(300, 300);
  CHECK(account.charged() == 300);
  account.release(300);
  CHECK(account.charged() == 0);
}

TEST_CASE("a limit lowered below what is held refuses until enough is released") {
  Account account;
  account.set_limit(1000);
  REQUIRE(account.reserve(900) == ReserveOutcome::granted);
  account.set_limit(500);
  CHECK(account.available() == 0);
  CHECK(account.reserve(0) == ReserveOutcome::over_limit);
  CHECK(account.reserve(1) == ReserveOutcome::over_limit);
  account.release(400);
  CHECK(account.available() == 0);
  CHECK(account.reserve(1) == ReserveOutcome::over_limit);
  account.release(1);
  CHECK(account.reserve(1) == ReserveOutcome::granted);
  CHECK(account.charged() == 500);
}

TEST_CASE("a charge is taken whatever the limit says and never wraps") {
  Account account;
  account.set_limit(10);
  account.charge(30);
  CHECK(account.charged() == 30);
  CHECK(account.available() == 0);
  CHECK(account.reserve(1) == ReserveOutcome::over_limit);
  account.charge(UINT64_MAX);
  CHECK(account.charged() == UINT64_MAX);
}

TEST_CASE("each device has an account of its own, including the last one") {
  const auto ledger = std::make_unique<Ledger>();
  ledger->account(0).set_limit(1);
  ledger->account(kMaxDevices - 1).set_limit(2);
  CHECK(ledger->account(kMaxDevices - 1).reserve(2) == ReserveOutcome::granted);
  CHECK(ledger->account(0).charged() == 0);
  CHECK(ledger->account(0).reserve(2) == ReserveOutcome::over_limit);
}

TEST_CASE("eight threads that race for one limit get exactly its bytes") {
  constexpr std::uint64_t kBlock = 7;
  constexpr std::uint64_t kBlocks = 10'000;
  Account account;
  account.set_limit(kBlock * kBlocks + kBlock - 1);
  std::atomic<std::uint64_t> granted{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      while (account.reserve(kBlock) == ReserveOutcome::granted) {
        granted.fetch_add(1);
      }
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  CHECK(granted == kBlocks);
  CHECK(account.charged() == kBlock * kBlocks);
}

TEST_CASE("a request that fits once is never granted to two threads at a time") {
  Account account;
  account.set_limit(1);
  std::atomic<int> owners{0};
  std::atomic<bool> shared{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 100'000; ++round) {
        if (account.reserve(1) == ReserveOutcome::granted) {
          shared = owners.fetch_add(1) != 0 || shared;
          owners.fetch_sub(1);
          account.release(1);
        }
      }
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  CHECK_FALSE(shared);
  CHECK(account.charged() == 0);
}

TEST_CASE("reserved and committed bytes never exceed the limit during a race") {
  constexpr std::uint64_t kLimit = 1000;
  Account account;
  account.set_limit(kLimit);
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> rounds{0};
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 20'000; ++round) {
        if (account.reserve(200 + i) == ReserveOutcome::granted) {
          account.commit(200 + i, 100);
          rounds.fetch_add(1);
          over = over || account.charged() > kLimit;
          account.release(100);
        }
        over = over || account.charged() > kLimit;
      }
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  CHECK_FALSE(over);
  CHECK(rounds > 0);
  CHECK(account.charged() == 0);
}

TEST_CASE("what held bytes at some time since a look may have refused; what only tried has not") {
  Account account;
  const Transits &transits = account.transits();
  const std::uint64_t before = transits.ended();
  {
    Transit tries(account.transits());
    CHECK(transits.may_have_refused(before));
  }
  CHECK_FALSE(transits.may_have_refused(before));
  {
    Transit holds(account.transits());
    holds.hold();
    CHECK(transits.may_have_refused(before));
  }
  CHECK(transits.may_have_refused(before));
  CHECK_FALSE(transits.may_have_refused(transits.ended()));
}

TEST_CASE("those that were under way at a look have ended, whatever others have begun since") {
  Account account;
  Transits &transits = account.transits();
  CHECK(transits.have_ended(transits.turn()));
  auto early = std::make_unique<Transit>(account.transits());
  const std::uint64_t look = transits.turn();
  CHECK_FALSE(transits.have_ended(look));
  auto late = std::make_unique<Transit>(account.transits());
  const std::uint64_t later_look = transits.turn();
  CHECK_FALSE(transits.have_ended(look));
  early.reset();
  CHECK(transits.have_ended(look));
  CHECK_FALSE(transits.have_ended(later_look));
  for (int turn = 0; turn < 10; ++turn) {  // never none at all
    auto next = std::make_unique<Transit>(account.transits());
    const std::uint64_t present = transits.turn();
    late = std::move(next);
    CHECK(transits.have_ended(later_look));
    CHECK_FALSE(transits.have_ended(present));
    CHECK(transits.any());
  }
}
