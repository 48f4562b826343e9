// Commands as printable text, so that any bytes are commands and a person can read and write them.
//
// The first letter says which pool: `p` a Pool, `s` a SharedPool with an upstream. Then each command is a letter and
// three characters; anything up to a blank between two commands is passed over. Characters count as their lower six
// bits:
// `@A…Z[\]^_` 0 to 31, `` `a…o`` 32 to 47, `0…9:;<=>?` 48 to 63. The three are the command's number, the last one
// lowest. In a size (a, s) the first is an octave and the others a 4,096th of it; octaves from kOddSizes on are odd
// sizes.
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

// The letter and the three characters; a size as near below as they can say it.
std::string text_of(const Command &command);

// Plays it all to the end and empties the pool. What went wrong, or an empty string.
std::string outcome_of(const Play &play);

}  // namespace ration::pool
