// Options, variables, simulated devices and the summary.
#include <unistd.h>

#include <csignal>

#include "catch.h"
#include "child.h"

using run_test::Ended;
using run_test::ration_run;

namespace {

const std::string kMiB100 = "104857600";

bool says(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("each wrong option or variable gives one line that names it, and nothing is started") {
  struct Row {
    std::vector<std::string> options, environment;
    const char *begins;
  };
  const Row rows[] = {
      {{"--limit", "8Gib"}, {}, "ration: run: --limit 8Gib: "},
      {{"--limit", "-1"}, {}, "ration: run: --limit -1: "},
      {{"--limit=1"}, {}, "ration: run: --limit 1: "},
      {{"--limit", "0=8GiB,0=4GiB"}, {}, "ration: run: --limit 0=8GiB,0=4GiB: "},
      {{"--limit", "8  GB"}, {}, "ration: run: --limit 8  GB: "},
      {{"--mode", "fast"}, {}, "ration: run: --mode fast: "},
      {{"--reserve", "1"}, {}, "ration: run: --reserve 1: "},
      {{"--show-limit", "yes"}, {}, "ration: run: --show-limit yes: "},
      {{"--log", "%q"}, {}, "ration: run: --log %q: "},
      {{"--sim", "2"}, {}, "ration: run: --sim 2: "},
      {{"--sim", "0x8GiB"}, {}, "ration: run: --sim 0x8GiB: "},
      {{"--group", "a b"}, {}, "ration: run: --group a b: "},
      {{"--group", "a", "--group-limit", "8Gib"}, {}, "ration: run: --group-limit 8Gib: "},
      {{"--group-limit", "8Gib", "--group-tree"}, {}, "ration: run: --group-limit 8Gib: "},
      {{"--group-tree=8Gib"}, {}, "ration: run: --group-tree=8Gib: "},
      {{"--group-tree=1g;2g"}, {}, "ration: run: --group-tree=1g;2g: "},
      {{"--group-tree="}, {}, "ration: run: --group-tree has an empty value"},
      {{"--group-tree=2g", "--group-limit", "1g"}, {}, "ration: run: --group-tree=2g: --group-limit sets a second"},
      {{"--group-tree=2g"}, {"RATION_GROUP_TREE=x"}, "ration: run: RATION_GROUP_TREE=x: "},
      {{"--group-tree"}, {"RATION_GROUP_LIMIT="}, "ration: run: RATION_GROUP_LIMIT=: "},
      {{}, {"RATION_GROUP=a", "RATION_GROUP_LIMIT=x"}, "ration: run: RATION_GROUP_LIMIT=x: "},
      {{}, {"RATION_STATE_DIR=here"}, "ration: run: RATION_STATE_DIR=here: "},
      {{}, {"RATION_LIMIT=8Gib"}, "ration: run: RATION_LIMIT=8Gib: "},
      {{}, {"RATION_LIMIT="}, "ration: run: RATION_LIMIT=: "},
      {{}, {"RATION_RESERVE=x"}, "ration: run: RATION_RESERVE=x: "},
      {{}, {"RATION_GROUP=a b"}, "ration: run: RATION_GROUP=a b: "},
      {{"--container-limit", "8Gib"}, {}, "ration: run: --container-limit 8Gib: "},
      {{}, {"RATION_CONTAINER_LIMIT="}, "ration: run: RATION_CONTAINER_LIMIT=: "},
      {{}, {"RATION_BACKING=x"}, "ration: run: RATION_BACKING=x: "},
      {{}, {"RATION_DISABLE=true"}, "ration: run: RATION_DISABLE=true: "},
      {{"--limit", "1g"}, {"RATION_MODE=fast"}, "ration: run: RATION_MODE=fast: "},
  };
  for (const Row &row : rows) {
    INFO(row.begins);
    std::vector<std::string> line = row.options;
    line.insert(line.end(), {"echo", "started"});
    const Ended ended = ration_run(line, row.environment);
    INFO(ended.err);
    CHECK(ended.status == 125);
    CHECK(ended.out.empty());
    CHECK(run_test::lines_in(ended.err) == 1);
    CHECK(ended.err.find(row.begins) == 0);
  }
}

TEST_CASE("two mistakes give two lines") {
  const Ended ended = ration_run({"--limit", "x", "--mode", "y", "true"});
  CHECK(ended.status == 125);
  CHECK(run_test::lines_in(ended.err) == 2);
}

TEST_CASE("an option overrides its variable, even an invalid one") {
  CHECK(ration_run({"--limit", "2g", "printenv", "RATION_LIMIT"}, {"RATION_LIMIT=1g"}).out == "2g\n");
  CHECK(ration_run({"--limit", "2g", "printenv", "RATION_LIMIT"}, {"RATION_LIMIT=nonsense"}).out == "2g\n");
  CHECK(ration_run({"printenv", "RATION_LIMIT"}, {"RATION_LIMIT=1g"}).out == "1g\n");
  CHECK(ration_run({"--mode", "direct", "--show-limit", "false", "--reserve", "1g", "sh", "-c",
                    "echo $RATION_MODE $RATION_SHOW_LIMIT $RATION_RESERVE"})
            .out == "direct false 1g\n");
}

TEST_CASE("settings of the log without a log are said to have no effect, once and at the start") {
  struct Row {
    std::vector<std::string> options, environment;
    const char *says;
  };
  const Row rows[] = {
      {{"--stacks", "native"}, {}, "ration: run: --stacks native has no effect without --log\n"},
      {{"--log-size", "1MiB"}, {}, "ration: run: --log-size 1MiB has no effect without --log\n"},
      {{"--stacks", "native", "--log-size", "1MiB"},
       {"RATION_STACKS=python"},
       "ration: run: --stacks native and --log-size 1MiB have no effect without --log\n"},
      {{}, {"RATION_STACKS=native"}, "ration: run: RATION_STACKS=native has no effect without --log\n"},
      {{COMMAND_UNDER_TEST, "run"},
       {"RATION_STACKS=native"},
       "ration: run: RATION_STACKS=native has no effect without --log\n"},
      {{"--stacks", "none"}, {}, ""},
      {{"--log", "/tmp/%n-%p.jsonl", "--stacks", "native"}, {}, ""},
      {{"--stacks", "native"}, {"RATION_LOG=/dev/null"}, ""},
      {{}, {"RATION_STACKS=native", "RATION_DISABLE=1"}, ""},
  };
  for (const Row &row : rows) {
    std::vector<std::string> line = row.options;
    line.insert(line.end(), {"sh", "-c", "echo started >&2"});
    const Ended ended = ration_run(line, row.environment);
    INFO(ended.err);
    CHECK(ended.status == 0);
    CHECK(ended.err.starts_with(row.says));
    CHECK(ended.err.find("started\n") != std::string::npos);
    const std::size_t first = ended.err.find("no effect");
    CHECK((first == std::string::npos) == (*row.says == '\0'));
    CHECK((first == std::string::npos || ended.err.find("no effect", first + 1) == std::string::npos));
  }
}

TEST_CASE("a group and its limit are passed to the command") {
  const std::string show = "echo $RATION_GROUP $RATION_GROUP_LIMIT $RATION_GROUP_TREE";
  CHECK(ration_run({"--group", "lab", "--group-limit", "0=8GiB,1=50%", "sh", "-c", show}).out == "lab 0=8GiB,1=50%\n");
  CHECK(ration_run({"--group", "lab", "sh", "-c", show}, {"RATION_GROUP=other", "RATION_GROUP_LIMIT=1g"}).out ==
        "lab 1g\n");
}

TEST_CASE("a limit of the container is passed to the command, over the one that is there") {
  CHECK(ration_run({"--container-limit", "0=8GiB", "printenv", "RATION_CONTAINER_LIMIT"}, {"RATION_CONTAINER_LIMIT=1g"})
            .out == "0=8GiB\n");
}

TEST_CASE("a tree gets a new number; its limit is its own, or a group limit without a group name") {
  const std::string show = "echo \"$RATION_GROUP_TREE ${RATION_GROUP_LIMIT-unset}\"";
  const std::string bare = ration_run({"--group-tree", "sh", "-c", show}).out;
  REQUIRE(bare.size() == 16 + 7);
  CHECK(bare.find_first_not_of("0123456789abcdef") == 16);
  CHECK(ration_run({"--group-tree", "sh", "-c", show}).out != bare);

  const auto after_number = [&](std::vector<std::string> options, const std::vector<std::string> &environment = {}) {
    options.insert(options.end(), {"sh", "-c", show});
    return ration_run(options, environment).out.substr(16);
  };
  CHECK(after_number({"--group-tree"}) == " unset\n");
  CHECK(after_number({"--group-tree=0=8GiB,1=50%"}) == "=0=8GiB,1=50% unset\n");
  CHECK(after_number({"--group-tree", "--group-limit", "3g"}) == "=3g unset\n");
  CHECK(after_number({"--group-tree"}, {"RATION_GROUP_LIMIT=3g"}) == "=3g unset\n");
  CHECK(after_number({"--group-tree", "--group-limit", "3g", "--group", "lab"}) == " 3g\n");
  CHECK(after_number({"--group-tree", "--group-limit", "3g"}, {"RATION_GROUP=lab"}) == " 3g\n");
  CHECK(after_number({"--group-tree=2g", "--group-limit", "3g", "--group", "lab"}) == "=2g 3g\n");
}

TEST_CASE("a nested run stays in the outer tree") {
  const std::string both =
      ration_run({"--group-tree=8g", COMMAND_UNDER_TEST, "run", "--group-tree=4g", "printenv", "RATION_GROUP_TREE"})
          .out;
  REQUIRE(both.size() == 2 * 19 + 2);
  CHECK(both.substr(16, 4) == "=8g;");
  CHECK(both.substr(36) == "=4g\n");
  CHECK(both.substr(0, 16) != both.substr(20, 16));
}

TEST_CASE("the word after a bare --group-tree is its limit where it can be one, else the command") {
  CHECK(ration_run({"--group-tree", "2g", "printenv", "RATION_GROUP_TREE"}).out.substr(16) == "=2g\n");
  CHECK(ration_run({"--group-tree", "2go"}).status == 127);
}

TEST_CASE("of an option that is given twice the last value holds, and a line says so") {
  const Ended ended = ration_run({"--limit", "1g", "--limit", "2g", "printenv", "RATION_LIMIT"});
  CHECK(ended.out == "2g\n");
  CHECK(says(ended.err, "ration: run: --limit=1g is replaced by the later --limit=2g\n"));
}

TEST_CASE("the help of ration run shows the options of groups") {
  const Ended help = ration_run({"--help-all"});
  CHECK(help.status == 0);
  CHECK(says(help.out, "--group NAME"));
  CHECK(says(help.out, "--group-limit SIZE|DEVICE=SIZE,..."));
  CHECK(says(help.out, "--group-tree[=LIMIT]"));
}

TEST_CASE("an unknown RATION_ variable does not stop the command") {
  CHECK(ration_run({"true"}, {"RATION_LIMTI=8g"}).status == 0);
}

TEST_CASE("a relative log path is resolved in the folder of the call") {
  const auto from_tmp = [] { REQUIRE(chdir("/tmp") == 0); };
  CHECK(ration_run({"--log", "%n.jsonl", "printenv", "RATION_LOG"}, {}, from_tmp).out == "/tmp/%n.jsonl\n");
  CHECK(ration_run({"--log", "/tmp/%p.jsonl", "printenv", "RATION_LOG"}, {}, from_tmp).out == "/tmp/%p.jsonl\n");
  CHECK(ration_run({"printenv", "RATION_LOG"}, {"RATION_LOG=x-%p"}, from_tmp).out == "x-%p\n");
}

TEST_CASE("simulated devices get a machine of their own unless one is named") {
  const char *show = "echo $SIMCUDA_DEVICES; echo $SIMCUDA_MACHINE; echo $LD_LIBRARY_PATH";
  const std::string folder = std::string(LIBRARY_FOLDER) + "/ration/sim";
  const std::string out = ration_run({"--sim", "2\u00d78GiB", "sh", "-c", show}, {"LD_LIBRARY_PATH=/x"}).out;
  CHECK(out.find("2x8GiB\n/") == 0);
  CHECK(says(out, "\n" + folder + ":/x\n"));
  CHECK(ration_run({"--sim", "1g", "sh", "-c", show}, {"SIMCUDA_MACHINE=/m", "LD_LIBRARY_PATH="}).out ==
        "1x1GiB\n/m\n" + folder + "\n");
}

TEST_CASE("simulated devices have contexts of a small card unless costs or a size are asked for") {
  const auto context_bytes = [](const std::vector<std::string> &environment) {
    return ration_run({"--sim", "8GiB", "sh", "-c", "echo $SIMCUDA_CONTEXT_BYTES"}, environment).out;
  };
  CHECK(context_bytes({}) == "256MiB\n");
  CHECK(context_bytes({"SIMCUDA_CONTEXT_BYTES=1MiB"}) == "1MiB\n");
  CHECK(context_bytes({"SIMCUDA_COSTS=h100"}) == "\n");
}

TEST_CASE("the summary reports peak, limit, refusals and unfreed blocks") {
  const Ended ended = ration_run({"--sim", "8GiB", "--limit", "1GiB", "--mode", "direct", TAKE, "20", kMiB100, "2"});
  INFO(ended.err);
  CHECK(ended.status == 0);
  CHECK(ended.out == "got 10\n");
  CHECK(says(ended.err, "device 0: used at most 1000MiB and reserved at most 1000MiB of the limit of 1.00GiB\n"));
  CHECK(
      says(ended.err,
           "10 allocations, 8 frees, 1 refused: 1 over the limit; largest refused: 100MiB requested, 76MiB short; not "
           "freed: 2 blocks, 200MiB\n"));
  CHECK(says(
      ended.err,
      std::string("to see what held the memory: ration run --log run.jsonl --stacks native --sim 8GiB --limit 1GiB "
                  "--mode direct -- ") +
          TAKE + " 20 " + kMiB100 + " 2; ration report run.jsonl\n"));
  CHECK(run_test::lines_in(ended.err) == 3);
}

TEST_CASE("the summary names the group, the tree or the container whose limit it was") {
  const std::pair<std::vector<std::string>, const char *> rows[] = {
      {{"--group", "summary.lab", "--group-limit", "1GiB"},
       "reserved at most 1000MiB of the group summary.lab's limit of 1.00GiB"},
      {{"--group-tree=1GiB"}, "'s limit of 1.00GiB"},
      {{"--container-limit", "1GiB"}, "reserved at most 1000MiB of the container's limit of 1.00GiB"},
      {{"--limit", "2GiB", "--group-tree=1GiB"}, "reserved at most 1000MiB of the limit of 2.00GiB and of tree:"},
  };
  for (const auto &[options, part] : rows) {
    std::vector<std::string> line = {"--sim", "8GiB", "--mode", "direct"};
    line.insert(line.end(), options.begin(), options.end());
    std::vector<std::string> killed = line;
    line.insert(line.end(), {TAKE, "20", kMiB100, "0"});
    const Ended ended = ration_run(line);
    INFO(ended.err);
    CHECK(says(ended.err, part));
    CHECK(says(ended.err, "'s limit of 1.00GiB (all members: up to 1000MiB seen)\n"));
    killed.insert(killed.end(), {"--summary", "json", TAKE, "3", kMiB100, "3", std::to_string(SIGKILL)});
    const Ended json = ration_run(killed);
    INFO(json.err);
    CHECK(says(json.err, "\"limit\":1073741824,\"claimed_peak_bytes\":314572800}"));
  }
}

TEST_CASE("the summary says that a limit is larger than the device") {
  const std::vector<std::string> line = {"--sim", "8GiB", "--limit", "100GiB", TAKE, "1", kMiB100, "0"};
  const Ended ended = ration_run(line);
  INFO(ended.err);
  CHECK(says(ended.err, "ration: the limit of 100GiB is larger than device 0, which has 8.00GiB\n"));
  CHECK_FALSE(says(ration_run({"--sim", "8GiB", "--limit", "8GiB", TAKE, "1", kMiB100, "0"}).err, "larger than"));
  const Ended group = ration_run(
      {"--sim", "8GiB", "--group", "lab", "--group-limit", "20GiB", "--limit", "50%", TAKE, "1", kMiB100, "0"});
  CHECK(says(group.err, "ration: the limit of 20.0GiB of the group lab is larger than device 0, which has 8.00GiB\n"));
}

TEST_CASE("ration env says which limits result on each device, and which are larger") {
  const std::vector<std::string> env = {COMMAND_UNDER_TEST, "env", "--sim", "8GiB,16GiB"};
  const Ended limited =
      run_test::run(env, {"RATION_LIMIT=50%", "RATION_GROUP=lab", "RATION_GROUP_LIMIT=10GiB", "COLUMNS=200"});
  CHECK(limited.status == 0);
  CHECK(says(limited.out, "simcuda GPU of 8.00GiB, limit 4.00GiB, group's limit 8.00GiB, backing"));
  CHECK(says(limited.out, "simcuda GPU of 16.0GiB, limit 8.00GiB, group's limit 10.0GiB, backing"));
  CHECK(limited.err == "ration: the limit of 10.0GiB of the group lab is larger than device 0, which has 8.00GiB\n");
  CHECK(says(run_test::run(env).out, "simcuda GPU of 8.00GiB, no limit, backing"));
}

TEST_CASE("-q leaves out the summary, not that a limit did not hold") {
  const std::vector<std::string> line = {"-q", "--sim", "8GiB", "--limit", "1GiB", TAKE, "1", kMiB100, "0"};
  CHECK(ration_run(line).err.empty());
  CHECK(ration_run(line, {"RATION_DISABLE=1"}).err == "ration: run: RATION_DISABLE=1: nothing is limited or counted\n");
}

TEST_CASE("ration env says that a variable limits a device which is not there, and which state folder is in force") {
  const Ended absent = run_test::run({COMMAND_UNDER_TEST, "env", "--sim", "8GiB"}, {"RATION_LIMIT=1=4GiB"});
  INFO(absent.err);
  CHECK(absent.status == 0);
  CHECK(says(absent.err, "ration: RATION_LIMIT=1=4GiB: there is no device \"1\""));
  CHECK_FALSE(says(run_test::run({COMMAND_UNDER_TEST, "env"}, {"RATION_STATE_DIR="}).out, "<uid>"));
}

TEST_CASE("a killed process leaves its figures for the summary") {
  const Ended ended =
      ration_run({"--sim", "8GiB", "--mode", "direct", TAKE, "3", kMiB100, "3", std::to_string(SIGKILL)});
  INFO(ended.err);
  CHECK(ended.status == 128 + SIGKILL);
  CHECK(says(ended.err, "used at most 300MiB and reserved at most 300MiB, no limit\n"));
  CHECK(says(ended.err, "not freed: 3 blocks"));
}

TEST_CASE("the summary reports each process of a run and of nested runs") {
  const std::string twice = std::string(TAKE) + " 1 " + kMiB100 + " 0; " + TAKE + " 2 " + kMiB100 + " 0";
  const Ended two = ration_run({"--sim", "8GiB", "--mode", "direct", "sh", "-c", twice});
  INFO(two.err);
  CHECK(says(two.err, "ration: 2 processes used CUDA\n"));
  CHECK(two.err.find("used at most 200MiB") < two.err.find("used at most 100MiB"));

  const Ended nested =
      ration_run({"--sim", "8GiB", "--mode", "direct", COMMAND_UNDER_TEST, "run", TAKE, "1", kMiB100, "0"});
  INFO(nested.err);
  const std::size_t first = nested.err.find("used at most 100MiB");
  REQUIRE(first != std::string::npos);
  CHECK(nested.err.find("used at most 100MiB", first + 1) != std::string::npos);
}

TEST_CASE("ration env prints every setting with its source") {
  const Ended table = run_test::run({COMMAND_UNDER_TEST, "env"}, {"RATION_LIMIT=40%"});
  CHECK(table.status == 0);
  CHECK(says(table.out, "environment  RATION_LIMIT=40%\n"));
  CHECK(says(table.out, "mode                default      pool\n"));
  CHECK_FALSE(says(table.out, "summary"));

  const Ended json = run_test::run({COMMAND_UNDER_TEST, "env", "--json"}, {"RATION_LIMIT=3g", "RATION_LOG=\xff"});
  CHECK(json.status == 0);
  CHECK(says(json.out, "\"value_bytes\": 3221225472"));
  CHECK(says(json.out, "\"schema\": \"ration.env/1\""));

  const Ended group = run_test::run({COMMAND_UNDER_TEST, "env"}, {"RATION_GROUP=lab", "RATION_GROUP_LIMIT=1=3g"});
  CHECK(group.status == 0);
  CHECK(says(group.out, "group               environment  RATION_GROUP=lab\n"));
  CHECK(says(group.out, "group_limit         environment  RATION_GROUP_LIMIT=1=3g\n"));
  CHECK(says(group.out, "group_tree          default      none\n"));

  const std::vector<std::string> env = {COMMAND_UNDER_TEST, "env", "--sim", "8GiB"};
  const Ended unusable = run_test::run(env, {"RATION_CONFIG=/absent.json", "COLUMNS=200"});
  CHECK(says(unusable.out, "limit               named file   at most 75% of each device (/absent.json is refused)\n"));
  CHECK(says(unusable.out, "config              environment  none (RATION_CONFIG=/absent.json is refused)\n"));
  CHECK(says(run_test::run({COMMAND_UNDER_TEST, "env", "--json"}, {"RATION_CONFIG=/absent.json"}).out,
             "\"instead\": \"at most 75% of each device\""));

  const Ended nowhere = run_test::run(env, {"CUDA_DEVICE_MEMORY_LIMIT_7=1g", "COLUMNS=200"});
  CHECK(says(nowhere.out, "CUDA_DEVICE_MEMORY_LIMIT_7=1g: ignored: there is no device \"7\", only 0 (GPU-"));
  CHECK(says(nowhere.out, "container_limit     foreign      none (CUDA_DEVICE_MEMORY_LIMIT_7=1g is refused)\n"));

  const Ended wrong = run_test::run({COMMAND_UNDER_TEST, "env"}, {"RATION_LIMIT=x"});
  CHECK(wrong.status == 125);
  CHECK(run_test::lines_in(wrong.err) == 1);
}
