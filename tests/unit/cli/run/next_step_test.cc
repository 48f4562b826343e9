#include "cli/run/next_step.h"

#include "catch.h"
#include "config/options.h"

using namespace ration;
using cli::next_step;

namespace {

std::vector<events::Summary> refused_by(events::Reason reason) {
  events::Summary process;
  process.devices.resize(2);
  process.devices[1].denied[static_cast<int>(reason)] = 1;
  return {events::Summary{}, process};
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
  CHECK(next_step(run_of({"./train"}), {events::Summary{}}, {}).empty());
  CHECK(next_step(run_of({"./train"}), refused_by(events::Reason::fault), {}).empty());
}

TEST_CASE("without a log the next step is the same run with one, by its own options") {
  cli::RunRequest request = run_of({"./train", "--name", "it's mine"});
  CHECK(
      next_step(request, refused_by(events::Reason::limit), {}) ==
      "to see what held the memory: ration run --log run.jsonl --stacks native -- ./train --name 'it'\\''s mine', then "
      "ration report run.jsonl");
  request.simulate = "8GiB";
  request.flags = {{option("limit"), "40%"}, {option("group_tree"), "2GiB"}, {option("stacks"), "none"}};
  request.command.resize(1);
  CHECK(next_step(request, refused_by(events::Reason::group), {}) ==
        "to see what held the memory: ration run --log run.jsonl --stacks native --sim 8GiB --limit 40% "
        "--group-tree=2GiB "
        "-- ./train, then ration report run.jsonl");
}

TEST_CASE("where there are logs the next step is their report") {
  CHECK(next_step(run_of({"./train"}), refused_by(events::Reason::device), {"a.jsonl", "b c.jsonl"}) ==
        "to see what held the memory: ration report a.jsonl 'b c.jsonl'");
}
