#include "cli/launch/command_line.h"

#include "catch.h"

using ration::cli::split_line;
using ration::cli::SplitLine;
using Words = std::vector<std::string>;

TEST_CASE("words after the command belong to the command") {
  struct Row {
    Words line, own, command;
  };
  const Row rows[] = {
      {{"ls"}, {}, {"ls"}},
      {{"ls", "--limit", "3"}, {}, {"ls", "--limit", "3"}},
      {{"--limit", "8g", "ls", "--limit=3"}, {"--limit=8g"}, {"ls", "--limit=3"}},
      {{"--limit=8g", "ls", "--help"}, {"--limit=8g"}, {"ls", "--help"}},
      {{"--limit=8g", "--", "ls", "--"}, {"--limit=8g"}, {"ls", "--"}},
      {{"--", "--limit", "x"}, {}, {"--limit", "x"}},
      {{"--", "--"}, {}, {"--"}},
      {{"--", "-weird"}, {}, {"-weird"}},
      {{"--limit", "-1", "ls"}, {"--limit=-1"}, {"ls"}},
      {{"--log", "a=b", "ls"}, {"--log=a=b"}, {"ls"}},
      {{"--log", "--", "ls"}, {"--log"}, {"ls"}},
      {{"--log", "--limit", "8g", "ls"}, {"--log", "--limit=8g"}, {"ls"}},
      {{"--log", "-", "ls"}, {"--log=-"}, {"ls"}},
      {{"--log", "./--", "ls"}, {"--log=./--"}, {"ls"}},
      {{"--log"}, {"--log"}, {}},
      {{"--sim", "2x8GiB", "--mode", "direct", "--show-limit", "false", "--reserve", "1g", "x"},
       {"--sim=2x8GiB", "--mode=direct", "--show-limit=false", "--reserve=1g"},
       {"x"}},
      {{"--group-tree", "ls"}, {"--group-tree"}, {"ls"}},
      {{"--group-tree", "--limit", "8g", "ls"}, {"--group-tree", "--limit=8g"}, {"ls"}},
      {{"--group-tree", "8g"}, {"--group-tree=8g"}, {}},
      {{"--group-tree", "8gb.sh"}, {"--group-tree"}, {"8gb.sh"}},
      {{"--group-tree", "--", "ls"}, {"--group-tree"}, {"ls"}},
      {{"--group-tree=0=8g,1=4g", "ls"}, {"--group-tree=0=8g,1=4g"}, {"ls"}},
      {{"--group", "lab", "--group-limit=8g", "ls"}, {"--group=lab", "--group-limit=8g"}, {"ls"}},
      {{"--help"}, {"--help"}, {}},
      {{"-h"}, {"-h"}, {}},
      {{"--"}, {}, {}},
      {{}, {}, {}},
      {{""}, {}, {""}},
  };
  for (const Row &row : rows) {
    INFO((row.line.empty() ? "" : row.line.back()));
    const auto split = split_line(row.line);
    REQUIRE(std::holds_alternative<SplitLine>(split));
    CHECK(std::get<SplitLine>(split).own == row.own);
    CHECK(std::get<SplitLine>(split).command == row.command);
  }
}

TEST_CASE("the message for an unknown option names the nearest one") {
  const std::pair<Words, const char *> rows[] = {
      {{"--limt", "8g", "ls"}, "--limt is not an option; the nearest is --limit"},
      {{"--lmit=8g", "ls"}, "--lmit is not an option; the nearest is --limit"},
      {{"-l", "8g", "ls"}, "-l is not an option (`ration help run` lists"},
      {{"-", "ls"}, "- is not an option (`ration help run` lists"},
      {{"--memory-limit", "8g", "ls"}, "--memory-limit is not an option; ours is --limit"},
      {{"--LIMIT", "8g", "ls"}, "--LIMIT is not an option; the nearest is --limit"},
      {{"--threads", "8", "ls"}, "--threads is not an option (`ration help run` lists"},
      {{"--preallocate=false", "ls"}, "set the variable RATION_PREALLOCATE"},
      {{"--flags", "0", "ls"}, "--flags is not an option (`ration help run` lists"},
      {{"--limit"}, "--limit needs a value"},
      {{"--limit", "--", "ls"}, "--limit needs a value"},
      {{"--limit=", "ls"}, "--limit has an empty value"},
      {{"--group-tree=", "ls"}, "--group-tree has an empty value"},
      {{"--group", "--", "ls"}, "--group needs a value"},
      {{"--group-tre=8g", "ls"}, "--group-tre is not an option; the nearest is --group-tree"},
      {{"--log=", "ls"}, "--log has an empty value"},
      {{"--log", "-x", "ls"}, "-x is not an option"},
      {{"--limit", "", "ls"}, "--limit has an empty value"},
      {{"--help=x"}, "--help: takes no value"},
      {{"-Z", "ls"}, "-Z is not an option (`ration help run` lists them)"},
      {{"--\nx"}, "--\\x0ax is not an option"},
  };
  for (const auto &[line, says] : rows) {
    INFO(line.front());
    const auto split = split_line(line);
    REQUIRE(std::holds_alternative<std::string>(split));
    INFO(std::get<std::string>(split));
    CHECK(std::get<std::string>(split).find(says) != std::string::npos);
    CHECK(std::get<std::string>(split).find('\n') == std::string::npos);
  }
}
