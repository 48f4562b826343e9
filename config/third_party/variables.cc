// The table of third-party variables, and their import, which ranks them below every setting of Ration. Layer: config.
#include <algorithm>
#include <unordered_set>

#include "config/groups.h"
#include "config/options.h"
#include "config/problem.h"
#include "config/third_party/parsers.h"
#include "config/values/quotes.h"

namespace ration::config {

namespace {

enum class Sets {
  kLimit,    // all third-party limits apply together, so the smallest wins; a malformed one counts as a malformed limit
  kCeiling,  // like kLimit, but a limit of Ration does not replace it: the driver enforces it in any case
  kContainer,  // like kLimit, for all processes of the container together
  kSettings,   // if two variables set one key, the first in the table wins; a malformed one is ignored
  kNothing     // listed so that `ration env` can say why it is not a limit
};

struct Variable {
  std::string_view name;  // if the name ends in '_', the ordinal of a device follows
  Parser *parse;
  Sets sets;
  std::string_view reason = {};  // for kNothing only
};

constexpr std::string_view kOwnPool = "only its own framework reads it; RATION_LIMIT limits any program";

// The variables known on 2026-11-28.
constexpr Variable kVariables[] = {
    {"XLA_CLIENT_MEM_FRACTION", parse_mem_fraction, Sets::kLimit},
    {"XLA_PYTHON_CLIENT_MEM_FRACTION", parse_mem_fraction, Sets::kLimit},
    {"XLA_PYTHON_CLIENT_PREALLOCATE", parse_xla_preallocate, Sets::kSettings},
    {"XLA_PYTHON_CLIENT_ALLOCATOR", parse_xla_allocator, Sets::kSettings},
    {"TF_GPU_ALLOCATOR", parse_tf_allocator, Sets::kSettings},
    {"TF_FORCE_GPU_ALLOW_GROWTH", parse_tf_growth, Sets::kSettings},
    {"TF_FORCE_UNIFIED_MEMORY", parse_tf_unified_memory, Sets::kSettings},
    {"TF_CUDA_MALLOC_ASYNC_SUPPORTED_PREALLOC", parse_tf_async_preallocate, Sets::kSettings},
    {"TF_DETERMINISTIC_ALLOCATOR", parse_tf_deterministic, Sets::kSettings},
    {"GPU_MEMORY_LIMIT", parse_plain_bytes, Sets::kContainer},             // KAI
    {"GPU_PORTION", parse_portion, Sets::kContainer},                      // KAI, older pods
    {"NVIDIA_GPU_MEMORY_LIMIT", parse_plain_mebibytes, Sets::kContainer},  // KAI and NVIDIA's container toolkit
    {"CUDA_DEVICE_MEMORY_LIMIT", parse_device_limit, Sets::kContainer},    // HAMi
    {"CUDA_DEVICE_MEMORY_LIMIT_", parse_device_limit, Sets::kContainer},   // HAMi
    {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", parse_pinned_limit, Sets::kCeiling},
    {"NVIDIA_GPU_MEMORY_REQUEST", nullptr, Sets::kNothing,
     "a scheduler reserves it for the container; RATION_GUARANTEE does that for a process of a group"},
    {"XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB", nullptr, Sets::kNothing,
     "it sizes a pool inside JAX; Ration serves all memory from one pool"},
    {"TF_DEVICE_MIN_SYS_MEMORY_IN_MB", nullptr, Sets::kNothing,
     "TensorFlow leaves that much free; RATION_RESERVE does that for any program"},
    {"TF_ENABLE_GPU_GARBAGE_COLLECTION", nullptr, Sets::kNothing,
     "free pieces always go back before a request is refused"},
    {"TF_GPU_HOST_MEM_LIMIT_IN_MB", nullptr, Sets::kNothing, "pinned memory is counted, not limited"},
    {"CUPY_GPU_MEMORY_LIMIT", nullptr, Sets::kNothing, kOwnPool},
    {"JULIA_CUDA_SOFT_MEMORY_LIMIT", nullptr, Sets::kNothing, kOwnPool},
    {"JULIA_CUDA_HARD_MEMORY_LIMIT", nullptr, Sets::kNothing, kOwnPool},
    {"PYTORCH_CUDA_ALLOC_CONF", nullptr, Sets::kNothing, kOwnPool},
    {"PYTORCH_ALLOC_CONF", nullptr, Sets::kNothing, kOwnPool},
    {"TENSOR_FUSION_CUDA_MEM_LIMIT", nullptr, Sets::kNothing,
     "it belongs to another library; the setting here is RATION_LIMIT=0=8GiB,GPU-1f2e=8GiB"},
    {"NVSHARE_ENABLE_SINGLE_OVERSUB", nullptr, Sets::kNothing,
     "Ration swaps nothing out; RATION_MANAGED=count leaves managed memory unlimited"},
};

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

// A variable of the environment that matches a row of the table.
struct Found {
  const Variable &row;
  std::string_view name, value;

  [[nodiscard]] std::string_view ordinal() const { return name.substr(row.name.size()); }
  [[nodiscard]] std::string written() const {
    return ThirdPartyVariable{std::string(name), std::string(value), {}, {}}.written();
  }
};

bool is_named_by(const Variable &row, std::string_view name) {
  const std::string_view ordinal = name.substr(std::min(row.name.size(), name.size()));
  return row.name.back() != '_' ? name == row.name
                                : starts_with(name, row.name) && !ordinal.empty() && ordinal.size() <= 5 &&
                                      ordinal.find_first_not_of("0123456789") == std::string_view::npos;
}

class Importer {
 public:
  Importer(Environment environment, const MalformedLimits &malformed, Settings &settings,
           std::vector<Problem> &problems)
      : environment_(environment), settings_(settings), problems_(problems) {
    const auto written = [&](std::string_view key) {
      const Origin *origin = settings.origin_of(key);
      return origin == nullptr ? std::string() : origin->written();
    };
    limit_overridden_by_ = malformed.limit ? "" : written("limit");
    if (!malformed.limit && !malformed.container_limit) {
      const std::string own = written("container_limit");
      container_overridden_by_ = own.empty() ? written("limit") : own;
    }
  }

  void import_variable(const Found &found) {
    if (found.row.sets == Sets::kNothing) {
      return conclude(found, Disposition::kIgnored, std::string(found.row.reason));
    }
    ParsedValue parsed = found.row.parse(found.value, environment_);
    if (!parsed.ignored.empty()) {
      return conclude(found, Disposition::kIgnored, parsed.ignored + likely_cause(found.written()));
    }
    found.row.sets == Sets::kSettings ? import_settings(found, parsed) : import_limit(found, parsed);
  }

  // Call once, after the last variable.
  void add_containers() {
    for (Container &each : containers_) {
      std::sort(each.stated.begin(), each.stated.end());  // programs may receive their environment in any order
      std::string all;
      for (const std::string &stated : each.stated) {
        all += stated + "\n";
      }
      each.group.name = container_name(all);
      add_group(each.group, settings_);
    }
  }

  void conclude(const Found &found, Disposition disposition, std::string reason) {
    settings_.third_party.push_back(
        {std::string(found.name), std::string(found.value), disposition, std::move(reason)});
  }

 private:
  // The variables of one owner, such as KAI or HAMi.
  struct Container {
    std::string_view owner;
    std::vector<std::string> stated;
    Settings::Group group{Settings::Group::Kind::kContainer, {}, {}, false};
  };

  Container &container_of(const Found &found) {
    const std::string_view name = found.row.name;
    const std::string_view owner = name.back() == '_' ? name.substr(0, name.size() - 1) : name;
    const auto known = std::find_if(containers_.begin(), containers_.end(),
                                    [&](const Container &each) { return each.owner == owner; });
    Container &container = known != containers_.end() ? *known : containers_.emplace_back(Container{owner, {}});
    container.stated.push_back(std::string(found.name) + "=" + std::string(found.value));
    return container;
  }

  void import_limit(const Found &found, ParsedValue &parsed) {
    const bool of_container = found.row.sets == Sets::kContainer;
    const std::string &stronger = of_container ? container_overridden_by_ : limit_overridden_by_;
    const bool is_ceiling = found.row.sets == Sets::kCeiling;
    if (!stronger.empty() && !is_ceiling) {
      return conclude(found, Disposition::kOverridden, stronger + " takes precedence");
    }
    Settings::Group *const group = of_container ? &container_of(found).group : nullptr;
    LimitMap &limit = of_container ? group->limit : settings_.limit;
    const std::string key = of_container ? "container_limit" : "limit";
    std::string text;
    for (LimitItem &item : parsed.limit) {
      if (!found.ordinal().empty()) {
        item.name = found.ordinal();
        item.ordinal = std::stoi(item.name);
      }
      item.stated = found.written();
      text += text.empty() ? "" : ",";
      text += item.name.empty() ? item.size.text() : item.name + "=" + item.size.text();
    }
    limit.insert(limit.end(), parsed.limit.begin(), parsed.limit.end());
    record(found, key, parsed.wrong.empty() ? text : std::string(found.value));
    if (!parsed.wrong.empty()) {
      (of_container ? group->in_doubt : settings_.limit_in_doubt) = true;
      settings_.origins.back().instead = kLimitInstead;
      problems_.push_back(problem_at(found.name, found.written(), parsed.wrong, kStrictestHolds, false));
      return conclude(found, Disposition::kRefused, problems_.back().sentence);
    }
    std::string more;
    for (const Assignment &each : parsed.settings) {
      more += assign_unless_set(found, each) ? ", " + std::string(each.key) + " = " + each.text : "";
    }
    conclude(found, Disposition::kHonoured,
             key + " = " + text + more + (stronger.empty() ? "" : ", beside " + stronger + ": the smaller holds"));
  }

  void import_settings(const Found &found, ParsedValue &parsed) {
    if (!parsed.wrong.empty()) {
      problems_.push_back(problem_at(found.name, found.written(), parsed.wrong, "; it is ignored", false));
      return conclude(found, Disposition::kIgnored, problems_.back().sentence);
    }
    const Assignment &first = parsed.settings.front();
    if (const Origin *stronger = settings_.origin_of(first.key)) {
      return first.confirms && stronger->source == Source::kThirdParty
                 ? conclude(found, Disposition::kHonoured, std::string(first.key) + " = " + stronger->value)
                 : conclude(found, Disposition::kOverridden, stronger->written() + " takes precedence");
    }
    conclude(found, Disposition::kHonoured,
             (first.key.empty() ? "" : std::string(first.key) + " = ") + std::string(first.text));
    for (const Assignment &each : parsed.settings) {
      (void)assign_unless_set(found, each);
    }
  }

  bool assign_unless_set(const Found &found, const Assignment &assignment) {
    if (settings_.origin_of(assignment.key) != nullptr) {
      return false;
    }
    assignment.assign(settings_);
    if (!assignment.key.empty()) {
      record(found, assignment.key, assignment.text);
    }
    return true;
  }

  void record(const Found &found, std::string_view key, std::string text) {
    settings_.origins.push_back({std::string(key), std::move(text), Source::kThirdParty,
                                 std::string(found.name) + "=" + std::string(found.value), false});
  }

  Environment environment_;
  Settings &settings_;
  std::vector<Problem> &problems_;
  std::string limit_overridden_by_, container_overridden_by_;  // empty: no usable limit of Ration is set
  std::vector<Container> containers_;
};

// The non-empty variables of the environment that match `row`. Of two with one name, the first counts, as for getenv.
std::vector<Found> find_in(Environment environment, const Variable &row) {
  std::vector<Found> all;
  std::unordered_set<std::string_view> names;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    const std::size_t equals = std::min(entry.find('='), entry.size());
    const std::string_view name = entry.substr(0, equals);
    if (equals + 1 < entry.size() && is_named_by(row, name) && names.insert(name).second) {
      all.push_back({row, name, entry.substr(equals + 1)});
    }
  }
  return all;
}

}  // namespace

std::string ThirdPartyVariable::written() const {
  return shown(variable) + "=" + shown(value);
}

std::string_view name_of(Disposition disposition) {
  static constexpr std::string_view kNames[] = {"honoured", "overridden", "left", "ignored", "refused"};
  return kNames[static_cast<std::size_t>(disposition)];
}

bool is_third_party_variable(std::string_view name) {
  return std::any_of(std::begin(kVariables), std::end(kVariables),
                     [&](const Variable &row) { return is_named_by(row, name); });
}

void import_third_party(Environment environment, std::string_view framework, const MalformedLimits &malformed,
                        Settings &settings, std::vector<Problem> &problems) {
  Importer importer(environment, malformed, settings, problems);
  for (const Variable &row : kVariables) {
    const bool left = !framework.empty() && (starts_with(row.name, "XLA_") || starts_with(row.name, "TF_"));
    for (const Found &found : find_in(environment, row)) {
      left ? importer.conclude(found, Disposition::kLeft, std::string(framework) + ", which reads it itself")
           : importer.import_variable(found);
    }
  }
  importer.add_containers();
  // The framework allocates its memory in one piece, as these variables or its own defaults say. A second such piece,
  // from Ration, would not fit on the device.
  if (!framework.empty() && settings.origin_of("preallocate") == nullptr) {
    settings.preallocate = Preallocate::kFalse;
    settings.origins.push_back({"preallocate", "false", Source::kThirdParty, std::string(framework), false});
  }
}

}  // namespace ration::config
