#include "cli/base/text_table.h"

#include "catch.h"

using ration::cli::wrapped;
using Lines = std::vector<std::string>;

TEST_CASE("text is broken at blanks, and the lines after the first are indented") {
  CHECK(wrapped("one two three four", 11, "- ") == Lines{"- one two", "  three", "  four"});
  CHECK(wrapped("one two three four", 12, "- ") == Lines{"- one two", "  three four"});
  CHECK(wrapped("", 10, "- ") == Lines{"- "});
  CHECK(wrapped("one  two ", 10) == Lines{"one two"});
}

TEST_CASE("a word that is longer than the width has a line of its own") {
  CHECK(wrapped("a /long/path/of/a/file b", 8, "  ") == Lines{"  a", "  /long/path/of/a/file", "  b"});
  CHECK(wrapped("/long/path/of/a/file", 3, "> ") == Lines{"> /long/path/of/a/file"});
  CHECK(wrapped("a b", 0) == Lines{"a", "b"});
}

TEST_CASE("characters are counted, not bytes, and no width is unlimited") {
  CHECK(wrapped("\u00e4\u00e4 \u00e4\u00e4", 5) == Lines{"\u00e4\u00e4 \u00e4\u00e4"});
  CHECK(wrapped("a b c", static_cast<std::size_t>(-1), "  ") == Lines{"  a b c"});
}
