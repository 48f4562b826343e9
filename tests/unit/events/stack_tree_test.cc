#include "events/stack_tree.h"

#include <string>
#include <vector>

#include "catch.h"
#include "events/call_stack.h"

using namespace ration::events;

namespace {

using Lines = std::vector<std::string>;

__attribute__((noinline)) void read_here(CallStack &stack) {
  read_call_stack(stack);
  asm volatile("" ::: "memory");
}

}  // namespace

TEST_CASE("a place is written once, whatever it was called from") {
  StackTree tree("/bin/train");
  const LoadedModules none;
  Lines lines;
  const std::uint32_t outer = tree.add(0, 0x1000, none, lines);
  CHECK(lines.size() == 3);
  CHECK(lines[0] == R"({"t":"mod","id":1,"path":"","build_id":"","base":"0x0")");
  CHECK(lines[1] == R"({"t":"frame","id":1,"mod":1,"off":4096)");
  CHECK(lines[2] == R"({"t":"stack","id":1,"frame":1,"parent":0)");
  lines.clear();
  const std::uint32_t inner = tree.add(outer, 0x1000, none, lines);
  CHECK(lines == Lines{R"({"t":"stack","id":2,"frame":1,"parent":1)"});
  lines.clear();
  CHECK(tree.add(0, 0x1000, none, lines) == outer);
  CHECK(tree.add(outer, 0x1000, none, lines) == inner);
  CHECK(lines.empty());
}

TEST_CASE("what was not written is written again, under other numbers") {
  StackTree tree("/bin/train");
  const LoadedModules none;
  Lines lines;
  const PythonFrame python{"leak \"it\"", "a.py", 3};
  tree.add(tree.add(0, 0x1000, none, lines), python, lines);
  tree.undo();
  Lines again;
  const std::uint32_t stack = tree.add(tree.add(0, 0x1000, none, again), python, again);
  CHECK(again.size() == lines.size());
  CHECK(again[3] == R"({"t":"frame","id":4,"mod":0,"off":0,"fn":"leak \"it\"","file":"a.py","line":3)");
  tree.keep();
  tree.undo();
  Lines none_new;
  CHECK(tree.add(tree.add(0, 0x1000, none, none_new), python, none_new) == stack);
  CHECK(none_new.empty());
}

TEST_CASE("what comes again to an address that meant other code has its old number") {
  StackTree tree("/bin/train");
  LoadedModules now;
  REQUIRE(now.ask(LoadedModules()));
  const auto code = reinterpret_cast<std::uintptr_t>(&read_here);
  Lines lines;
  const std::uint32_t before = tree.add(0, code, now, lines);
  CHECK(lines.size() == 3);
  lines.clear();
  tree.forget_addresses();
  const LoadedModules none;
  const std::uint32_t other = tree.add(0, code, none, lines);
  CHECK(other != before);
  lines.clear();
  tree.forget_addresses();
  CHECK(tree.add(0, code, now, lines) == before);
  CHECK(lines.empty());
}

TEST_CASE("the loader is asked only when it has loaded something since") {
  LoadedModules first;
  CHECK(first.ask(LoadedModules()));
  const auto *own = first.find(reinterpret_cast<std::uintptr_t>(&read_here));
  REQUIRE(own != nullptr);
  CHECK(own->path.empty());
  CHECK(first.find(1) == nullptr);
  LoadedModules second;
  CHECK_FALSE(second.ask(first));
  CHECK(second.all().empty());
}

TEST_CASE("a stack is recognised where the same calls are still made, and only there") {
  CallStack stack;
  read_here(stack);
  REQUIRE(stack.depth > 3);
  REQUIRE(stack.is_placed);
  CHECK(is_still(stack.code.data() + 1, stack.place.data() + 1, stack.depth - 1));  // the frame of read_here() is gone
  stack.code[3] ^= 1;
  CHECK_FALSE(is_still(stack.code.data() + 1, stack.place.data() + 1, stack.depth - 1));
}
