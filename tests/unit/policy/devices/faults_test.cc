#include "policy/devices/faults.h"

#include <dlfcn.h>

#include "catch.h"

using ration::policy::FaultRule;
using ration::policy::Faults;

namespace {

// Which of so many requests of 100 bytes are refused; from 1.
std::vector<int> refused(Faults &faults, int requests) {
  std::vector<int> numbers;
  for (int i = 1; i <= requests; ++i) {
    if (faults.refuses(100, nullptr)) {
      numbers.push_back(i);
    }
  }
  return numbers;
}

FaultRule with_chance(double probability, std::uint64_t seed) {
  FaultRule rule;
  rule.probability = probability;
  rule.seed = seed;
  return rule;
}

}  // namespace

TEST_CASE("a fault refuses one request, or each of a period") {
  FaultRule nth;
  nth.nth = 3;
  FaultRule every;
  every.every = 4;
  Faults one({nth});
  Faults periodic({every});
  Faults both({nth, every});
  CHECK(refused(one, 10) == std::vector{3});
  CHECK(refused(periodic, 10) == std::vector{4, 8});
  CHECK(refused(both, 10) == std::vector{3, 4, 8});
}

TEST_CASE("only requests that a fault looks at are counted") {
  FaultRule second;
  second.nth = 2;
  second.above_bytes = 100;
  Faults faults({second});
  CHECK_FALSE(faults.refuses(101, nullptr));
  CHECK_FALSE(faults.refuses(100, nullptr));
  CHECK(faults.refuses(101, nullptr));
}

TEST_CASE("without a choice all that a fault looks at is refused, and without rules nothing") {
  Faults all({FaultRule{}});
  Faults none({});
  CHECK(all.any());
  CHECK(refused(all, 3).size() == 3);
  CHECK_FALSE(none.any());
  CHECK(refused(none, 3).empty());
}

TEST_CASE("a chance is the same for the same seed, and near what was asked for") {
  Faults first({with_chance(0.25, 7)});
  Faults again({with_chance(0.25, 7)});
  Faults other({with_chance(0.25, 8)});
  const std::vector<int> chosen = refused(first, 4000);
  CHECK(refused(again, 4000) == chosen);
  CHECK(refused(other, 4000) != chosen);
  CHECK(chosen.size() > 850);
  CHECK(chosen.size() < 1150);
}

TEST_CASE("a fault looks at the library that called, and not before its time") {
  FaultRule of_c_library;
  of_c_library.library = "libc.so";
  Faults faults({of_c_library});
  // Not one that a sanitizer has of its own, or that the executable has a stub for.
  CHECK(faults.refuses(100, dlsym(RTLD_DEFAULT, "gnu_get_libc_version")));
  CHECK_FALSE(faults.refuses(100, reinterpret_cast<const void *>(&refused)));
  CHECK_FALSE(faults.refuses(100, nullptr));
  FaultRule late;
  late.after_ns = 3'600'000'000'000;
  Faults never({late});
  CHECK_FALSE(never.refuses(100, nullptr));
}
