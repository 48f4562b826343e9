#include "logs/convert/pickle_text.h"

#include <string>

#include "catch.h"

using ration::logs::PickleText;

namespace {

std::string number_text(std::uint64_t number) {
  std::uint32_t next = 0;
  PickleText text(next);
  text(number);
  return text.text();
}

std::string bytes_of(std::initializer_list<int> bytes) {
  std::string text;
  for (const int each : bytes) {
    text += static_cast<char>(each);
  }
  return text;
}

}  // namespace

TEST_CASE("a number takes the shortest form in which it is not negative") {
  CHECK(number_text(0) == bytes_of({'K', 0}));
  CHECK(number_text(255) == bytes_of({'K', 255}));
  CHECK(number_text(256) == bytes_of({'M', 0, 1}));
  CHECK(number_text(65'536) == bytes_of({'J', 0, 0, 1, 0}));
  CHECK(number_text(0x7fffffff) == bytes_of({'J', 255, 255, 255, 127}));
  CHECK(number_text(0x80000000) == bytes_of({0x8a, 5, 0, 0, 0, 128, 0}));
  CHECK(number_text(0x7fffffffff) == bytes_of({0x8a, 5, 255, 255, 255, 255, 127}));
  CHECK(number_text(0x7f6087800000) == bytes_of({0x8a, 6, 0, 0, 0x80, 0x87, 0x60, 0x7f}));
  CHECK(number_text(~std::uint64_t{0}) == bytes_of({0x8a, 9, 255, 255, 255, 255, 255, 255, 255, 255, 0}));
}

TEST_CASE("a word is written once, and numbers are shared by the texts of one pickle") {
  std::uint32_t next = 255;
  PickleText first(next);
  PickleText second(next);
  first.word("a");
  first.word("a");
  second.word("a");
  second.word("a");
  CHECK(first.text() == bytes_of({'X', 1, 0, 0, 0, 'a', 'q', 255, 'h', 255}));
  CHECK(second.text() == bytes_of({'X', 1, 0, 0, 0, 'a', 'r', 0, 1, 0, 0, 'j', 0, 1, 0, 0}));
}
