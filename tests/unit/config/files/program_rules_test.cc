#include "config/files/program_rules.h"

#include "catch.h"

using namespace ration::config;

TEST_CASE("* matches any characters, ? any single one, others themselves") {
  const std::pair<const char *, const char *> fitting[] = {
      {"", ""},          {"", "*"},
      {"", "***"},       {"/usr/bin/python3.11", "*/python3*"},
      {"abc", "abc"},    {"abc", "a*"},
      {"abc", "*c"},     {"abc", "a?c"},
      {"abc", "*b*"},    {"abc", "a**c"},
      {"a*c", "a*c"},    {"aXbXc", "a*X*c"},
      {"aab", "*ab"},    {"mississippi", "m*iss*ip*i"},
      {"[x]", "[x]"},    {"a\\b", "a\\b"},
      {"ab\ncd", "a*d"},
  };
  for (const auto &[text, pattern] : fitting) {
    INFO(text << " " << pattern);
    CHECK(fits_pattern(text, pattern));
  }
  const std::pair<const char *, const char *> others[] = {
      {"", "?"},      {"abc", ""},     {"abc", "b"},
      {"abc", "ab"},  {"abc", "?abc"}, {"abc", "a?bc"},
      {"abc", "ABC"}, {"x", "[x]"},    {"mississippi", "m*iss*ipx*i"},
  };
  for (const auto &[text, pattern] : others) {
    INFO(text << " " << pattern);
    CHECK_FALSE(fits_pattern(text, pattern));
  }
}

TEST_CASE("a pattern of many stars is matched in polynomial time") {
  std::string pattern;
  for (int i = 0; i < 500; ++i) {
    pattern += "*a";
  }
  CHECK_FALSE(fits_pattern(std::string(4096, 'a'), pattern + "b"));
}

TEST_CASE("the identity of this process has its executable and its arguments") {
  const ProgramIdentity self = this_program();
  CHECK(fits_pattern(self.exe, "/*unit_config"));
  CHECK(fits_pattern(self.argv, "*unit_config*"));
  CHECK(joined_words({"a", "b c", "d"}) == "a b c d");
}

TEST_CASE("the words of the dynamic loader end before the program") {
  using Words = std::vector<std::string>;
  CHECK(words_of_loader(Words{"ld.so", "/bin/x", "--argv0", "y"}) == 1);
  CHECK(words_of_loader(Words{"ld.so", "--library-path", "/a:/b", "--argv0", "z", "--inhibit-cache", "/bin/x"}) == 6);
  CHECK(words_of_loader(Words{"ld.so", "--preload"}) == 2);
  CHECK(words_of_loader(Words{"ld.so"}) == 1);
  CHECK(words_of_loader(Words{}) == 0);
}

TEST_CASE("the file that an address is mapped from") {
  constexpr std::string_view kMaps =
      "55d0-55e0 r--p 00000000 08:01 17 /opt/a program\n"
      "55e0-5600 rw-p 00000000 00:00 0 \n"
      "7f00-7fff r-xp 00001000 08:01 18                 /lib/x.so\n";
  CHECK(file_mapped_at(0x55d0, kMaps) == "/opt/a program");
  CHECK(file_mapped_at(0x55df, kMaps) == "/opt/a program");
  CHECK(file_mapped_at(0x55e0, kMaps).empty());
  CHECK(file_mapped_at(0x7f01, kMaps) == "/lib/x.so");
  CHECK(file_mapped_at(0x7fff, kMaps).empty());
  CHECK(file_mapped_at(0x7f01, "").empty());
  CHECK(file_mapped_at(0x7f01, "7f00-").empty());
}
