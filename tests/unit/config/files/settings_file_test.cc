// Files of settings, valid and malformed.
#include "config/files/settings_file.h"

#include "catch.h"
#include "unit/config/written_files.h"

using namespace ration::config;

namespace {

constexpr std::uint64_t kGiB = 1ull << 30;

FileReading text_read(std::string_view text, const ProgramIdentity *program = nullptr) {
  return read_settings_text(text, "/f.json", Source::kSystemFile, program);
}

std::string value_of(const FileReading &reading, std::string_view key) {
  for (const Statement &each : reading.statements) {
    if (each.origin.key == key) {
      return each.origin.value + (each.wrong.empty() ? "" : "!");
    }
  }
  return "-";
}

std::string wrong_of(std::string_view text) {
  const FileReading reading = text_read(text);
  for (const Statement &each : reading.statements) {
    if (std::string wrong = error_in_statement(each); !wrong.empty()) {
      return each.origin.written() + ": " + wrong;
    }
  }
  return reading.problems.empty() ? "" : reading.problems[0].written + ": " + reading.problems[0].sentence;
}

// A file of so many values, counting itself.
std::string of_values(int count) {
  std::string text = "{\"a0\": 1";
  for (int i = 1; i < count - 1; ++i) {
    text += ", \"a" + std::to_string(i) + "\": 1";
  }
  return text + "}";
}

std::uint64_t limit_of(const Reading &reading) {
  return reading.settings.limit_on(device(0)).bytes;
}

}  // namespace

TEST_CASE("a pattern that no whole path can match is a mistake of a file that is checked, and of no other") {
  const std::string text = R"({"rules": [{"match": {"exe": "job"}, "limit": "1GiB"}]})";
  CHECK(wrong_of(text) == "/f.json:1:23: exe: the whole path is compared, so it matches nothing; write \"*/job\"");
  for (const char *const pattern : {"/usr/bin/job", "*/job", "*job", "?usr/job", "[/]job"}) {
    CHECK(wrong_of(R"({"rules": [{"match": {"exe": ")" + std::string(pattern) + R"("}, "limit": "1GiB"}]})").empty());
  }
  const ProgramIdentity program{"/usr/bin/job", "job"};
  CHECK(text_read(text, &program).problems.empty());
}

TEST_CASE("numbers, booleans, strings and objects of devices are values, exact to the digit") {
  const FileReading reading = text_read(R"({"$schema": "x", "limit": {"0": "8GiB", "GPU-1f2e": 0.4, "2": 1073741824},
    "headroom": 0, "async_preallocate": -1, "reserve": 0.10000000000000000555, "show_limit": false,
    "preallocate": true, "mode": "direct", "group_limit": 18446744073709551616})");
  CHECK(reading.problems.empty());
  CHECK(value_of(reading, "limit") == "0=8GiB,GPU-1f2e=0.4,2=1073741824");
  CHECK(value_of(reading, "headroom") == "0");
  CHECK(value_of(reading, "async_preallocate") == "-1");
  CHECK(value_of(reading, "reserve") == "0.100000000000000005");
  CHECK(value_of(reading, "show_limit") == "false");
  CHECK(value_of(reading, "preallocate") == "true");
  CHECK(value_of(reading, "mode") == "direct");
  CHECK(value_of(reading, "group_limit") == "18446744073709551616");
}

TEST_CASE("numbers of one value are equal in any spelling") {
  const std::pair<const char *, const char *> rows[] = {
      {"1e9", "1000000000"},
      {"8000000000.0", "8000000000"},
      {"1.5e12", "1500000000000"},
      {"4e-1", "0.4"},
      {"1E-05", "0.00001"},
      {"12.5e+1", "125"},
      {"0.0", "0"},
      {"-0", "0"},
      {"-1.0", "-1"},
      {"1.0", "1.0"},
      {"1", "1"},
      {"10e-1", "10e-1"},
      {"-1.25e1", "-12.5"},
      {"0.40", "0.4"},
      {"1e-30", "0"},
      {"1e41", "1e41"},
      {"0.1e1", "0.1e1"},
      {"123456789e-5", "1234.56789"},
      {"0.0010", "0.001"},
      {"2.0e0", "2"},
  };
  for (const auto &[written, value] : rows) {
    INFO(written);
    CHECK(value_of(text_read(R"({"limit": )" + std::string(written) + "}"), "limit") == value);
  }
}

TEST_CASE("a duplicate structural key puts the limit in doubt, and two lists of locked keys both hold") {
  for (const char *text :
       {R"({"rules": [], "rules": []})", R"({"rules": [{"match": {"exe": "*a"}, "match": {"exe": "*"}}]})",
        R"({"rules": [{"match": {"exe": "*a", "exe": "*"}}]})"}) {
    INFO(text);
    CHECK(text_read(text).in_doubt);
    CHECK(text_read(text).problems.size() == 1);
  }
  const FileReading reading =
      text_read(R"({"limit": "1g", "reserve": "1g", "locked": ["limit"], "locked": ["reserve"]})");
  CHECK(reading.in_doubt);
  REQUIRE(reading.statements.size() == 2);
  CHECK(reading.statements[0].origin.locked);
  CHECK(reading.statements[1].origin.locked);
}

TEST_CASE("an error names file, line, column and key, and what was likely meant") {
  const std::pair<const char *, const char *> rows[] = {
      {"{\n  \"limit\": \"8Gib\"}", "/f.json:2:3: limit=8Gib: \"Gib\" is not a unit"},
      {R"({"limit": 1})", "/f.json:1:2: limit=1: a bare 1 could be"},
      {R"({"limit": 1e41})", "/f.json:1:2: limit=1e41: exponents are not read"},
      {R"({"limit": true})", "/f.json:1:2: limit=true: it must be in quotation marks; the values are SIZE DEVICE"},
      {R"({"limit": null})", "/f.json:1:2: limit=null: null is not a value; leave the key out"},
      {R"({"limit": [1]})", "/f.json:1:2: limit=[...]: a list is not a value"},
      {R"({"limit": {}})", "/f.json:1:2: limit=: it is empty"},
      {R"({"limit": ""})", "/f.json:1:2: limit=: it is empty"},
      {R"({"limit": {"0": true}})", "/f.json:1:2: limit=: device \"0\" needs one size"},
      {R"({"limit": {"0": "1g,1=2g"}})", "/f.json:1:2: limit=: device \"0\" needs one size"},
      {R"({"limit": {"0=1g,1": "2g"}})", "needs one size"},
      {R"({"limit": {"0": "1g", "0": "2g"}})", "/f.json:1:2: limit=0=1g,0=2g: device 0 is given both 1GiB and 2GiB"},
      {R"({"limit": "1g", "mode": "pool", "limit": "2g"})",
       "/f.json:1:2: limit=1g: line 1 gives it a second time, as \"2g\""},
      {R"({"mode": "Direct"})", "it must be written in lower case: direct"},
      {R"({"mode": true})", "it must be in quotation marks; the values are pool async direct"},
      {R"({"reserve": {"0": "1g"}})", "it is one value for all devices; the values are SIZE 0"},
      {R"({"log": 3})", "it must be in quotation marks; the values are FILE"},
      {R"({"log": "a\u0000b"})", "it contains a control character"},
      {R"({"limti": "8g"})", "/f.json:1:2: limti: there is no such key; the nearest is limit"},
      {R"({"RATION_LIMIT": "8g"})", "there is no such key; the nearest is limit"},
      {R"({"threads": 8})", "/f.json:1:2: threads: there is no such key (`ration env` lists them)"},
      {R"({"config": "/x"})", "it is not a key of a file; set the variable RATION_CONFIG"},
      {R"({"match": {"exe": "x"}, "limit": "1g"})", "a match belongs in a rule"},
      {R"({"locked": ["limti"]})", "locked names \"limti\", which is not a key; the nearest is limit"},
      {R"({"locked": ["threads"]})", "locked names \"threads\", which is not a key (`ration env` lists them)"},
      {R"({"locked": ["limit"]})", "locked names \"limit\", but this file sets no value for it"},
      {R"({"locked": "limit", "limit": "1g"})", "locked must be a list of keys"},
      {R"({"rules": {}})", "/f.json:1:2: rules must be a list"},
      {R"({"rules": [1]})", "a rule is an object with a match"},
      {R"({"rules": [{"limit": "1g"}]})", "a rule is an object with a match"},
      {R"({"rules": [{"match": {}}]})", "it matches nothing"},
      {R"({"rules": [{"match": "python"}]})", "it matches nothing"},
      {R"({"rules": [{"match": {"name": "x"}}]})", "\"name\" is not a pattern of a program"},
      {R"({"rules": [{"match": {"exe": 1}}]})", "\"exe\" is not a pattern of a program"},
      {R"({"rules": [{"match": {"exe": "*"}, "rules": []}]})", "there is no such key"},
      {R"([])", "/f.json:1:1: a settings file must be one object"},
      {R"("limit")", "a settings file must be one object"},
      {"", "/f.json:1:1: it is not valid JSON"},
      {"{“limit”: \"8GiB\"}", "likely cause: typographic quotation marks (“)"},
      {"{\"limit\": “8GiB”}", "likely cause: typographic quotation marks (“)"},
      {"{\"limit\":\u00a0\"8GiB\"}", "likely cause: a non-breaking blank (U+00A0)"},
      {"{'limit': '8GiB'}", "(JSON takes double quotation marks)"},
      {"{\"limit\": 8GiB}", "(a size with a unit must be in quotation marks)"},
      {"{\"limit\": 40%}", "(a size with a unit must be in quotation marks)"},
      {"{\"limit\": \"8GiB\",}", "/f.json:1:18: it is not valid JSON"},
      {"{\"limit\": \"8GiB\"} {}", "it is not valid JSON"},
      {"{\"limit\": \"8G", "it is not valid JSON"},
      {"{\"limit\": 1e999}", "it is not valid JSON"},
      {"{\n\"log\": \"\xff\"}", "/f.json:2:9: it is not valid JSON"},
      {"\xff\xfe{\0", "/f.json:1:1: it is not valid JSON"},
  };
  for (const auto &[text, expected] : rows) {
    INFO(text);
    const std::string wrong = wrong_of(text);
    INFO(wrong);
    CHECK(wrong.find(expected) != std::string::npos);
    CHECK(wrong.find('\n') == std::string::npos);
  }
}

TEST_CASE("a NUL byte in the text is an error at its position, not the end of the text") {
  CHECK(wrong_of(std::string("{\"limit\": \"1g\"\0}", 16)).find("/f.json:1:15: ") == 0);
  CHECK(wrong_of(std::string("{\"limit\": \"1g\"\0}", 16)).find("there is a NUL byte") != std::string::npos);
  CHECK(wrong_of(std::string("{\"log\": \"\0\"}", 12)).find("/f.json:1:10: ") == 0);
  CHECK(wrong_of(std::string("{\"limit\": \"1g\"}\0{}", 18)).find("/f.json:1:16: ") == 0);
}

TEST_CASE("columns count characters, not bytes") {
  CHECK(wrong_of("{\"log\": \"\u00e4\u00f6\u00fc\", \"limti\": 1}").find("/f.json:1:16: limti") == 0);
}

TEST_CASE("an error does not quote the contents of the file") {
  const std::string secret = "{\"limit\": root:x:0:0}";
  CHECK(wrong_of(secret).find("root") == std::string::npos);
  CHECK(wrong_of("password: hunter2").find("hunter") == std::string::npos);
}

TEST_CASE("an error does not quote a number of any length") {
  CHECK(wrong_of("{\"limit\": " + std::string(100000, '1') + "}").size() < 400);
}

TEST_CASE("a file of another format gets a few lines and puts the limit in doubt") {
  CHECK(text_read(of_values(16384)).problems.size() == 8);
  std::string rules = "{\"rules\": [1";
  for (int i = 1; i < 200; ++i) {
    rules += ", 1";
  }
  const FileReading reading = text_read(rules + "]}");
  CHECK(reading.problems.size() == 8);
  CHECK(reading.in_doubt);
}

TEST_CASE("a file of more than 16384 values is refused and puts the limit in doubt") {
  CHECK_FALSE(text_read(of_values(16384)).in_doubt);
  for (const std::string &text : {of_values(16385), of_values(60000), "{\"limit\": " + of_values(60000) + "}"}) {
    const FileReading reading = text_read(text);
    REQUIRE(reading.problems.size() == 1);
    CHECK(reading.problems[0].line.find("/f.json:1:") == 0);
    CHECK(reading.problems[0].line.find("it has more than 16384 values") != std::string::npos);
    CHECK(reading.problems[0].line.find("remove what is not a setting; until it is corrected") != std::string::npos);
    CHECK(reading.in_doubt);
    CHECK(reading.statements.empty());
  }
}

TEST_CASE("a limit in a file that names more than 256 devices is in doubt, and the first 256 hold") {
  std::string items = "\"0\": \"8GiB\"";
  for (int i = 1; i < 300; ++i) {
    items += ", \"" + std::to_string(i) + "\": \"1GiB\"";
  }
  const WrittenFiles files;
  files.system("{\"limit\": {" + items + "}}");
  Reading reading = files.read();
  CHECK(reading.settings.limit_on(device(0)).bytes == 8 * kGiB);
  CHECK(reading.settings.limit_on(device(255)).bytes == kGiB);
  CHECK(reading.settings.limit_on(device(256)).bytes == kStrictest);
  REQUIRE(reading.problems.size() == 1);
  CHECK(reading.problems[0].line.find("/system/config.json:1:2: limit=") != std::string::npos);
  CHECK(reading.problems[0].line.find("it names 300 devices, and 256 is the most; name fewer") != std::string::npos);
  reading.settings.resolve_devices({device(0, "GPU-1f2e")}, reading.problems);
  CHECK(reading.problems.size() == 1 + 1);  // all that are not visible
}

TEST_CASE("nesting deeper than sixteen levels is refused") {
  for (const int depth : {17, 500000}) {
    const FileReading reading = text_read("{\"limit\": " + std::string(static_cast<std::size_t>(depth), '['));
    REQUIRE(reading.problems.size() == 1);
    CHECK(reading.problems[0].line.find("/f.json:1:26: it is nested deeper than 16 levels") == 0);
    CHECK(reading.in_doubt);
  }
}

TEST_CASE("a rule applies to the programs that it matches, and a later rule outranks an earlier one") {
  constexpr std::string_view kText = R"({"limit": "8GiB", "rules": [
    {"match": {"exe": "*/python3*"}, "limit": "4GiB", "mode": "direct"},
    {"match": {"exe": "*/python3*", "argv": "*serve*"}, "limit": "2GiB"},
    {"match": {"argv": "?rain *"}, "limit": "1GiB"}]})";
  const WrittenFiles files;
  files.user(std::string(kText));
  CHECK(limit_of(files.read({}, {"/usr/bin/bash", "bash"})) == 8 * kGiB);
  CHECK(limit_of(files.read({}, {"/usr/bin/python3.11", "python3 train.py"})) == 4 * kGiB);
  const Reading serving = files.read({}, {"/usr/bin/python3.11", "python3 -m serve"});
  CHECK(limit_of(serving) == 2 * kGiB);
  CHECK(serving.settings.mode == Mode::kDirect);
  CHECK(serving.settings.origin_of("limit")->place == files.path("user/ration/config.json") + ":3:57");
  CHECK(limit_of(files.read({}, {"/x", "train 3"})) == kGiB);
  CHECK(limit_of(files.read({}, {"/x", "train"})) == 8 * kGiB);
  CHECK(limit_of(files.read({"RATION_LIMIT=9g"}, {"/x", "train 3"})) == 9 * kGiB);
  CHECK(text_read(kText).statements.size() == 5);  // to be checked: every rule
}

TEST_CASE("a rule of a system file locks keys for its programs") {
  const WrittenFiles files;
  files.system(R"({"limit": "8GiB", "rules": [{"match": {"exe": "*/hog"}, "limit": "1GiB", "locked": ["limit"]}]})");
  CHECK(limit_of(files.read({"RATION_LIMIT=9g"}, {"/x/hog", ""})) == kGiB);
  CHECK(limit_of(files.read({"RATION_LIMIT=9g"}, {"/x/cat", ""})) == 9 * kGiB);
}

TEST_CASE("a malformed file puts the limit in doubt, a malformed value only its key") {
  const WrittenFiles files;
  for (const char *text :
       {"{", "[]", R"({"rules": 1})", R"({"limit": "x"})", R"({"reserve": "x"})", R"({"locked": ["limit"]})"}) {
    INFO(text);
    files.system(text);
    const Reading reading = files.read();
    CHECK(limit_of(reading) == kStrictest);
    REQUIRE(reading.problems.size() == 1);
    CHECK(reading.problems[0].fatal_for_cli);
    CHECK(limit_of(files.read({"RATION_LIMIT=1g"})) == kGiB);
  }
  for (const char *text : {R"({"limti": "1g"})", R"({"mode": "x"})"}) {
    INFO(text);
    files.system(text);
    CHECK_FALSE(files.read().settings.limit_asked());
    CHECK(files.read().problems.size() == 1);
  }
}
