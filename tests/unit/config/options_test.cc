#include "config/options.h"

#include <array>

#include "catch.h"

using ration::config::near_word;

TEST_CASE("the word that is likely meant is one to which few edits lead") {
  constexpr std::array<std::string_view, 6> kWords = {"--limit", "--all", "-q", "run", "report", "--max-fragmentation"};
  const std::pair<const char *, const char *> rows[] = {
      {"--lmit", "--limit"},
      {"--limti", "--limit"},  // to exchange neighbours is one
      {"-limit", "--limit"},
      {"rnu", "run"},
      {"reprot", "report"},
      {"--max-fragmentatoin", "--max-fragmentation"},
      {"--max-fragmention", "--max-fragmentation"},
      {"--limits", "--limit"},
      {"--fail", ""},
      {"--limoge", ""},
      {"launch", ""},
      {"-z", ""},  // of one letter any other is near
      {"--", ""},
      {"", ""},
  };
  for (const auto &[word, meant] : rows) {
    INFO(word);
    CHECK(near_word(word, kWords) == meant);
  }
}
