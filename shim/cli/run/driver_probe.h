// What the preloaded library says of the driver's devices: its log's first line, from a process that is started for it
// and takes no device memory. Layer: cli.
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

// Descriptors for the streams of a process; -1: /dev/null.
struct ProbeStreams {
  int input = -1, output = -1, messages = -1;
};
// The first of the words is its name.
bool start_probe(const EnvironmentBlock &environment, const std::string &path, std::vector<std::string> words,
                 const ProbeStreams &streams, pid_t &process);

struct LibraryAnswer {
  std::string meta;  // that line; empty: there is none
  std::string said;  // on stderr
};
// Empty where no driver answers within ten seconds. `other`: a library that is asked instead of the installed one.
LibraryAnswer ask_library(const RunRequest &request, EnvironmentBlock environment,
                          const std::optional<Library> &other = std::nullopt);

// The member `devices` of that line (shim/events/README.md); empty where no driver answers within ten seconds.
nlohmann::json ask_driver(const RunRequest &request, EnvironmentBlock environment);

// The driver's devices as it has them, from a process without the library: ordinal, UUID, size. nullopt where no driver
// answers within ten seconds.
std::optional<std::vector<config::DeviceIdentity>> ask_devices(const EnvironmentBlock &environment);

// What the program at `path` prints with these words (the first is its name), on stderr too `with_messages`. At most
// 64 KiB, and cut short where it takes longer than ten seconds.
std::string output_of(const EnvironmentBlock &environment, const std::string &path,
                      const std::vector<std::string> &words, bool with_messages);

// The same of `ration probe QUESTION [FILES]` in `environment` without the library.
std::string ask_without_library(const EnvironmentBlock &environment, const char *question,
                                const std::vector<std::string> &files = {});

// The process that is started for ask_devices: prints how many there are, and a line for each. Returns the exit status.
int answer_devices();

// The started process: initialises the driver, and asks for a device's size, which meets the library. Returns the exit
// status.
int answer_library();

}  // namespace ration::cli
