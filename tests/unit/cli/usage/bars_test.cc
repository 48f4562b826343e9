#include "cli/usage/bars.h"

#include "catch.h"
#include "usage_examples.h"

using namespace ration::cli;

TEST_CASE("a bar has what is used, then what is reserved beyond that, of the whole") {
  CHECK(bar_of({2 * kGi, 4 * kGi, 8 * kGi}, 10, false) == "[##==    ]");
  CHECK(bar_of({2 * kGi, 4 * kGi, 8 * kGi}, 10, true) == "[\u2588\u2588\u2592\u2592    ]");
  CHECK(bar_of({0, 0, 8 * kGi}, 10, false) == "[        ]");
  CHECK(bar_of({8 * kGi, 8 * kGi, 8 * kGi}, 10, false) == "[########]");
}

TEST_CASE("a bar is full only when all is reserved, and nothing that is held is invisible") {
  CHECK(bar_of({0, 8 * kGi - 1, 8 * kGi}, 10, false) == "[======= ]");
  CHECK(bar_of({1, 2, 8 * kGi}, 10, false) == "[#=      ]");
  CHECK(bar_of({0, 1, UINT64_MAX}, 10, false) == "[=       ]");
}

TEST_CASE("a bar without a whole is of what is reserved, and one beyond it is full") {
  CHECK(bar_of({kGi, 4 * kGi, 0}, 10, false) == "[##======]");
  CHECK(bar_of({0, 0, 0}, 10, false) == "[        ]");
  CHECK(bar_of({12 * kGi, 16 * kGi, 8 * kGi}, 10, false) == "[########]");
}

TEST_CASE("a bar fits any width") {
  CHECK(bar_of({1, 1, 1}, 2, false).empty());
  CHECK(bar_of({1, 2, 4}, 3, false) == "[#]");
}

TEST_CASE("a sparkline shows the latest values, one character each") {
  CHECK(sparkline_of({0, 1, 4, 8}, 8, 10, false) == " .=#");
  CHECK(sparkline_of({0, 1, 4, 8}, 8, 10, true) == " \u2581\u2584\u2588");
  CHECK(sparkline_of({8, 8, 0, 4}, 8, 2, false) == " =");
  CHECK(sparkline_of({1, 2}, 0, 10, false) == "=#");
  CHECK(sparkline_of({1}, kGi, 10, false) == ".");
  CHECK(sparkline_of({}, 8, 10, false).empty());
}
