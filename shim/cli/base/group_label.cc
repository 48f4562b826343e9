#include "cli/base/group_label.h"

namespace ration::cli {
namespace {

using ledger::GroupKind;

constexpr std::size_t kTreeDigits = 8;

}  // namespace

GroupKind kind_of(config::Settings::Group::Kind kind) {
  using Kind = config::Settings::Group::Kind;
  return kind == Kind::kTree ? GroupKind::kTree : kind == Kind::kContainer ? GroupKind::kContainer : GroupKind::kNamed;
}

std::string label_of(GroupKind kind, const std::string &name) {
  switch (kind) {
    case GroupKind::kNamed:
      return name;
    case GroupKind::kTree:
      return "tree:" + name.substr(0, kTreeDigits);
    case GroupKind::kContainer:
      return "container:" + name;
    case GroupKind::kQueue:
      return "(queue)";
    case GroupKind::kNone:
      break;
  }
  return "-";
}

const char *kind_name(GroupKind kind) {
  switch (kind) {
    case GroupKind::kNamed:
      return "named";
    case GroupKind::kTree:
      return "tree";
    case GroupKind::kContainer:
      return "container";
    case GroupKind::kQueue:
      return "queue";
    case GroupKind::kNone:
      break;
  }
  return "none";
}

}  // namespace ration::cli
