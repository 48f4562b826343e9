#include "cli/run/group_tree.h"

#include "catch.h"

using ration::cli::add_group_tree;
using ration::cli::EnvironmentBlock;
using ration::cli::new_tree_number;

namespace {

const std::string kNumber = "0123456789abcdef";

struct Planted {
  std::string wrong, trees, group_limit;
};

Planted plant(const ration::cli::TreeRequest &request, std::vector<const char *> entries) {
  entries.push_back(nullptr);
  EnvironmentBlock environment(entries.data());
  Planted planted;
  planted.wrong = add_group_tree(request, kNumber, environment);
  planted.trees = environment.value("RATION_GROUP_TREE");
  planted.group_limit = environment.value("RATION_GROUP_LIMIT");
  return planted;
}

}  // namespace

TEST_CASE("each tree gets a new number of 16 hexadecimal digits") {
  const std::string one = new_tree_number();
  CHECK(one.size() == 16);
  CHECK(one.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(new_tree_number() != one);
}

TEST_CASE("a tree without a limit only counts") {
  CHECK(plant({}, {}).trees == kNumber);
}

TEST_CASE("a tree's own limit follows its number") {
  CHECK(plant({"0=8GiB,1=50%"}, {}).trees == kNumber + "=0=8GiB,1=50%");
}

TEST_CASE("a nested tree is appended to the outer one") {
  CHECK(plant({"1g"}, {"RATION_GROUP_TREE=fedcba9876543210=2g"}).trees == "fedcba9876543210=2g;" + kNumber + "=1g");
}

TEST_CASE("a group limit without a group name moves to the tree") {
  const Planted planted = plant({}, {"RATION_GROUP_LIMIT=3g"});
  CHECK(planted.trees == kNumber + "=3g");
  CHECK(planted.group_limit.empty());
  CHECK(plant({}, {"RATION_GROUP_LIMIT=3g", "RATION_GROUP="}).trees == kNumber + "=3g");
}

TEST_CASE("the limit of a named group stays with it") {
  for (const char *limit : {"", "2g"}) {
    const Planted planted = plant({limit, true}, {"RATION_GROUP_LIMIT=3g", "RATION_GROUP=lab"});
    CHECK(planted.wrong.empty());
    CHECK(planted.trees == kNumber + (*limit == '\0' ? "" : "=2g"));
    CHECK(planted.group_limit == "3g");
  }
}

TEST_CASE("two limits for a tree on one line are refused; a variable beside its own limit is kept") {
  CHECK(plant({"2g", true}, {"RATION_GROUP_LIMIT=3g"}).wrong.find("a second limit") != std::string::npos);
  const Planted planted = plant({"2g"}, {"RATION_GROUP_LIMIT=3g"});
  CHECK(planted.trees == kNumber + "=2g");
  CHECK(planted.group_limit == "3g");
}

TEST_CASE("an invalid limit of a tree is refused and changes nothing") {
  for (const char *limit : {"8Gib", "1", "0=1g,0=2g", "1g;2g", "1g;fedcba9876543210", "true"}) {
    INFO(limit);
    const Planted planted = plant({limit}, {"RATION_GROUP_LIMIT=3g"});
    CHECK_FALSE(planted.wrong.empty());
    CHECK(planted.trees.empty());
    CHECK(planted.group_limit == "3g");
  }
}
