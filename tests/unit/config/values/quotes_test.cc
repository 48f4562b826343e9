#include "config/values/quotes.h"

#include "catch.h"
#include "config/settings.h"

using namespace ration::config;

TEST_CASE("what is shown keeps its letters and sends nothing to a terminal") {
  CHECK(printable("größe 漢字 “8GiB” –") == "größe 漢字 “8GiB” –");
  CHECK(printable("a\x1b[2J\n\x7f") == "a\\x1b[2J\\x0a\\x7f");
  CHECK(printable("\xff\xc3") == "\\xff\\xc3");
  CHECK(printable("\xc2\x9b") == "\\xc2\\x9b");
  CHECK(printable("\xe2\x80\xae") == "\\xe2\\x80\\xae");
  CHECK(ascii_only("ö\n") == "\\xc3\\xb6\\x0a");
}

TEST_CASE("a long value is cut between letters") {
  const std::string seventy_nine(79, 'x');
  CHECK(shown(seventy_nine + "ö") == seventy_nine + "... (80 characters)");
  CHECK(shown(seventy_nine + "y") == seventy_nine + "y");
}

TEST_CASE("the likely cause is named once for each kind of character") {
  CHECK(likely_cause("8GiB größe 漢字").empty());
  CHECK(likely_cause("\xe2\x80").empty());
  CHECK(likely_cause("RATION_LIMIT=“0”") == "; likely cause: typographic quotation marks (“)");
  for (const char *mark : {"‘", "’", "„", "«", "»", "‹", "″"}) {
    CHECK(likely_cause(mark) == std::string("; likely cause: typographic quotation marks (") + mark + ")");
  }
  CHECK(likely_cause("8\u00a0GiB") == "; likely cause: a non-breaking blank (U+00A0)");
  CHECK(likely_cause("8\u202fGiB") == "; likely cause: a non-breaking blank (U+202F)");
  CHECK(likely_cause("8\u2009GiB") == "; likely cause: a blank other than a plain space (U+2009)");
  CHECK(likely_cause("8GiB\u200b") == "; likely cause: an invisible character (U+200B)");
  CHECK(likely_cause("–limit") == "; likely cause: an en dash (–) for a minus");
  CHECK(likely_cause("—limit") == "; likely cause: an em dash (—) for two minuses");
  CHECK(likely_cause("−1") == "; likely cause: a minus sign (−) that is not a plain one");
  CHECK(likely_cause("８GiB") == "; likely cause: full-width characters (８)");
  CHECK(likely_cause(printable("8GiB\r")) == "; likely cause: a carriage return (\\x0d)");
  CHECK(likely_cause("“8\u00a0GiB”") ==
        "; likely cause: typographic quotation marks (“), a non-breaking blank (U+00A0)");
}

TEST_CASE("a refused setting is shown as it was pasted, with the likely cause before what holds instead") {
  for (const char *entry :
       {"RATION_LIMIT=“8GiB”", "RATION_LIMIT=”0=8GiB", "RATION_MODE=“pool”", "RATION_GROUP=“lab”", "RATION_WAIT=“5s”",
        "RATION_FAIL=“nth=3”", "GPU_MEMORY_LIMIT=“1073741824”", "RATION_SHOW_LIMIT=“true”"}) {
    const char *const environment[] = {entry, nullptr};
    std::vector<Problem> problems;
    (void)read_environment(environment, problems);
    INFO(entry);
    REQUIRE(problems.size() == 1);
    CHECK(problems[0].line.starts_with(std::string(entry) + ": "));
    CHECK(problems[0].line.find("; likely cause: typographic quotation marks (") != std::string::npos);
    CHECK(problems[0].line.find("\\x") == std::string::npos);
  }
}
