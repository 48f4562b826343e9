// generate SEED FIRST COUNT: prints the random programs of a seed, by number.
#include <cstdlib>
#include <iostream>

#include "tests/oracle/maker.h"

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  const std::uint64_t seed = std::strtoull(argv[1], nullptr, 10);
  const std::uint64_t first = std::strtoull(argv[2], nullptr, 10);
  const std::uint64_t count = std::strtoull(argv[3], nullptr, 10);
  for (std::uint64_t number = first; number < first + count; ++number) {
    oracle::Maker maker(seed, number);
    if (maker.chance(4)) {
      oracle::make_together(maker);
    } else {
      maker.make_context(0, maker.chance(60));
      oracle::add_scenes(maker);
    }
    std::cout << maker.text() << "end\n";
  }
}
