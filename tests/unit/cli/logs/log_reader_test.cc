#include "cli/logs/log_reader.h"

#include "catch.h"
#include "log_text.h"

using namespace ration;
using namespace ration::cli;
using namespace ration::test;

TEST_CASE("a log is read to its last record") {
  CHECK(problem_in(log_of({alloc_record(1, 100), free_record(1), kEndRecord})).empty());
  CHECK(problem_in(log_of({alloc_record(1, 100)})).empty());  // of a process that was killed
}

TEST_CASE("what is no whole log is said in a sentence") {
  CHECK(problem_in("") == "it is empty: the program has made no CUDA call, or could not write it");
  CHECK(problem_in("no json\n") == "not a log of Ration: its first line is no meta record");
  CHECK(problem_in("{\"t\":\"alloc\"}\n") == "not a log of Ration: its first line is no meta record");
  CHECK(problem_in(R"({"t":"meta","schema":"ration.events/2"})"
                   "\n") == "a newer version of Ration wrote it, as ration.events/2: this one reads ration.events/1");
  CHECK(problem_in(std::string(kMetaRecord) + "\n" + R"({"t":"free","seq":2})" + "\n") ==
        "line 2: records are missing before this one");
  CHECK(problem_in(std::string(kMetaRecord) + "\n[]\n") == "line 2: no record: the log was cut off or changed");
  CHECK(problem_in(std::string(kMetaRecord) + "\n" + R"({"t":"free","seq":1})") == "line 2: the log was cut off here");
}
