// generate SEED FIRST COUNT [failing]: prints the random programs of a seed, by number; failing: of calls that fail.
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "tests/oracle/maker.h"

int main(int argc, char **argv) {
  if (argc != 4 && argc != 5) return 2;
  const bool failing = argc == 5 && std::string_view(argv[4]) == "failing";
  const std::uint64_t seed = std::strtoull(argv[1], nullptr, 10);
  const std::uint64_t first = std::strtoull(argv[2], nullptr, 10);
  const std::uint64_t count = std::strtoull(argv[3], nullptr, 10);
  for (std::uint64_t number = first; number < first + count; ++number) {
    oracle::Maker maker(seed, number);
    if (failing) {
      oracle::make_failing(maker);
    } else if (maker.chance(4)) {
      oracle::make_together(maker);
    } else {
      maker.make_context(0, maker.chance(60));
      oracle::add_scenes(maker);
    }
    std::cout << maker.text() << "end\n";
  }
}
