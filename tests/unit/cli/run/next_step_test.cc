#include "cli/run/next_step.h"

#include "catch.h"
#include "config/options.h"

using namespace ration;
using cli::next_step;

namespace {

events::Summary refused_by(events::Reason reason) {
  events::Summary process;
  process.devices.resize(2);
  process.devices[1].denied[static_cast<int>(reason)] = 1;
  return process;
}

cli::RunRequest run_of(std::vector<std::string> command) {
  cli::RunRequest request;
  request.command = std::move(command);
  return request;
}

const config::Option *option(std::string_view key) {
  for (const config::Option &each : config::options()) {
    if (each.key == key) {
      return &each;
    }
  }
  return nullptr;
}

}  // namespace

TEST_CASE("without a refusal there is no next step, nor where all of them were on purpose") {
  CHECK(next_step(run_of({"./train"}), {}, {events::Summary{}}, {}).empty());
  CHECK(next_step(run_of({"./train"}), {}, {refused_by(events::Reason::fault)}, {}).empty());
}

TEST_CASE("without a log the next step is the same run with one, by its own options") {
  cli::RunRequest request = run_of({"./train", "--name", "it's mine"});
  CHECK(next_step(request, {}, {refused_by(events::Reason::limit)}, {}) ==
        "to see what held the memory: ration run --log run.jsonl --stacks native -- ./train --name 'it'\\''s mine'; "
        "ration report run.jsonl");
  request.simulate = "8GiB";
  request.wait = "5s";
  request.flags = {{option("limit"), "40%"}, {option("group_tree"), "2GiB"}, {option("stacks"), "none"}};
  request.command.resize(1);
  CHECK(next_step(request, {}, {refused_by(events::Reason::group)}, {}) ==
        "to see what held the memory: ration run --log run.jsonl --stacks native --sim 8GiB --wait=5s --limit 40% "
        "--group-tree=2GiB -- ./train; ration report run.jsonl");
}

TEST_CASE("several processes each get a log, and all of them are reported") {
  CHECK(next_step(run_of({"./train"}), {}, {events::Summary{}, refused_by(events::Reason::limit)}, {}) ==
        "to see what held the memory: ration run --log run-%p.jsonl --stacks native -- ./train; "
        "ration report run-*.jsonl*");
}

TEST_CASE("the variables that the run has settings from are part of the command, those of its log are not") {
  config::Settings settings;
  settings.origins = {{"limit", "1g", config::Source::kEnvironment, ""},
                      {"log", "a", config::Source::kEnvironment, ""},
                      {"state_dir", "/s", config::Source::kEnvironment, ""},
                      {"flags", "of the run", config::Source::kEnvironment, ""},
                      {"mode", "direct", config::Source::kFlag, ""},
                      {"", "", config::Source::kUserFile, "/a"},
                      {"preallocate", "false", config::Source::kThirdParty, "TF_X=a b"}};
  const std::string ends = " -- ./train; ration report run.jsonl";
  const std::vector<events::Summary> refused = {refused_by(events::Reason::limit)};
  cli::RunRequest request = run_of({"./train"});
  INFO("an outer run has set the mode");
  CHECK(next_step(request, settings, refused, {}) ==
        "to see what held the memory: RATION_LIMIT=1g RATION_MODE=direct TF_X='a b' ration run --log run.jsonl "
        "--stacks native" +
            ends);
  request.flags = {{option("mode"), "direct"}};
  settings.groups.emplace_back();
  CHECK(next_step(request, settings, refused, {}) ==
        "to see what held the memory: RATION_LIMIT=1g RATION_STATE_DIR=/s TF_X='a b' ration run --log run.jsonl "
        "--stacks native --mode direct" +
            ends);
}

TEST_CASE("where there are logs the next step is their report, and without stacks a run that has them") {
  config::Settings settings;
  settings.stacks = config::Stacks::kNative;
  events::Summary process = refused_by(events::Reason::device);
  const std::string report = "to see what held the memory: ration report a.jsonl 'b c.jsonl'";
  CHECK(next_step(run_of({"./train"}), settings, {process}, {"a.jsonl", "b c.jsonl"}) == report);
  process.program = "/usr/bin/python3.11";
  CHECK(next_step(run_of({"./train"}), settings, {process}, {"a.jsonl", "b c.jsonl"}) ==
        report + "; to see which functions allocated it: ration run --log run.jsonl --stacks python -- ./train; " +
            "ration report run.jsonl");
}
