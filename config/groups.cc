#include "config/groups.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "config/values/option_parsers.h"
#include "config/values/quotes.h"
#include "config/values/text_hash.h"

namespace ration::config {

namespace {

using Group = Settings::Group;

constexpr std::size_t kLongestGroup = 64;
constexpr std::string_view kGroupCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
constexpr std::size_t kTreeDigits = 16;
constexpr std::size_t kMostTrees = 256;  // each tree has a file that the process joins

void append(const LimitMap &from, LimitMap &to) {
  to.insert(to.end(), from.begin(), from.end());
}

Group *find(Settings &settings, Group::Kind kind, std::string_view name) {
  const auto found = std::find_if(settings.groups.begin(), settings.groups.end(),
                                  [&](const Group &each) { return each.kind == kind && each.name == name; });
  return found == settings.groups.end() ? nullptr : &*found;
}

// Finds a group, or inserts a new one after the groups of its kind.
Group &group_of(Settings &settings, Group::Kind kind, std::string_view name) {
  if (Group *found = find(settings, kind, name)) {
    return *found;
  }
  const auto place =
      std::find_if(settings.groups.begin(), settings.groups.end(), [&](const Group &each) { return each.kind > kind; });
  return *settings.groups.insert(place, Group{kind, std::string(name), {}, false});
}

Group &tree_of(Settings &settings, std::string_view number) {
  return group_of(settings, Group::Kind::kTree, number);
}

// The one named group; its name is empty if only its limit is set.
Group &named_of(Settings &settings) {
  std::vector<Group> &groups = settings.groups;
  const bool is_last = !groups.empty() && groups.back().kind == Group::Kind::kNamed;
  return is_last ? groups.back() : groups.emplace_back();
}

// Ration's own limit of the container gives the same name whether a variable or a file states it.
std::string name_of_own(std::string_view value) {
  return container_name("RATION_CONTAINER_LIMIT=" + std::string(value));
}

// Parses the item of one tree. If its number is not valid, its limit becomes a limit of this process alone.
std::string read_tree(Settings &settings, std::string_view item) {
  const std::size_t equals = item.find('=');
  const std::string_view number = item.substr(0, equals);
  const bool malformed =
      number.size() != kTreeDigits || number.find_first_not_of("0123456789abcdef") != std::string_view::npos;
  if (malformed) {
    // The item may be just a limit.
    (void)parse_limit(item.substr(equals == std::string_view::npos ? 0 : equals + 1), settings.stray_group_limit);
    return in_quotes(item) +
           " does not begin with a number that `ration run --group-tree` made; write, for example, ration run "
           "--group-tree=8GiB, which sets this variable for what it starts";
  }
  if (find(settings, Group::Kind::kTree, number) != nullptr) {
    (void)parse_limit(equals == std::string_view::npos ? "" : item.substr(equals + 1), tree_of(settings, number).limit);
    return std::string(number) + " is there twice";
  }
  Group &tree = tree_of(settings, number);
  return equals == std::string_view::npos ? std::string() : parse_limit(item.substr(equals + 1), tree.limit);
}

bool is_wrong(const std::vector<Problem> &problems, std::string_view key) {
  return std::any_of(problems.begin(), problems.end(),
                     [&](const Problem &each) { return each.key == key && each.fatal_for_cli; });
}

std::string where_to_name(const Origin &origin) {
  return origin.source == Source::kFlag ? " (--group)" : " (RATION_GROUP)";
}

// Assigns a limit whose group has no name: to the innermost tree or, if there is no tree, to this process alone.
// Design: design/groups.md#group-limits
void assign_nameless(Settings &settings, const Group &nameless, std::vector<Problem> &problems) {
  const bool misnamed = is_wrong(problems, "group");
  const auto innermost = std::find_if(settings.groups.rbegin(), settings.groups.rend(),
                                      [](const Group &each) { return each.kind == Group::Kind::kTree; });
  if (innermost != settings.groups.rend() && !misnamed) {
    append(nameless.limit, innermost->limit);
    innermost->in_doubt = innermost->in_doubt || nameless.in_doubt;
    return;
  }
  append(nameless.limit, settings.stray_group_limit);
  settings.limit_in_doubt = settings.limit_in_doubt || nameless.in_doubt;
  if (nameless.limit.empty() || nameless.in_doubt) {
    return;  // there is no limit to assign, or its error was already reported
  }
  const auto origin = std::find_if(settings.origins.begin(), settings.origins.end(),
                                   [](const Origin &each) { return each.key == "group_limit"; });
  problems.push_back(
      problem_at("group_limit", origin->as_given(),
                 misnamed ? "its group's name cannot be used" : "no group is given" + where_to_name(*origin),
                 "; enforced for this process alone", false));
}

}  // namespace

std::string read_group(Settings &settings, const Option &, std::string_view value) {
  if (value.size() > kLongestGroup || value.find_first_not_of(kGroupCharacters) != std::string_view::npos) {
    return "a group name is 1 to 64 characters from A-Z a-z 0-9 . _ -";
  }
  named_of(settings).name = std::string(value);
  return {};
}

std::string read_group_limit(Settings &settings, const Option &, std::string_view value) {
  return parse_limit(value, named_of(settings).limit);
}

std::string read_container_limit(Settings &settings, const Option &, std::string_view value) {
  return parse_limit(value, group_of(settings, Group::Kind::kContainer, name_of_own(value)).limit);
}

std::string read_group_tree(Settings &settings, const Option &, std::string_view value) {
  std::string first_wrong;
  if (const auto named = std::count(value.begin(), value.end(), ';') + 1; std::cmp_greater(named, kMostTrees)) {
    first_wrong = "it lists " + std::to_string(named) + " trees, and " + std::to_string(kMostTrees) +
                  " is the most; start fewer `ration run --group-tree` inside one another";
  }
  std::size_t read = 0;
  for (std::size_t begin = 0; begin <= value.size() && read < kMostTrees; ++read) {
    const std::size_t end = std::min(value.find(';', begin), value.size());
    const std::string wrong = read_tree(settings, value.substr(begin, end - begin));
    first_wrong = first_wrong.empty() ? wrong : first_wrong;
    begin = end + 1;
  }
  return first_wrong;
}

bool concerns_groups(const Option &option) {
  return option.key == "container_limit" || option.key == "group_limit" || option.key == "group_tree";
}

std::string container_name(std::string_view stated) {
  const std::uint64_t hash = hash_of(stated);
  std::array<char, 9> digits{};
  std::snprintf(digits.data(), digits.size(), "%08x", static_cast<unsigned>((hash ^ (hash >> 32)) & UINT32_MAX));
  return digits.data();
}

void add_group(const Group &group, Settings &settings) {
  Group &own = group.kind == Group::Kind::kNamed ? named_of(settings) : group_of(settings, group.kind, group.name);
  append(group.limit, own.limit);
  own.in_doubt = own.in_doubt || group.in_doubt;
}

void doubt_container_limit(std::string_view value, Settings &settings) {
  group_of(settings, Group::Kind::kContainer, name_of_own(value)).in_doubt = true;
}

void merge_groups(const Settings &other, Settings &settings) {
  append(other.stray_group_limit, settings.stray_group_limit);
  for (const Group &group : other.groups) {
    add_group(group, settings);
  }
}

void resolve_groups(Settings &settings, std::vector<Problem> &problems) {
  std::vector<Group> &groups = settings.groups;
  const bool trees = !groups.empty() && groups.front().kind == Group::Kind::kTree;
  if (is_wrong(problems, "group_tree")) {
    settings.limit_in_doubt = settings.limit_in_doubt || !trees;
    for (Group &each : groups) {
      each.in_doubt = each.in_doubt || each.kind == Group::Kind::kTree;
    }
  }
  if (is_wrong(problems, "group_limit")) {
    named_of(settings).in_doubt = true;  // creates the group, which an empty value has not done yet
  }
  if (groups.empty() || groups.back().kind != Group::Kind::kNamed) {
    return;
  }
  if (is_wrong(problems, "group")) {
    groups.back().name.clear();
  }
  if (groups.back().name.empty()) {
    const Group nameless = std::move(groups.back());
    groups.pop_back();
    assign_nameless(settings, nameless, problems);
  }
}

void check_guarantee(Settings &settings, std::vector<Problem> &problems) {
  const auto origin = std::find_if(settings.origins.begin(), settings.origins.end(),
                                   [](const Origin &each) { return each.key == "guarantee"; });
  const bool is_named = std::any_of(settings.groups.begin(), settings.groups.end(), [](const Group &each) {
    return each.kind == Group::Kind::kNamed && !each.name.empty();
  });
  if (!settings.guarantee.empty() && origin != settings.origins.end() && !is_named) {
    origin->instead = "none";
    problems.push_back(
        problem_at("guarantee", origin->as_given(),
                   "a guarantee is part of a group's limit, and no group is given" + where_to_name(*origin),
                   "; nothing is guaranteed", false));
  }
}

}  // namespace ration::config
