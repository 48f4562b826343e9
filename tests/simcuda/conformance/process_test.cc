// Whole processes: before initialisation, fork, exit, and the environment settings.
#include <fstream>

#include "tests/catch.h"
#include "tests/simcuda/conformance/child_process.h"

namespace simcuda::conformance {
namespace {

using Lines = std::vector<std::string>;

Lines run(const std::vector<std::string> &arguments, const Environment &environment = {},
          const std::string &driver = SIMCUDA_FOLDER) {
  ChildProcess child(arguments, environment, driver);
  Lines lines = child.lines();
  REQUIRE(child.wait() == 0);
  return lines;
}

TEST_CASE("before cuInit only the version query works") {
  CHECK(run({"before_init"}) == Lines{"3", "3", "3", "0"});
}

// g++ 12's ThreadSanitizer holds its own locks across a fork beside other threads: the child waits for them for ever.
#if !defined(__SANITIZE_THREAD__)
TEST_CASE("a child forked from a running driver gets NOT_INITIALIZED at once, from every call") {
  CHECK(run({"fork_after"}) == Lines{"0", "0"});
}
#endif

TEST_CASE("a child forked before initialisation can initialise the driver itself") {
  CHECK(run({"fork_before"}) == Lines{"0", "0"});
}

TEST_CASE("exported memory has the same bytes in another process of the machine, which is not charged for it") {
  const Folder machine;
  CHECK(run({"share_memory"}, {{"SIMCUDA_MACHINE", machine.path()}}) == Lines{"shared"});
}

TEST_CASE("exported memory stays with its descriptor, and with who imports it, after its exporter released it") {
  const Folder machine;
  CHECK(run({"give_memory_away"}, {{"SIMCUDA_MACHINE", machine.path()}}) == Lines{"given away"});
}

TEST_CASE("a process can exit while its streams still work") {
  CHECK(run({"leave_busy"}) == Lines{"0"});
}

TEST_CASE("exit handlers that run last can still call the driver") {
  CHECK(run({"leave_late"}) == Lines{"0", "0", "0"});
}

TEST_CASE("the host cannot touch device memory") {
  ChildProcess child({"touch"}, {});
  CHECK(child.line() == "0");
  CHECK(child.line() != "survived");
  CHECK(child.wait() != 0);
}

TEST_CASE("CUDA_VISIBLE_DEVICES selects devices by index and by UUID, and ends at the first invalid one") {
  const Environment machine{{"SIMCUDA_DEVICES", "1GiB,2GiB,3GiB"}};
  const Lines all = run({"devices"}, machine);
  REQUIRE(all.size() == 5);
  CHECK(all[1] == "3");
  const auto visible = [&](const std::string &list) {
    Environment chosen = machine;
    chosen["CUDA_VISIBLE_DEVICES"] = list;
    return run({"devices"}, chosen);
  };
  const std::string uuid = all[3].substr(0, all[3].find(' '));
  CHECK(visible("2,0") == Lines{"0", "2", all[4], all[2]});
  CHECK(visible(uuid) == Lines{"0", "1", all[3]});
  CHECK(visible(uuid.substr(0, 12)) == Lines{"0", "1", all[3]});
  CHECK(visible("1,7,0") == Lines{"0", "1", all[3]});
  CHECK(visible("1,-1,0") == Lines{"0", "1", all[3]});
  CHECK(visible("1,1") == Lines{"0", "1", all[3]});
  CHECK(visible("") == Lines{"100"});
  CHECK(visible("GPU-") == Lines{"100"});  // ambiguous
  CHECK(visible("nonsense") == Lines{"100"});
}

TEST_CASE("SIMCUDA_DEVICES accepts a count, a list and a multiplication sign") {
  const auto sizes = [](const std::string &devices) {
    Lines sizes;
    const Lines lines = run({"devices"}, {{"SIMCUDA_DEVICES", devices}});
    for (std::size_t i = 2; i < lines.size(); ++i) sizes.push_back(lines[i].substr(lines[i].find(' ') + 1));
    return sizes;
  };
  CHECK(sizes("16GiB") == Lines{"17179869184"});
  CHECK(sizes("2x8g") == Lines{"8589934592", "8589934592"});
  CHECK(sizes("2\u00d71GB") == Lines{"1000000000", "1000000000"});
  CHECK(sizes("8GiB,512m") == Lines{"8589934592", "536870912"});
  CHECK(run({"devices"}, {{"SIMCUDA_DEVICES", "many"}}) == Lines{"999"});
}

TEST_CASE("eight devices of 141 GiB are possible, and one of them can be filled") {
  ChildProcess child({"hold", std::to_string(140ull << 30)}, {{"SIMCUDA_DEVICES", "8x141GiB"}});
  CHECK(child.line() == "0");
}

TEST_CASE("a scripted fault affects the selected call and no other, and leaves an address of 0") {
  CHECK(run({"four_allocations"}, {{"SIMCUDA_FAIL", "cuMemAlloc_v2@2:2,cuMemAlloc_v2@4:719"}}) ==
        Lines{"0", "2", "0", "719"});
}

TEST_CASE("a call takes its cost at least, and for each mapping that it is about") {
  const Lines took =
      run({"map_four"}, {{"SIMCUDA_COSTS", "cuMemCreate=20000,cuMemMap=3000.5,cuMemSetAccess=5000,cuMemUnmap=4000"}});
  REQUIRE(took.size() == 7);
  const int least[] = {20, 3, 3, 3, 3, 20, 16};
  for (std::size_t i = 0; i < took.size(); ++i) CHECK(std::stoi(took[i]) >= least[i]);
}

TEST_CASE("costs are an H100's unless other ones, or none, are asked for") {
  const auto costs = [](const Environment &environment) { return run({"costs"}, environment); };
  CHECK(costs({}) == Lines{"524", "296", "108"});
  CHECK(costs({{"SIMCUDA_COSTS", "h100"}}) == Lines{"524", "296", "108"});
  CHECK(costs({{"SIMCUDA_COSTS", "h100,cuMemCreate=29"}}) == Lines{"524", "296", "290"});
  CHECK(costs({{"SIMCUDA_COSTS", "cuMemCreate=29"}}) == Lines{"256", "0", "290"});
  CHECK(costs({{"SIMCUDA_COSTS", "0"}}) == Lines{"256", "0", "0"});
  CHECK(costs({{"SIMCUDA_COSTS", ""}}) == Lines{"256", "0", "0"});
  CHECK(costs({{"SIMCUDA_CONTEXT_BYTES", "16MiB"}}) == Lines{"16", "296", "108"});
}

TEST_CASE("a function that is declared missing is not found") {
  CHECK(run({"look_up", "cuMemGetInfo"}) == Lines{"0"});
  CHECK(run({"look_up", "cuMemGetInfo"}, {{"SIMCUDA_MISSING", "cuCtxSynchronize,cuMemGetInfo_v2"}}) == Lines{"500"});
}

TEST_CASE("the trace has a line for each call, with its result") {
  const Folder folder;
  const std::string trace = folder.path() + "/trace";
  run({"four_allocations"}, {{"SIMCUDA_TRACE", trace}, {"SIMCUDA_FAIL", "cuMemAlloc_v2@2:2"}});
  std::ifstream file(trace);
  Lines lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  CHECK(lines == Lines{"cuInit 0", "cuCtxCreate_v2 0", "cuMemAlloc_v2 0 16", "cuMemAlloc_v2 2", "cuMemAlloc_v2 0 16",
                       "cuMemAlloc_v2 0 16"});
}

TEST_CASE("a smaller driver exports only its functions") {
  CHECK(run({"least"}, {}, SIMCUDA_FOLDER "_small") == Lines{"0", "0", "0", "0", "0", "no copies", "no look-up"});
}

TEST_CASE("the minimal driver allocates without context functions") {
  CHECK(run({"least"}, {}, SIMCUDA_FOLDER "_bare") == Lines{"0", "0", "0", "0", "no copies", "no look-up"});
}

}  // namespace
}  // namespace simcuda::conformance
