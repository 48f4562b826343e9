// Wraps sentences to a width. Layer: cli. Threads: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ration::cli {

// Lines of `text`, broken at blanks, none longer than `width` (characters, indents included) unless a word is: such a
// word has a line of its own. The first line begins with `first`, the others with as many blanks. Of readable() text.
std::vector<std::string> wrapped(std::string_view text, std::size_t width, std::string_view first = {});

}  // namespace ration::cli
