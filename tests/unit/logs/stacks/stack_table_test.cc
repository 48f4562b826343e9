#include "logs/stacks/stack_table.h"

#include <string>
#include <vector>

#include "../log_text.h"
#include "catch.h"
#include "cli/base/text_table.h"
#include "logs/stacks/elf_symbols.h"
#include "logs/stacks/libraries.h"

using namespace ration::logs;
using namespace ration::test;

namespace {

std::string python_frame(int id, const std::string &function, const std::string &file, int line) {
  return R"({"t":"frame","id":)" + std::to_string(id) + R"(,"mod":0,"off":0,"fn":")" + function + R"(","file":")" +
         file + R"(","line":)" + std::to_string(line);
}

std::string stack_record(int id, int frame, int parent) {
  return R"({"t":"stack","id":)" + std::to_string(id) + R"(,"frame":)" + std::to_string(frame) + R"(,"parent":)" +
         std::to_string(parent);
}

StackTable table_of(const std::vector<std::string> &records) {
  StackTable table;
  std::istringstream log(log_of(records));
  LogReader reader(log);
  for (Record record; reader.next(record);) {
    table.add(record);
  }
  REQUIRE(reader.problem().empty());
  return table;
}

const std::vector<std::string> kLeak = {
    python_frame(1, "main", "/srv/train.py", 40),
    python_frame(2, "leak", "/srv/train.py", 12),
    python_frame(3, "device_array", "/usr/lib/python3/dist-packages/numba/cuda/api.py", 166),
    R"({"t":"mod","id":1,"path":"/opt/libcudart.so.13","build_id":"","base":"0x1000")",
    R"({"t":"frame","id":4,"mod":1,"off":4660)",
    stack_record(1, 1, 0),
    stack_record(2, 2, 1),
    stack_record(3, 3, 2),
    stack_record(4, 4, 3)};

}  // namespace

TEST_CASE("the caller is the program's own function, and the library who asked for it") {
  StackTable table = table_of(kLeak);
  CHECK(table.caller(4) == "leak (train.py:12), from main (train.py:40)");
  CHECK(table.library(4) == "numba");
  CHECK(table.library(2) == "the program");
  const std::vector<StackFrame> frames = table.frames(4);
  REQUIRE(frames.size() == 4);
  CHECK(frames[0].function == "libcudart.so.13+0x1234");
  CHECK(frames[0].library == "CUDA runtime");
  CHECK(frames[3].function == "main");
}

TEST_CASE("a stack that is not there, or leads in a ring, gives no more than it has") {
  CHECK(table_of(kLeak).frames(99).empty());
  CHECK(table_of(kLeak).caller(0).empty());
  std::vector<std::string> ring = kLeak;
  ring.push_back(stack_record(5, 1, 6));
  ring.push_back(stack_record(6, 2, 5));
  CHECK(table_of(ring).frames(5).size() < 10000);
}

TEST_CASE("blocks are put together by their callers, and leaks by their stacks") {
  std::vector<std::string> records = kLeak;
  records.push_back(alloc_record(1, 100, R"("src":"driver","stack":4)"));
  records.push_back(alloc_record(2, 50, R"("src":"driver","stack":2)"));
  records.push_back(alloc_record(3, 10, R"("src":"driver","stack":4)"));
  records.push_back(free_record(3));
  const History history = history_of(log_of(records));
  const History::Device &device = history.devices().at(0);
  CHECK(device.live.at("leak (train.py:12), from main (train.py:40)").bytes == 150);
  CHECK(device.live_stacks.at(4).bytes == 100);
  CHECK(device.live_stacks.at(2).count == 1);
  CHECK(history_of(log_of(records), By::library).devices().at(0).live.at("numba").count == 1);
}

TEST_CASE("libraries have the names that people know") {
  CHECK(library_of("/opt/libcudnn_engines.so.9") == "cuDNN");
  CHECK(library_of("/opt/nvidia/libnccl.so.2") == "NCCL");
  CHECK(library_of("/lib/x86_64-linux-gnu/libc.so.6") == "C library");
  CHECK(library_of("/opt/libmine.so.1.2") == "libmine");
  CHECK(library_of("/v/lib/python3.11/site-packages/cupy/core.cpython-311.so") == "cupy");
  CHECK(package_of("/v/lib/python3.11/site-packages/torch/nn/linear.py") == "torch");
  CHECK(package_of("/usr/lib/python3.11/threading.py") == "Python");
  CHECK(package_of("/srv/lib/train.py").empty());
  CHECK(is_plumbing(library_of("/opt/libcudart.so.13")));
  CHECK_FALSE(is_plumbing("cuDNN"));
}

TEST_CASE("a damaged file has no symbols") {
  CHECK(ElfSymbols("/nowhere").function_at(0x1000).empty());
  CHECK(ElfSymbols("/etc/passwd").build_id().empty());
  const ElfSymbols own("/proc/self/exe");
  CHECK(own.build_id().size() >= 16);
}

TEST_CASE("a column of names is cut between letters") {
  CHECK(
      ration::cli::table_lines({{"N", ration::cli::Align::kLeft, ration::cli::Fit::kShrinks}}, {{"größer"}}, 5).at(1) ==
      "größ+");
}
