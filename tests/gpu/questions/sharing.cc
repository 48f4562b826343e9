// Can memory be shared with another process: a handle of cuMemCreate as a file descriptor, and a plain block by legacy
// IPC? What do the calls cost, who is charged, and what does the importer see after the exporter has ended?
#include <cstring>

#include "tests/gpu/questions/child.h"
#include "tests/gpu/questions/mapping.h"
#include "tests/gpu/questions/question.h"

namespace {

using namespace question;

constexpr std::size_t kBytes = 64 * kMiB;
constexpr auto kFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

// Imports what the parent sends, answers with the first word and the durations, writes its own word, and stays.
void import_file() {
  const Message message = receive(kParent);
  CUmemGenericAllocationHandle handle = 0;
  const std::size_t before = free_bytes();
  CUdeviceptr address = 0;
  const double import = microseconds([&] {
    must(cuMemImportFromShareableHandle(&handle, reinterpret_cast<void *>(static_cast<std::intptr_t>(message.file)),
                                        kFile));
  });
  must(cuMemAddressReserve(&address, kBytes, 0, 0, 0));
  const double map = microseconds([&] {
    must(cuMemMap(address, kBytes, 0, handle, 0));
    must(allow(address, kBytes));
  });
  unsigned word = 0;
  must(cuMemcpyDtoH(&word, address, 4));
  must(cuMemsetD32(address, 77, 1));
  must(cuCtxSynchronize());
  const auto charged = static_cast<long long>(before) - static_cast<long long>(free_bytes());
  send(kParent,
       std::to_string(word) + " " + std::to_string(import) + " " + std::to_string(map) + " " + std::to_string(charged));
  receive(kParent);
  CUresult code = cuMemsetD32(address, 78, 1);
  if (code == CUDA_SUCCESS) code = cuMemcpyDtoH(&word, address, 4);
  send(kParent, std::to_string(code) + " " + std::to_string(word) + " 0 0");
  receive(kParent);
}

void import_ipc() {
  const Message message = receive(kParent);
  CUipcMemHandle handle = {};
  std::memcpy(&handle, message.text.data(), sizeof handle);
  CUdeviceptr address = 0;
  const double open =
      microseconds([&] { must(cuIpcOpenMemHandle(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)); });
  unsigned word = 0;
  must(cuMemcpyDtoH(&word, address, 4));
  must(cuMemsetD32(address, 77, 1));
  must(cuCtxSynchronize());
  const double end = microseconds([&] { must(cuIpcCloseMemHandle(address)); });
  send(kParent, std::to_string(word) + " " + std::to_string(open) + " " + std::to_string(end) + " 0");
}

// Four numbers of a child, or the test is skipped with what it said instead.
std::vector<double> numbers(const Child &child) {
  const Message message = receive(child.socket());
  std::vector<double> values(4);
  if (std::sscanf(message.text.c_str(), "%lf %lf %lf %lf", &values[0], &values[1], &values[2], &values[3]) != 4) {
    skip("the other process: " + (message.text.empty() ? "no answer" : message.text));
  }
  return values;
}

void file_descriptor(Test &test) {
  CUmemAllocationProp memory = device_memory();
  memory.requestedHandleTypes = kFile;
  CUmemGenericAllocationHandle handle = 0;
  test.number("create_us", microseconds([&] { must(cuMemCreate(&handle, kBytes, &memory, 0)); }));
  const Range range(kBytes);
  must(cuMemMap(range.at(), kBytes, 0, handle, 0));
  must(allow(range.at(), kBytes));
  must(cuMemsetD32(range.at(), 55, 1));
  must(cuCtxSynchronize());
  int file = -1;
  test.number("export_us", microseconds([&] { must(cuMemExportToShareableHandle(&file, handle, kFile, 0)); }));
  Child child({"file"});
  send(child.socket(), "file", file);
  const auto values = numbers(child);
  test.yes("importer_reads_the_bytes", values[0] == 55);
  test.number("import_us", values[1]);
  test.number("map_and_set_access_us", values[2]);
  test.number("bytes_missing_for_the_importer", static_cast<long long>(values[3]));
  unsigned word = 0;
  must(cuMemcpyDtoH(&word, range.at(), 4));
  test.yes("exporter_reads_the_importers_bytes", word == 77);
  close(file);
  const std::size_t before = free_bytes();
  must(cuMemUnmap(range.at(), kBytes));
  must(cuMemRelease(handle));
  test.number("bytes_back_while_imported", free_bytes() - before);
  send(child.socket(), "released");
  const auto later = numbers(child);
  test.number("importer_code_after_the_release", static_cast<int>(later[0]));
  test.yes("importer_reads_after_the_release", later[1] == 78);
  send(child.socket(), "end");
  child.end(false);
  test.number("bytes_back_after_the_importers_end", free_bytes() - before);
  test.note("A handle of 64 MiB as a file descriptor, imported by another process, then released by its maker.");
}

void legacy_ipc(Test &test) {
  Cleanup cleanup;
  CUdeviceptr block = 0;
  must(cuMemAlloc(&block, kBytes));
  cleanup.add([block] { cuMemFree(block); });
  must(cuMemsetD32(block, 55, 1));
  must(cuCtxSynchronize());
  CUipcMemHandle handle = {};
  test.number("get_handle_us", microseconds([&] { must(cuIpcGetMemHandle(&handle, block)); }));
  Child child({"ipc"});
  send(child.socket(), std::string(reinterpret_cast<const char *>(&handle), sizeof handle));
  const auto values = numbers(child);
  test.yes("importer_reads_the_bytes", values[0] == 55);
  test.number("open_us", values[1]);
  test.number("close_us", values[2]);
  unsigned word = 0;
  must(cuMemcpyDtoH(&word, block, 4));
  test.yes("exporter_reads_the_importers_bytes", word == 77);
  test.note("A block of 64 MiB by cuIpcGetMemHandle, opened, written and closed by another process.");
}

// What the two ways answer for memory that was not made for them.
void refusals(Test &test) {
  const Stitched range(2);
  CUipcMemHandle shared = {};
  int file = -1;
  test.code("ipc_of_mapped_memory_code", cuIpcGetMemHandle(&shared, range.at()));
  test.code("file_of_a_handle_not_made_for_it_code", cuMemExportToShareableHandle(&file, range.handles()[0], kFile, 0));
  CUdeviceptr block = 0;
  must(cuMemAllocAsync(&block, kMiB, CU_STREAM_LEGACY));
  test.code("ipc_of_pooled_memory_code", cuIpcGetMemHandle(&shared, block));
  must(cuMemFree(block));
  test.note("Codes of cuIpcGetMemHandle and cuMemExportToShareableHandle.");
}

}  // namespace

int main(int count, char **arguments) {
  if (count > 1) return question::run_child(std::string(arguments[1]) == "file" ? import_file : import_ipc);
  return question::run({{"file_descriptor", file_descriptor}, {"legacy_ipc", legacy_ipc}, {"refusals", refusals}});
}
