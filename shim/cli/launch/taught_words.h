// Verbs and options of similar tools, and what to write for `ration` instead. Layer: cli.
// Threads: pure functions.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

namespace ration::cli {

// What to write instead; empty if `word` is from no such tool. `word`: a verb, an option, or both separated by a blank.
inline std::string_view ours_for(std::string_view word) {
  struct Taught {
    std::string_view theirs, ours;
  };
  constexpr Taught kTaught[] = {
      {"exec", "ration run -- COMMAND"},
      {"start", "ration run -- COMMAND"},
      {"launch", "ration run -- COMMAND"},
      {"record", "ration run --log run.jsonl -- COMMAND"},
      {"profile", "ration run --log run.jsonl -- COMMAND"},
      {"trace", "ration run --log run.jsonl -- COMMAND"},
      {"logs", "ration run --log run.jsonl -- COMMAND; ration report run.jsonl"},
      {"kill", "kill PID, or the key x in ration top"},
      {"stop", "kill PID, or the key x in ration top"},
      {"status", "ration ps"},
      {"smi", "ration ps"},
      {"list", "ration ps"},
      {"ls", "ration ps"},
      {"stat", "ration ps"},
      {"monitor", "ration top"},
      {"watch", "ration ps --watch"},
      {"stats", "ration report LOG"},
      {"show", "ration report LOG"},
      {"summary", "ration report LOG"},
      {"analyze", "ration report LOG"},
      {"leaks", "ration report LOG --leaks"},
      {"html", "ration report LOG -o run.html"},
      {"page", "ration report LOG -o run.html"},
      {"flamegraph", "ration convert LOG --to collapsed"},
      {"compare", "ration diff A B"},
      {"limit", "ration run --limit SIZE -- COMMAND, or ration set GROUP|PID --limit SIZE"},
      {"config", "ration env, ration env --files or ration env --check FILE"},
      {"info", "ration env, or ration doctor"},
      {"version", "ration --version"},
      {"run -m", "--limit"},
      {"set --group", "its name alone: ration set GROUP --limit SIZE"},
      {"set --pid", "its number alone: ration set PID --limit SIZE"},
      {"ps -a", "--all"},
      {"top -n", "ration ps"},
      {"report --growth", "ration check LOG --no-growth; ration report LOG shows it too"},
      {"report --top", "ration report LOG --json for all; the report itself names the largest"},
      {"convert --format", "--to"},
      {"--format", "--json"},
      {"--fail-on-leak", "--no-leaks"},
      {"--fail-on-leaks", "--no-leaks"},
      {"run --find-min", "ration find-min -- COMMAND"},
      {"ps -w", "--watch"},
      {"top -d", "--interval"},
      {"--memory", "--limit"},
      {"--mem", "--limit"},
      {"--memory-limit", "--limit"},
      {"--max-memory", "--limit"},
      {"--gpu-memory", "--limit"},
      {"--gpu-mem", "--limit"},
      {"--mem-fraction", "--limit"},
      {"--html", "-o FILE.html"},
      {"top --once", "ration ps"},
      {"top --json", "ration ps --watch --json"},
      {"--follow", "--watch"},
      {"--live", "--watch"},
      {"--gpus", "the variable CUDA_VISIBLE_DEVICES"},
      {"--device", "the variable CUDA_VISIBLE_DEVICES"},
      {"--visible-devices", "the variable CUDA_VISIBLE_DEVICES"},
  };
  const auto found =
      std::find_if(std::begin(kTaught), std::end(kTaught), [&](const Taught &each) { return each.theirs == word; });
  return found == std::end(kTaught) ? std::string_view() : found->ours;
}

}  // namespace ration::cli
