// Starts a program of our own under the library, and checks whether the library intercepts its calls. Layer: cli.
#include <nlohmann/json.hpp>

#include "cli/doctor/checkup.h"
#include "cli/run/driver_probe.h"
#include "config/values/quotes.h"

namespace ration::cli::doctor {

namespace {

std::string last_line(std::string text) {
  text.erase(text.find_last_not_of('\n') + 1);
  return text.substr(text.rfind('\n') + 1);
}

bool prevents_hooks(const Finding &finding) {
  switch (finding.check) {
    case Check::library_missing:
    case Check::library_unreadable:
    case Check::library_cut_short:
    case Check::library_noexec:
    case Check::library_other:
    case Check::library_damaged:
    case Check::library_architecture:
    case Check::library_old_c_library:
    case Check::library_path:
    case Check::driver_missing:
    case Check::driver_is_stub:
    case Check::driver_incomplete:
    case Check::driver_fails:
    case Check::device_none:
    case Check::disabled:
    case Check::process_disabled:
      return true;
    default:
      return false;
  }
}

}  // namespace

Findings check_hooks(const Checkup &checkup, const Findings &earlier) {
  for (const Finding &each : earlier) {
    if (prevents_hooks(each)) {
      return {};
    }
  }
  const std::optional<Library> other = other_library(checkup);
  const LibraryAnswer answer = ask_library(checkup.run, checkup.probed, other);
  const std::string said = config::printable(last_line(answer.said));
  if (said.find("another build") != std::string::npos) {
    return {{Check::library_other_build, said, {}}};
  }
  const auto meta = nlohmann::json::parse(answer.meta, nullptr, false);
  if (!meta.is_object()) {
    return {{Check::hooks_silent,
             "a program that was started under the library met no hook" + (said.empty() ? "" : "; it said: " + said),
             {}}};
  }
  if (const std::string version = meta.value("ver", ""); !other && version != RATION_VERSION) {
    return {{Check::library_other_build,
             "the command is Ration " RATION_VERSION ", the library " + config::printable(version),
             {}}};
  }
  return {{Check::hooks,
           "a program that was started under the library reached it; mode " + config::printable(meta.value("mode", "")),
           {}}};
}

}  // namespace ration::cli::doctor
