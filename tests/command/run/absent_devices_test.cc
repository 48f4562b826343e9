// Limits for devices that are not there: an error of an option, a line for a variable.
#include <filesystem>

#include "catch.h"
#include "files.h"

using run_test::Ended;
using run_test::Folder;
using run_test::ration_run;
using run_test::says;

namespace {

// "ration: run: OPTION: there is no device ..., only 0 (GPU-xxxxxxxx...)\n", alone.
void check_refused(const Ended &ended, const std::string &option, const std::string &absent) {
  INFO(ended.err);
  CHECK(ended.status == 125);
  CHECK(ended.out.empty());
  CHECK(ended.err.find("ration: run: " + option + ": there is no device " + absent + ", only 0 (GPU-") == 0);
  CHECK(run_test::lines_in(ended.err) == 1);
}

}  // namespace

TEST_CASE("an option that limits an absent device starts nothing and names the devices") {
  const std::vector<std::string> options[] = {{"--limit", "3=8GiB"},
                                              {"--limit", "0=1GiB,1=2GiB"},
                                              {"--limit", "GPU-00000000=1GiB"},
                                              {"--group", "lab", "--group-limit", "3=8GiB"},
                                              {"--group-limit", "3=8GiB"},
                                              {"--container-limit", "3=8GiB"}};
  for (const auto &each : options) {
    std::vector<std::string> line = {"--sim", "8GiB"};
    line.insert(line.end(), each.begin(), each.end());
    line.insert(line.end(), {"echo", "started"});
    const std::string &value = each.back();
    const std::string absent = value[0] == 'G' ? "\"GPU-00000000\"" : value[0] == '3' ? "\"3\"" : "\"1\"";
    check_refused(ration_run(line), each[each.size() - 2] + " " + value, absent);
  }
  check_refused(ration_run({"--sim", "8GiB", "--group-tree=3=8GiB", "echo", "started"}), "--group-tree=3=8GiB",
                "\"3\"");
  const Ended two = ration_run({"--sim", "2x8GiB", "--limit", "2=1GiB,7=1GiB", "echo", "started"});
  INFO(two.err);
  CHECK(says(two.err, "there are no devices \"2\" and \"7\", only 0 (GPU-"));
  CHECK(says(two.err, " and 1 (GPU-"));
}

TEST_CASE("options that limit devices which are there start the command") {
  for (const char *limit : {"0=1GiB,1=2GiB", "1=50%", "1GiB"}) {
    INFO(limit);
    const Ended ended = ration_run({"-q", "--sim", "2x8GiB", "--limit", limit, "echo", "started"});
    INFO(ended.err);
    CHECK(ended.status == 0);
    CHECK(ended.out == "started\n");
  }
}

TEST_CASE("the ordinals of an option are those that the program sees") {
  const auto limited = [](const std::string &limit, const std::string &visible) {
    return ration_run({"-q", "--sim", "3x8GiB", "--limit", limit, "echo", "started"},
                      {"CUDA_VISIBLE_DEVICES=" + visible});
  };
  CHECK(limited("1=1GiB", "0,2").status == 0);
  const Ended hidden = limited("2=1GiB", "0,2");
  CHECK(hidden.status == 125);
  CHECK(says(hidden.err, "--limit 2=1GiB: there is no device \"2\", only 0 (GPU-"));
  CHECK(says(hidden.err, " (CUDA_VISIBLE_DEVICES=0,2)\n"));
  const Ended none = limited("0=1GiB", "");
  CHECK(none.status == 125);
  CHECK(says(none.err, "there is no device \"0\", and no other (CUDA_VISIBLE_DEVICES=)\n"));
}

TEST_CASE("a device with two limits in one option is a contradiction, by whatever names") {
  const Folder folder;
  const std::string machine = "SIMCUDA_MACHINE=" + folder.path() + "/machine";
  const std::string said = run_test::env({"--sim", "8GiB", "--json"}, {machine}).out;
  const std::size_t at = said.find("\"uuid\": \"") + 9;
  const std::string uuid = said.substr(at, said.find('"', at) - at);
  REQUIRE(uuid.find("GPU-") == 0);
  const Ended ended =
      ration_run({"--sim", "8GiB", "--limit", "0=1GiB," + uuid + "=2GiB", "echo", "started"}, {machine});
  INFO(ended.err);
  CHECK(ended.status == 125);
  CHECK(says(ended.err, "\"0\" and \"" + uuid + "\" are one device with two limits\n"));
}

TEST_CASE("a variable that limits an absent device gets one line of the library, and the rest holds") {
  const Ended ended = ration_run({"-q", "--sim", "8GiB", TAKE, "40", run_test::kMiB100, "0"},
                                 {"RATION_LIMIT=0=1GiB,3=8GiB,4=8GiB", "RATION_MODE=direct"});
  INFO(ended.err);
  CHECK(ended.status == 0);
  CHECK(ended.out == "got 10\n");
  CHECK(ended.err.find(
            "ration: RATION_LIMIT=0=1GiB,3=8GiB,4=8GiB: there are no devices \"3\" and \"4\", only 0 (GPU-") == 0);
  CHECK(says(ended.err, "); that limit has no effect\n"));
  CHECK(run_test::lines_in(ended.err) == 1);
}

TEST_CASE("the driver is asked only where an option names a device") {
  const Folder folder;
  const std::string trace = folder.path() + "/trace";
  for (const auto &[limit, is_asked] : {std::pair{"1GiB", false}, {"0=1GiB", true}}) {
    INFO(limit);
    CHECK(ration_run({"-q", "--sim", "8GiB", "--limit", limit, "true"}, {"SIMCUDA_TRACE=" + trace}).status == 0);
    CHECK(std::filesystem::exists(trace) == is_asked);
  }
}

TEST_CASE("where no driver can be asked, a limit of a device starts the command in silence") {
  const Folder folder;
  folder.write("libcuda.so.1", "no library");
  const Ended ended = ration_run({"-q", "--limit", "3=8GiB", "echo", "started"}, {"LD_LIBRARY_PATH=" + folder.path()});
  INFO(ended.err);
  CHECK(ended.status == 0);
  CHECK(ended.out == "started\n");
  CHECK(ended.err.empty());
}

TEST_CASE("a disabled run asks for no device") {
  CHECK(ration_run({"-q", "--sim", "8GiB", "--limit", "3=8GiB", "true"}, {"RATION_DISABLE=1"}).status == 0);
}

TEST_CASE("the verb env says what ration run would refuse") {
  const Ended ended = run_test::env({"--sim", "8GiB", "--limit", "3=8GiB", "--json"});
  INFO(ended.err);
  CHECK(ended.status == 2);
  CHECK(ended.err.find("ration: env: --limit 3=8GiB: there is no device \"3\", only 0 (GPU-") == 0);
  CHECK(says(ended.out, "\"fatal\": true"));
}
