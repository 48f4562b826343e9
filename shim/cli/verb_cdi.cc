// `ration cdi`: writes a Container Device Interface specification, whose devices are shares of a GPU. Layer: cli.
//
// The format is CNCF's Container Device Interface, SPEC.md. Version 0.5.0 is the first whose device names may begin
// with a digit; nothing newer is used, so that the engines of older distributions accept the file.
// Design: design/settings.md#engines
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "cli/base/exit_status.h"
#include "cli/base/log.h"
#include "cli/base/verbs.h"
#include "cli/run/run_preparation.h"
#include "config/options.h"
#include "config/settings.h"
#include "config/values/quotes.h"
#include "config/values/size.h"
#include "logs/output/whole_file.h"

namespace ration::cli {

namespace {

using OrderedJson = nlohmann::ordered_json;
namespace fs = std::filesystem;

// Where the container finds the files that it needs from us.
constexpr const char *kLibraryInside = "/usr/lib/ration/libration.so";
constexpr const char *kCoreInside = "/usr/lib/ration/libration-core.so";
constexpr const char *kStateInside = "/run/ration";
constexpr const char *kPreloadFile = "/etc/ld.so.preload";
constexpr const char *kSettingsFolder = "/etc/ration";

struct Share {
  std::string name;  // the device's name
  std::string size;  // in the form that Ration accepts
};

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// True for a device name that the specification allows.
bool is_device_name(const std::string &name) {
  return !name.empty() && is_alphanumeric(name.front()) && is_alphanumeric(name.back()) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return is_alphanumeric(c) || std::strchr("_-.:", c) != nullptr; });
}

// Throws a sentence if the word is wrong.
Share share_of(const std::string &word) {
  const std::size_t equal = word.find('=');
  Share share{word.substr(0, equal == std::string::npos ? 0 : equal),
              word.substr(equal == std::string::npos ? 0 : equal + 1)};
  const auto size = config::parse_size(share.size);
  if (const std::string *wrong = std::get_if<std::string>(&size)) {
    throw config::in_quotes(word) + ": " + *wrong;
  }
  if (equal == std::string::npos) {
    share.name = word;
    if (const std::size_t percent = share.name.find('%'); percent != std::string::npos) {
      share.name.replace(percent, 1, "pct");  // the name of a device must not have a percent sign
    }
  }
  if (!is_device_name(share.name)) {
    throw config::in_quotes(word) + ": " + config::in_quotes(share.name) +
        " is not a name for a device: letters, digits and _ - . : between them; write NAME=SIZE";
  }
  return share;
}

std::vector<Share> shares_of(const std::vector<std::string> &words) {
  std::vector<Share> shares;
  for (const std::string &word : words) {
    Share share = share_of(word);
    for (const Share &other : shares) {
      if (other.name == share.name) {
        throw "two shares are named " + config::in_quotes(share.name);
      }
    }
    shares.push_back(std::move(share));
  }
  return shares;
}

// The absolute path of the folder, which is created if it does not exist: an engine does not start a container if the
// source of a mount is missing.
std::string made_folder(const std::string &given, mode_t mode) {
  std::string path = fs::absolute(given).lexically_normal().string();
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (mkdir(path.c_str(), mode) != 0 && errno != EEXIST) {
    throw Refusal{kOurError, "cannot create " + config::in_quotes(path) + ": " + std::strerror(errno)};
  }
  if (!fs::is_directory(path, error)) {
    throw config::in_quotes(path) + " is not a folder";
  }
  if ((mode & S_IROTH) != 0 && chmod(path.c_str(), mode) != 0) {  // whatever the umask
    throw Refusal{kOurError, "cannot make " + config::in_quotes(path) + " readable: " + std::strerror(errno)};
  }
  return path;
}

OrderedJson mount(const std::string &outside, const std::string &inside, bool writable = false) {
  return {{"hostPath", outside},
          {"containerPath", inside},
          {"options", {writable ? "rw" : "ro", "rbind", "nosuid", "nodev"}}};
}

void write_or_refuse(const std::string &path, const std::string &text) {
  if (const std::string problem = logs::replace_file(path, text); !problem.empty()) {
    throw Refusal{kOurError, "cannot write " + config::in_quotes(path) + ": " + problem};
  }
}

std::string config_of(const CdiRequest &request, const Share &share) {
  OrderedJson settings = {{"container_limit", share.size}};
  OrderedJson locked = {"container_limit"};
  if (request.group) {
    settings["group"] = *request.group;
    locked.push_back("group");
  }
  if (request.group_limit) {
    settings["group_limit"] = *request.group_limit;
    locked.push_back("group_limit");
  }
  if (request.state_folder) {
    settings["state_dir"] = kStateInside;
  }
  settings["locked"] = locked;
  return settings.dump(2) + "\n";
}

OrderedJson specification(const CdiRequest &request, const std::vector<Share> &shares) {
  const Library library = find_library();
  OrderedJson mounts = {mount(fs::canonical(library.preload).string(), kLibraryInside),
                        mount(fs::canonical(library.core).string(), kCoreInside)};
  OrderedJson environment = OrderedJson::array();
  if (request.state_folder) {
    mounts.push_back(mount(made_folder(*request.state_folder, 0700), kStateInside, true));
  }
  std::string enforced;
  if (request.enforce) {
    if (const fs::path parent = fs::absolute(*request.enforce + "/.").lexically_normal().parent_path().parent_path();
        !fs::is_directory(parent)) {
      throw Refusal{kOurError, "cannot create " + config::in_quotes(*request.enforce) + ": there is no folder " +
                                   config::in_quotes(parent.string())};
    }
    enforced = made_folder(*request.enforce, 0755);
    write_or_refuse(enforced + "/ld.so.preload", std::string(kLibraryInside) + "\n");
    mounts.push_back(mount(enforced + "/ld.so.preload", kPreloadFile));
  } else {
    environment.push_back("LD_PRELOAD=" + std::string(kLibraryInside));
    const auto add = [&](const char *name, const std::optional<std::string> &value) {
      if (value) {
        environment.push_back(std::string(name) + "=" + *value);
      }
    };
    add("RATION_GROUP", request.group);
    add("RATION_GROUP_LIMIT", request.group_limit);
    add("RATION_STATE_DIR", request.state_folder ? std::optional<std::string>(kStateInside) : std::nullopt);
  }
  OrderedJson devices = OrderedJson::array();
  for (const Share &share : shares) {
    OrderedJson edits = {{"env", {"RATION_CONTAINER_LIMIT=" + share.size}}};
    if (request.enforce) {
      const std::string folder = made_folder(enforced + "/" + share.name, 0755);
      write_or_refuse(folder + "/config.json", config_of(request, share));
      write_or_refuse(folder + "/enforced", "RATION_DISABLE has no effect here.\n");
      edits = {{"mounts", {mount(folder, kSettingsFolder)}}};
    }
    devices.push_back({{"name", share.name}, {"containerEdits", edits}});
  }
  OrderedJson common = {{"mounts", mounts}};
  if (!environment.empty()) {
    common["env"] = environment;
  }
  return {{"cdiVersion", "0.5.0"}, {"kind", "ration.dev/share"}, {"devices", devices}, {"containerEdits", common}};
}

void check_option(const char *key, const std::optional<std::string> &value) {
  const config::Option &option = *config::option_of_key(key);
  config::Settings settings;
  if (const std::string wrong = value ? option.read(settings, option, *value) : ""; !wrong.empty()) {
    throw std::string(option.flag) + " " + config::shown(*value) + ": " + wrong;
  }
}

void check_cdi(const CdiRequest &request) {
  check_option("group", request.group);
  check_option("group_limit", request.group_limit);
  if (request.group_limit && !request.group) {
    throw std::string("--group-limit needs --group");
  }
  if (request.group && !request.state_folder) {
    throw std::string("--group needs --state-dir: containers share a group through a folder that all of them have");
  }
}

}  // namespace

int run_verb(const CdiRequest &request) try {
  check_cdi(request);
  const std::string text = specification(request, shares_of(request.shares)).dump(2) + "\n";
  if (request.output && *request.output != "-") {
    write_or_refuse(*request.output, text);
    return 0;
  }
  std::cout << text;
  return flush_stdout() ? 0 : kOurError;
} catch (const std::string &wrong) {
  return usage_error("cdi: " + wrong, kUsageError);
} catch (const Refusal &refusal) {  // there is no library, or a file cannot be written
  return usage_error("cdi: " + refusal.line, refusal.exit_status);
} catch (const fs::filesystem_error &error) {
  return usage_error("cdi: " + std::string(error.what()), kOurError);
}

}  // namespace ration::cli
