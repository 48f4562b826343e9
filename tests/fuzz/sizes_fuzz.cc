// Random text and random sizes through the parser of config/. rapidcheck prints its seed; RC_PARAMS="seed=N" repeats
// it.
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

#include "catch.h"
#include "config/settings.h"
#include "config/values/quotes.h"

using namespace ration::config;

namespace {

__extension__ typedef unsigned __int128 Wide;

// Text that resembles a size reaches deeper into the parser than random bytes.
rc::Gen<std::string> nearly_a_size() {
  const auto piece = rc::gen::element<std::string>("0", "1", "8", "9", "18446744073709551615", "000", ".", ",", "=",
                                                   "%", "k", "g", "GiB", "GB", "Gi", "b", "e9", "x", "-", "+", " ",
                                                   "GPU-", "1f2e", "\n", "\xc2\xa0", std::string(1, '\0'));
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(piece), [](const std::vector<std::string> &pieces) {
    std::string text;
    for (const std::string &each : pieces) {
      text += each;
    }
    return text;
  });
}

rc::Gen<std::string> any_text() {
  return rc::gen::oneOf(nearly_a_size(), rc::gen::arbitrary<std::string>());
}

}  // namespace

TEST_CASE("any text is a size of at least 1 MiB, or rejected in one short plain line") {
  CHECK(rc::check("parse_size", [] {
    const std::string text = *any_text();
    const auto size = parse_size(text);
    if (const std::string *sentence = std::get_if<std::string>(&size)) {
      RC_ASSERT(!sentence->empty());
      RC_ASSERT(printable(*sentence) == *sentence);
    } else {
      const Size read = std::get<Size>(size);
      RC_ASSERT(read.is_share() || read.bytes_of(0) >= kMiB);
      RC_ASSERT(!read.is_share() || read.bytes_of(~0ull) > 0);
    }
  }));
}

TEST_CASE("the text of a size is parsed as the same size") {
  CHECK(rc::check("bytes", [] {
    const Size size = Size::of_bytes(*rc::gen::inRange<std::uint64_t>(kMiB, ~0ull));
    RC_ASSERT(std::get<Size>(parse_size(size.text())) == size);
  }));
  CHECK(rc::check("whole units", [] {
    const Size size = Size::of_bytes(*rc::gen::inRange<std::uint64_t>(1, 1ull << 24) << *rc::gen::element(20, 30, 40));
    RC_ASSERT(std::get<Size>(parse_size(size.text())) == size);
  }));
  CHECK(rc::check("shares", [] {
    const std::uint64_t whole = 1'000'000'000'000'000'000ull;
    const Size size = Size::of_share(*rc::gen::inRange<std::uint64_t>(1, whole + 1), whole);
    RC_ASSERT(std::get<Size>(parse_size(size.text())) == size);
  }));
}

TEST_CASE("a share is the floor of the exact product") {
  CHECK(rc::check("share", [] {
    const std::uint64_t per_mille = *rc::gen::inRange<std::uint64_t>(1, 1001);
    const std::uint64_t total = *rc::gen::arbitrary<std::uint64_t>();
    const std::string text = std::to_string(per_mille / 10) + "." + std::to_string(per_mille % 10) + "%";
    const std::uint64_t bytes = std::get<Size>(parse_size(text)).bytes_of(total);
    RC_ASSERT(Wide{bytes} * 1000 <= Wide{total} * per_mille);
    RC_ASSERT(Wide{total} * per_mille - Wide{bytes} * 1000 < 1000);
  }));
}

TEST_CASE("any environment is parsed; a requested limit is never dropped") {
  CHECK(rc::check("RATION_LIMIT", [] {
    std::string value = *any_text();
    value.erase(std::remove(value.begin(), value.end(), '\0'), value.end());
    const std::string entry = "RATION_LIMIT=" + value;
    const char *block[] = {entry.c_str(), nullptr};
    std::vector<Problem> problems;
    const Settings settings = read_environment(block, problems);
    RC_ASSERT(problems.size() <= 1);
    if (!problems.empty()) {
      RC_ASSERT(printable(problems[0].line) == problems[0].line);
      const std::uint64_t total = *rc::gen::arbitrary<std::uint64_t>();
      const Settings::Limit limit = settings.limit_on({0, "", total});
      RC_ASSERT(limit.asked);
      RC_ASSERT(Wide{limit.bytes} * 4 <= Wide{total} * 3);
    } else {
      RC_ASSERT(!settings.limit.empty());
    }
  }));
}
