// Asks the preloaded library about the driver's devices. The library reports them in the first line of its log, in a
// separate process that takes no device memory. Layer: cli.
#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/base/verbs.h"
#include "cli/launch/environment_block.h"
#include "cli/run/run_preparation.h"
#include "config/settings.h"

namespace ration::cli {

inline constexpr char kOwnProgram[] = "/proc/self/exe";

// Descriptors for the standard streams of a process; -1: /dev/null.
struct ProbeStreams {
  int input = -1, output = -1, messages = -1;
};
// Starts the program at `path`; the first of `words` is the program's name.
bool start_probe(const EnvironmentBlock &environment, const std::string &path, std::vector<std::string> words,
                 const ProbeStreams &streams, pid_t &process);

struct LibraryAnswer {
  std::string meta;  // the first line of the log; empty: there is none
  std::string said;  // what was written to stderr
};
// The result is empty if no driver answers within ten seconds. `other`: a library to ask instead of the installed one.
LibraryAnswer ask_library(const RunRequest &request, EnvironmentBlock environment,
                          const std::optional<Library> &other = std::nullopt);

// The member `devices` of the log's first line (shim/events/README.md). Empty if no driver answers within ten seconds.
nlohmann::json ask_driver(const RunRequest &request, EnvironmentBlock environment);

// The driver's own list of devices (ordinal, UUID, size), from a process without the library. nullopt if no driver
// answers within ten seconds.
std::optional<std::vector<config::DeviceIdentity>> ask_devices(const EnvironmentBlock &environment);

// The output of the program at `path` when run with these words (the first is its name); includes stderr if
// `with_messages`. At most 64 KiB, and cut short if the program takes longer than ten seconds.
std::string output_of(const EnvironmentBlock &environment, const std::string &path,
                      const std::vector<std::string> &words, bool with_messages);

// The output of `ration probe QUESTION [FILES]`, run in `environment` but without the library.
std::string ask_without_library(const EnvironmentBlock &environment, const char *question,
                                const std::vector<std::string> &files = {});

// Runs in the process that ask_devices starts: prints the number of devices, then one line per device. Returns the exit
// status.
int answer_devices();

// Runs in the process that ask_library starts: initialises the driver and queries a device's size, a call that the
// library hooks. Returns the exit status.
int answer_library();

}  // namespace ration::cli
