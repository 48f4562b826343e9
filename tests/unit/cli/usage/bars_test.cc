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

TEST_CASE("a bar tells 3 MiB of 16 GiB from 600 MiB and from 2.63 GiB") {
  const auto bar = [](std::uint64_t mebibytes, bool is_unicode) {
    return bar_of({mebibytes * kMi, mebibytes * kMi, 16 * kGi}, 12, is_unicode);
  };
  CHECK(bar(3, true) == "[\u258f         ]");
  CHECK(bar(600, true) == "[\u258d         ]");
  CHECK(bar(2693, true) == "[\u2588\u258b        ]");
  CHECK(bar(3, false) == "[:         ]");
  CHECK(bar(1000, false) == "[+         ]");
  CHECK(bar(2693, false) == "[#+        ]");
}

TEST_CASE("a bar is rounded to its resolution") {
  CHECK(bar_of({0, 2 * kGi - 1, 8 * kGi}, 10, false) == "[==      ]");
  CHECK(bar_of({0, 3 * kGi / 2, 8 * kGi}, 10, false) == "[=-      ]");
  CHECK(bar_of({0, 3 * kGi / 2, 8 * kGi}, 10, true) == "[\u2592\u2591      ]");
  CHECK(bar_of({2 * kGi - 1, 2 * kGi, 8 * kGi}, 10, true) == "[\u2588\u2588      ]");
}

TEST_CASE("a bar has no gap between what is used and what is reserved") {
  CHECK(bar_of({11 * kGi / 4, 6 * kGi, 8 * kGi}, 10, true) == "[\u2588\u2588\u2588\u2592\u2592\u2592  ]");
  CHECK(bar_of({9 * kGi / 4, 6 * kGi, 8 * kGi}, 10, true) == "[\u2588\u2588\u2592\u2592\u2592\u2592  ]");
  CHECK(bar_of({kGi / 16, 3 * kGi, 8 * kGi}, 10, true) == "[\u258f\u2592\u2592     ]");
}

TEST_CASE("a bar is full only when all is reserved, and something is never drawn as nothing") {
  CHECK(bar_of({0, 8 * kGi - 1, 8 * kGi}, 10, false) == "[=======-]");
  CHECK(bar_of({8 * kGi - 1, 8 * kGi - 1, 8 * kGi}, 10, true) == "[\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2589]");
  CHECK(bar_of({1, 2, 8 * kGi}, 10, false) == "[:-      ]");
  CHECK(bar_of({kGi / 64, kGi / 32, 8 * kGi}, 10, true) == "[\u258f\u2591      ]");
  CHECK(bar_of({0, 1, UINT64_MAX}, 10, false) == "[-       ]");
}

TEST_CASE("a bar without a whole is of what is reserved, and one beyond it is full") {
  CHECK(bar_of({kGi, 4 * kGi, 0}, 10, false) == "[##======]");
  CHECK(bar_of({0, 0, 0}, 10, false) == "[        ]");
  CHECK(bar_of({12 * kGi, 16 * kGi, 8 * kGi}, 10, false) == "[########]");
}

TEST_CASE("a bar fits any width") {
  CHECK(bar_of({1, 1, 1}, 2, false).empty());
  CHECK(bar_of({1, 2, 4}, 3, false) == "[:]");
  for (std::uint64_t part = 0; part <= 64; ++part) {
    for (std::uint64_t used = 0; used <= part; ++used) {
      CHECK(bar_of({used, part, 64}, 7, false).size() == 7);
    }
  }
}

TEST_CASE("a sparkline shows the latest values, one block each") {
  CHECK(sparkline_of({0, 1, 4, 8}, 8, 10) == " \u2581\u2584\u2588");
  CHECK(sparkline_of({8, 8, 0, 4}, 8, 2) == " \u2584");
  CHECK(sparkline_of({1, 2}, 0, 10) == "\u2584\u2588");
  CHECK(sparkline_of({1}, kGi, 10) == "\u2581");
  CHECK(sparkline_of({}, 8, 10).empty());
}
