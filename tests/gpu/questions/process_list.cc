// Which processes does NVML list on the device: this one, under which ID (that of its namespace?), with how many bytes,
// before and after an allocation; a second one, while it lives and after it was killed? And what does a refused query
// of the device's memory leave?
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "tests/gpu/questions/child.h"
#include "tests/gpu/questions/outputs.h"
#include "tests/gpu/questions/question.h"

namespace {

using namespace question;

constexpr std::size_t kBytes = 256 * kMiB;

// A row as the functions of version 2 and 3 fill it; those of version 1 fill the first two fields alone.
struct Row {
  unsigned pid;
  unsigned long long bytes;
  unsigned instance, compute_instance;
};
struct FirstRow {
  unsigned pid;
  unsigned long long bytes;
};

// What one version of the list says.
struct List {
  int status = -1;
  std::vector<Row> rows;

  const Row *find(unsigned pid) const {
    const auto found = std::find_if(rows.begin(), rows.end(), [=](const Row &row) { return row.pid == pid; });
    return found == rows.end() ? nullptr : &*found;
  }
};

class Nvml {
 public:
  Nvml() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW)) {
    if (library_ == nullptr) skip("no libnvidia-ml.so.1");
    if (const int status = call<int()>("nvmlInit_v2"); status != 0)
      skip("nvmlInit_v2 answered " + std::to_string(status));
    if (const int status = call<int(unsigned, void **)>("nvmlDeviceGetHandleByIndex_v2", 0u, &device_); status != 0) {
      skip("no device of NVML: " + std::to_string(status));
    }
  }

  List list(int version) const {
    return version == 1 ? filled<FirstRow>("nvmlDeviceGetComputeRunningProcesses")
                        : filled<Row>("nvmlDeviceGetComputeRunningProcesses_v" + std::to_string(version));
  }
  template <class Memory>
  int memory(const std::string &name, Memory *memory, bool with_device = true) const {
    return call<int(void *, void *)>(name, with_device ? device_ : nullptr, static_cast<void *>(memory));
  }
  List list() const { return list(3).status == 0 ? list(3) : list(2); }

 private:
  // -1 where the library lacks the function.
  template <class Function, class... Arguments>
  int call(const std::string &name, Arguments... arguments) const {
    const auto function = reinterpret_cast<Function *>(dlsym(library_, name.c_str()));
    return function == nullptr ? -1 : function(arguments...);
  }
  template <class One>
  List filled(const std::string &name) const {
    std::vector<One> rows(256);
    auto count = static_cast<unsigned>(rows.size());
    List list;
    list.status = call<int(void *, unsigned *, void *)>(name, device_, &count, static_cast<void *>(rows.data()));
    if (list.status != 0) return list;
    for (unsigned i = 0; i < count; ++i) list.rows.push_back({rows[i].pid, rows[i].bytes, 0, 0});
    return list;
  }

  void *library_;
  void *device_ = nullptr;
};

struct Memory {
  unsigned long long total, free, used;
};
struct SecondMemory {
  unsigned version;
  unsigned long long total, reserved, free, used;
};

// This process's IDs, from the outermost namespace that /proc shows to its own.
std::string ids_by_namespace() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("NSpid:", 0) == 0) return line.substr(6);
  }
  return "";
}

void report(Test &test, const std::string &name, const List &list, unsigned pid) {
  test.number(name + ".status", list.status);
  test.number(name + ".rows", list.rows.size());
  const Row *const own = list.find(pid);
  test.yes(name + ".listed_by_its_id", own != nullptr);
  if (own != nullptr) test.number(name + ".bytes", static_cast<long long>(own->bytes));  // -1: not available
}

void this_process(Test &test) {
  const Nvml nvml;
  const auto pid = static_cast<unsigned>(getpid());
  test.text("ids_by_namespace", ids_by_namespace());
  const List before = nvml.list();
  report(test, "before_a_context", before, pid);
  make_ready();
  for (const int version : {1, 2, 3}) {
    report(test, "with_a_context.version_" + std::to_string(version), nvml.list(version), pid);
  }
  const List with = nvml.list();
  long long fresh = 0;
  for (const Row &row : with.rows) {
    if (before.find(row.pid) != nullptr) continue;
    test.number("with_a_context.new_id_minus_ours", static_cast<long long>(row.pid) - static_cast<long long>(pid));
    ++fresh;
  }
  test.number("with_a_context.new_rows", fresh);
  const auto step = [&](const std::string &name, const std::function<CUresult()> &act) {
    must(act());
    report(test, name, nvml.list(), pid);
  };
  CUdeviceptr block = 0;
  CUmemGenericAllocationHandle handle = 0;
  void *host = nullptr;
  CUmemAllocationProp memory = {};
  memory.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  memory.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  step("after_cuMemAlloc_of_256MiB", [&] { return cuMemAlloc(&block, kBytes); });
  step("after_its_free", [&] { return cuMemFree(block); });
  step("after_cuMemCreate_of_256MiB", [&] { return cuMemCreate(&handle, kBytes, &memory, 0); });
  step("after_its_release", [&] { return cuMemRelease(handle); });
  step("after_cuMemAllocHost_of_256MiB", [&] { return cuMemAllocHost(&host, kBytes); });
  must(cuMemFreeHost(host));
  test.note("nvmlDeviceGetComputeRunningProcesses in versions 1, 2 and 3; -1 bytes: not available.");
}

// The functions of NVML that Ration hooks.
void memory(Test &test) {
  const Nvml nvml;
  const auto ask = [&](const std::string &name, const std::function<int(Outputs &)> &act) {
    Outputs outputs;
    test.number(name + ".status", act(outputs));
    record(test, name, outputs.lines());
  };
  const auto watch = [](Outputs &outputs, auto *figures) {
    outputs.watch("total", &figures->total);
    outputs.watch("free", &figures->free);
    outputs.watch("used", &figures->used);
  };
  for (const bool with_device : {true, false}) {
    const std::string suffix = with_device ? "" : "_without_device";
    ask("nvmlDeviceGetMemoryInfo.valid" + suffix, [&](Outputs &o) {
      auto *const figures = o.hold<Memory>();
      watch(o, figures);
      return nvml.memory("nvmlDeviceGetMemoryInfo", figures, with_device);
    });
    constexpr unsigned kVersion = sizeof(SecondMemory) | 2u << 24;
    for (const unsigned version : {kVersion, 0u, kVersion + (1u << 24), kVersion - 8}) {
      const std::string way = version == kVersion  ? "valid"
                              : version == 0       ? "no_version"
                              : version > kVersion ? "version_3"
                                                   : "wrong_size";
      ask("nvmlDeviceGetMemoryInfo_v2." + way + suffix, [&](Outputs &o) {
        auto *const figures = o.hold<SecondMemory>();
        watch(o, figures);
        o.watch("reserved", &figures->reserved);
        figures->version = version;
        return nvml.memory("nvmlDeviceGetMemoryInfo_v2", figures, with_device);
      });
    }
  }
  test.note("Statuses of NVML; outputs untouched, zeroed or changed.");
}

void live() {
  CUdeviceptr block = 0;
  must(cuMemAlloc(&block, kBytes));
  send(kParent, std::to_string(getpid()));
  receive(kParent);
}

void second_process(Test &test) {
  const Nvml nvml;
  const auto pids = [&] {
    std::set<unsigned> all;
    for (const Row &row : nvml.list().rows) all.insert(row.pid);
    return all;
  };
  const std::set<unsigned> before = pids();
  Child child({"live"});
  const Message message = receive(child.socket());
  const auto pid = static_cast<unsigned>(std::strtoul(message.text.c_str(), nullptr, 10));
  if (pid == 0) skip("the other process: " + (message.text.empty() ? "no answer" : message.text));
  const List alive = nvml.list();
  report(test, "alive", alive, pid);
  std::set<unsigned> fresh = pids();
  for (const unsigned old : before) fresh.erase(old);
  test.number("alive.new_rows", fresh.size());
  double listed_us = -1;
  const auto killed = std::chrono::steady_clock::now();
  child.kill();
  child.end();
  const auto is_gone = [&] {
    const std::set<unsigned> now = pids();
    return std::none_of(fresh.begin(), fresh.end(), [&](unsigned one) { return now.count(one) != 0; });
  };
  do {
    listed_us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - killed).count();
  } while (!is_gone() && listed_us < 3'000'000);
  test.yes("dead.is_gone", is_gone());
  test.number("dead.listed_ms_after_its_kill", listed_us / 1000);
  test.note("A second process with 256 MiB, killed.");
}

}  // namespace

int main(int count, char **) {
  if (count > 1) return question::run_child(live);
  return question::run({{"this_process", this_process}, {"second_process", second_process}, {"memory", memory}},
                       question::Driver::kUntouched);
}
