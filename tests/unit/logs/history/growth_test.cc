#include "logs/history/growth.h"

#include <functional>

#include "../log_text.h"
#include "catch.h"

using namespace ration::logs;
using namespace ration::test;

namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// A nanosecond for each stretch, which has a free, and as many allocations as given.
std::optional<Rise> rise_in(const std::function<std::uint64_t(std::uint64_t)> &held, std::size_t stretches = 100,
                            std::uint64_t quiet_ns = 0, std::uint64_t allocs = 1) {
  std::vector<Stretch> run;
  for (std::uint64_t i = 0; i < stretches; ++i) {
    run.push_back({held(i), i, allocs, 1});
  }
  return rise_of(run, quiet_ns);
}

// Writes a log whose records have times of their own.
class TimedLog {
 public:
  void add(const std::string &record, int after_ns = 1000) {
    ts_ns_ += after_ns;
    ++seq_;
    text_ += "\n" + record + R"(,"ts":)" + std::to_string(ts_ns_) + R"(,"seq":)" + std::to_string(seq_) + "}";
  }
  // A block that stays, of another caller than that of the steps.
  void keep(int bytes = 100, int after_ns = 1000) {
    std::string record = alloc_record(++kept_, bytes, R"("src":"driver","kind":"managed")");
    record.replace(record.find("cuMemAlloc_v2"), std::string("cuMemAlloc_v2").size(), "cuMemAllocManaged");
    add(record, after_ns);
  }
  void step(int after_ns = 1000) {
    add(alloc_record(1'000'000, 4000), after_ns);
    add(free_record(1'000'000), after_ns);
  }
  void free_kept() {
    for (; kept_ > 0; --kept_) {
      add(R"({"t":"free","dev":0,"kind":"managed","addr":")" + std::to_string(kept_) + "\"");
    }
  }
  std::vector<History::Growing> growing() const { return history_of(text_ + "\n").devices()[0].growing; }

 private:
  std::string text_ = kMetaRecord;
  int ts_ns_ = 0, seq_ = 0, kept_ = 0;
};

}  // namespace

TEST_CASE("what rises throughout grows, from what it was after the first eighth") {
  const auto rise = rise_in([](std::uint64_t i) { return 1000 + 10 * i; });
  REQUIRE(rise);
  CHECK(rise->from == 1120);
  CHECK(rise->to == 1900);
}

TEST_CASE("a list that a step in ten extends grows, under blocks that each step frees") {
  CHECK(rise_in([](std::uint64_t i) { return 100 * (i / 10) + (i % 3) * 500; }));
}

TEST_CASE("growth after a long warm-up is growth, also where the warm-up held more") {
  CHECK(rise_in([](std::uint64_t i) { return i < 55 ? 0 : 10 * (i - 55); }));
  CHECK(rise_in([](std::uint64_t i) { return i < 25 ? 5000 : 10 * (i - 25); }));
}

TEST_CASE("growth in the last sixth of the work, which took most of the time, is growth") {
  std::vector<Stretch> run;
  for (std::uint64_t i = 0; i < 128; ++i) {
    run.push_back({i < 106 ? 0 : i - 106, i < 106 ? i : 1000 * (i - 105), 1, 1});
  }
  CHECK(rise_of(run, 0));
}

TEST_CASE("a small growth beside GiB that stay is growth, one of a few bytes is none") {
  CHECK(rise_in([](std::uint64_t i) { return 4 * kGiB + (i << 16U); }));
  CHECK_FALSE(rise_in([](std::uint64_t i) { return 1'000'000 + 100 * i; }));
  CHECK(rise_in([](std::uint64_t i) { return 1'000'000 + 1000 * i; }));
}

TEST_CASE("what rises until near the end, and is freed before it, grows") {
  CHECK(rise_in([](std::uint64_t i) { return i < 95 ? 10 * i : 0; }));
}

TEST_CASE("warm-up does not grow: weights, a pool that ramps up and stays, a cache that is full after two thirds") {
  CHECK_FALSE(rise_in([](std::uint64_t i) { return std::min<std::uint64_t>(i, 12) * 100; }));
  CHECK_FALSE(rise_in([](std::uint64_t i) { return std::min<std::uint64_t>(i / 10, 6) * kGiB; }));
  CHECK_FALSE(rise_in([](std::uint64_t i) { return std::min<std::uint64_t>(i, 67) * 100; }));
}

TEST_CASE("what goes up and down does not grow, whatever its period and where it ends") {
  for (std::uint64_t period = 2; period <= 55; ++period) {
    for (std::uint64_t phase = 0; phase < period; ++phase) {
      INFO(period << " " << phase);
      CHECK_FALSE(rise_in([&](std::uint64_t i) { return 1000 + (i + phase) % period * 100; }));
    }
  }
}

TEST_CASE("what is too short, or holds nothing, does not grow") {
  CHECK(rise_in([](std::uint64_t i) { return 10 * i; }, 20));
  CHECK_FALSE(rise_in([](std::uint64_t i) { return 10 * i; }, 19));
  CHECK_FALSE(rise_in([](std::uint64_t) { return 0; }));
  CHECK_FALSE(rise_of({}, 0));
}

TEST_CASE("a device that frees less than a sixteenth of what it allocates loads, so nothing grows") {
  const auto rises = [](std::uint64_t i) { return 100 * i; };
  CHECK(rise_in(rises, 100, 0, 16));
  CHECK_FALSE(rise_in(rises, 100, 0, 17));
}

TEST_CASE("what has not risen for a long time does not grow") {
  const auto rises = [](std::uint64_t i) { return 100 * i; };
  CHECK(rise_in(rises, 100, 90));
  CHECK_FALSE(rise_in(rises, 100, 97));
}

TEST_CASE("of a long run the least in each stretch counts, and frees after the last allocation do not") {
  Work work;
  Levels levels;
  std::uint64_t held = 0;
  const auto change = [&](std::uint64_t to, std::uint64_t ts_ns) {
    levels.note(work, held);
    to > held ? work.alloc(ts_ns) : work.free(ts_ns);
    held = to;
  };
  for (std::uint64_t step = 0; step < 100'000; ++step) {
    change(held + 5000, step);
    change(held - 4999, step);
  }
  while (held >= 1000) {
    change(held - 1000, 100'000);
  }
  levels.note(work, held);
  const auto rise = levels.rise(work, work.quiet_ns(100'000));
  REQUIRE(rise);
  CHECK((rise->from > 10'000 && rise->from < 15'000));
  CHECK((rise->to > 80'000 && rise->to < 90'000));
}

TEST_CASE("a log names the callers that grow, and how long their oldest block lived, also if all is freed at last") {
  TimedLog log;
  const auto check = [&] {
    const auto growing = log.growing();
    REQUIRE(growing.size() == 1);
    CHECK(growing[0].name == "cuMemAllocManaged");
    CHECK(growing[0].rise.to > growing[0].rise.from);
    CHECK(growing[0].oldest_ns >= 58'000);
  };
  for (int i = 0; i < 30; ++i) {
    log.keep();
    log.step();
  }
  check();
  log.free_kept();
  check();
}

TEST_CASE("a list that grows to the end in a program that frees nothing grows, what was loaded before it does not") {
  TimedLog log;
  for (int i = 0; i < 50; ++i) {
    log.add(alloc_record(1'000'000 + i, 4000));
  }
  CHECK(log.growing().size() == 1);
  for (int i = 0; i < 400; ++i) {
    log.keep();
  }
  const auto growing = log.growing();
  REQUIRE(growing.size() == 1);
  CHECK(growing[0].name == "cuMemAllocManaged");
}

TEST_CASE("a run that only loads does not grow, a list that grows after a load of many calls does") {
  TimedLog log;
  for (int i = 0; i < 2000; ++i) {
    log.keep(10'000);
    if (i % 20 == 0) {
      log.step();
    }
  }
  CHECK(log.growing().empty());
  for (int i = 0; i < 200; ++i) {
    log.step();
    if (i % 4 == 0) {
      log.keep(i < 60 ? 1 : 100'000);
    }
  }
  CHECK(log.growing().size() == 1);
}

TEST_CASE("weights that are loaded with a buffer for each do not grow where steps go on for longer") {
  const auto grows_with_steps_of = [](int ns) {
    TimedLog log;
    for (int i = 0; i < 200; ++i) {
      log.keep();
      log.step();
    }
    for (int i = 0; i < 4; ++i) {
      log.step(ns);
    }
    return !log.growing().empty();
  };
  CHECK(grows_with_steps_of(1000));
  CHECK_FALSE(grows_with_steps_of(300'000));
}

TEST_CASE("a pause before a refusal does not hide that the refused caller grew, but that of another one does") {
  const auto growing_before_refusal_of = [](int stack, int steps_after_pause = 0) {
    TimedLog log;
    for (const std::string id : {"1", "2"}) {
      log.add(R"({"t":"frame","id":)" + id + R"(,"mod":0,"off":0,"fn":"f)" + id + R"(","file":"x.py","line":1)");
      log.add(R"({"t":"stack","id":)" + id + R"(,"frame":)" + id + R"(,"parent":0)");
    }
    for (int i = 0; i < 40; ++i) {
      log.add(alloc_record(i, 100, R"("src":"driver","stack":1)"), 1'000'000);
      log.step();
    }
    for (int i = 0; i < steps_after_pause; ++i) {
      log.add(alloc_record(40 + i, 100, R"("src":"driver","stack":1)"), i == 0 ? 1'500'000'000 : 1'000'000);
      log.step();
    }
    log.add(R"({"t":"oom","dev":0,"api":"cuMemAlloc_v2","req":1000,"reason":"limit","stack":)" + std::to_string(stack),
            steps_after_pause == 0 ? 1'500'000'000 : 1'000'000);
    return log.growing().size();
  };
  CHECK(growing_before_refusal_of(1) == 1);
  CHECK(growing_before_refusal_of(2) == 0);
  CHECK(growing_before_refusal_of(1, 2) == 1);
}

TEST_CASE("of a log the first half of its time is long before its end, but for the last second") {
  const auto grows_with_end_after = [](int ns, bool is_refused = false) {
    TimedLog log;
    for (int i = 0; i < 40; ++i) {
      log.keep(100, 1'000'000);
      log.step();
    }
    if (is_refused) {
      log.add(R"({"t":"oom","dev":0,"api":"cuMemAlloc_v2","req":1000,"reason":"limit")");
    }
    log.add(kEndRecord, ns);
    return !log.growing().empty();
  };
  CHECK(grows_with_end_after(20'000'000));
  CHECK(grows_with_end_after(960'000'000));
  CHECK_FALSE(grows_with_end_after(1'060'000'000));
  CHECK(grows_with_end_after(1'060'000'000, true));
}
