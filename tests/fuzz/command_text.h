// Commands as printable text. Any bytes are valid commands, and people can read and write them.
//
// The first letter selects the pool: `p` a Pool, `s` a SharedPool with an upstream. Each command is a letter and three
// characters. Other text between two commands is skipped up to a blank. A character counts as its lower six bits:
// `@A…Z[\]^_` 0 to 31, `` `a…o`` 32 to 47, `0…9:;<=>?` 48 to 63. The three characters are the digits of the command's
// number, highest first. In a size (a, s), the first digit is an octave and the others count 4,096ths of it. Octaves
// from kFirstOdd on are odd sizes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "command.h"

namespace ration::pool {

struct Play {
  bool shared;
  std::vector<Command> commands;
};

Play play_of(std::span<const std::uint8_t> bytes);

// The letter and the three characters. A size is rounded down to the nearest size that they can express.
std::string text_of(const Command &command);

// Plays all commands and empties the pool. Returns the first error, or an empty string.
std::string outcome_of(const Play &play);

}  // namespace ration::pool
