#include "config/locks.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "config/options.h"
#include "config/settings_sources.h"
#include "config/values/quotes.h"

namespace ration::config {

namespace {

using Statements = std::vector<Statement>;

bool is_of_system(const Statement &each) {
  return each.origin.source == Source::kSystemFile || each.origin.source == Source::kDropIn;
}

template <class Condition>
Statement *strongest(Statements &statements, const Condition &meant) {
  const auto found = std::find_if(statements.begin(), statements.end(), meant);
  return found == statements.end() ? nullptr : &*found;
}

Statement *of_system(Statements &statements, std::string_view key) {
  return strongest(statements, [&](const Statement &each) { return each.origin.key == key && is_of_system(each); });
}

Statement *locked(Statements &statements, std::string_view key) {
  return strongest(statements, [&](const Statement &each) { return each.origin.key == key && each.origin.locked; });
}

Statement *locked_limit(Statements &statements) {
  return strongest(statements,
                   [](const Statement &each) { return each.origin.locked && each.option->effect == Effect::kLimits; });
}

// A locked statement that no file contains, implied by the locked statement `needs_it`.
Statement implied(std::string_view key, std::string value, const Statement &needs_it) {
  Origin origin{std::string(key), std::move(value), needs_it.origin.source, needs_it.origin.place, true};
  return {option_of_key(key), std::move(origin), {}, {}, false, needs_it.origin.written()};
}

bool names_ordinals(const Statement &limit) {
  Settings parsed;
  (void)limit.option->read(parsed, *limit.option, limit.origin.value);
  const auto is_ordinal = [](const LimitItem &item) { return item.ordinal >= 0; };
  return std::any_of(parsed.limit.begin(), parsed.limit.end(), is_ordinal) ||
         std::any_of(parsed.groups.begin(), parsed.groups.end(), [&](const Settings::Group &group) {
           return std::any_of(group.limit.begin(), group.limit.end(), is_ordinal);
         });
}

}  // namespace

void lock_what_locks_need(Statements &statements) {
  Statements more;
  const Statement *limit = locked_limit(statements);
  const Statement *managed = of_system(statements, "managed");
  const bool counted = managed != nullptr && managed->wrong.empty() && managed->origin.value == "count";
  if (limit != nullptr && !counted) {
    more.push_back(implied("managed", "limit", *limit));
  }
  Statement *group = of_system(statements, "group");
  if (const Statement *group_limit = locked(statements, "group_limit"); group != nullptr && group_limit != nullptr) {
    group->needed_by = group->origin.locked ? "" : group_limit->origin.written();
    group->origin.locked = true;
  }
  const Statement *held = locked(statements, "group");
  held = held != nullptr ? held : locked(statements, "container_limit");
  if (held != nullptr) {
    if (Statement *folder = of_system(statements, "state_dir")) {
      folder->needed_by = folder->origin.locked ? "" : held->origin.written();
      folder->origin.locked = true;
    } else {
      more.push_back(implied("state_dir", Settings().state_folder(), *held));
    }
  }
  std::move(more.begin(), more.end(), std::back_inserter(statements));
}

bool renumbers_devices(const char *const *environment) {
  constexpr std::string_view kVariables[] = {"CUDA_VISIBLE_DEVICES=", "CUDA_DEVICE_ORDER="};
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    for (const std::string_view variable : kVariables) {
      if (entry.substr(0, variable.size()) == variable) {
        return true;
      }
    }
  }
  return false;
}

bool is_enforced(const std::string &folder) {
  return !folder.empty() && access((folder + "/enforced").c_str(), F_OK) == 0;
}

std::vector<std::string> escapable_locks(const FileReading &reading, const std::string &path,
                                         const std::string &system_folder) {
  std::vector<std::string> lines;
  std::error_code gone;
  std::filesystem::path folder = std::filesystem::absolute(path, gone).parent_path();
  folder = folder.filename() == kDropInFolder ? folder.parent_path() : folder;
  bool is_lifted = !is_enforced(folder.string()) && !is_enforced(system_folder);
  const auto states = [&](std::string_view key, std::string_view value = {}) {
    return std::any_of(reading.statements.begin(), reading.statements.end(), [&](const Statement &each) {
      return each.origin.key == key && (value.empty() || each.origin.value == value);
    });
  };
  for (const Statement &each : reading.statements) {
    if (!each.origin.locked) {
      continue;
    }
    const auto warn = [&](std::string_view what) { lines.push_back(each.origin.written() + ": " + std::string(what)); };
    if (std::exchange(is_lifted, false)) {  // once a file
      warn("RATION_DISABLE=1 lifts the locks of this file; to forbid that, create " +
           printable(system_folder + "/enforced"));
    }
    const auto is_beside = [&](const Statement &other) {
      return !other.in_rule && other.origin.locked && other.origin.key == each.origin.key;
    };
    if (each.in_rule && std::none_of(reading.statements.begin(), reading.statements.end(), is_beside)) {
      warn(
          "this lock holds only programs that the rule matches; a copy with another name, or other arguments, escapes "
          "it; lock the key outside of rules too");
    }
    if (each.option->effect == Effect::kLimits && names_ordinals(each)) {
      warn(
          "ordinals change with CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER; where one of these is set, the smallest "
          "size holds on every device; name devices by UUID");
    }
    if (each.origin.key == "group_limit" && !states("group")) {
      warn(
          "this file sets no group, so every group that a user names may take as much; set group, which is then "
          "locked too");
    }
    if (each.option->effect == Effect::kLimits && states("managed", "count")) {
      warn("managed = count excludes managed memory from it");
    }
  }
  return lines;
}

}  // namespace ration::config
