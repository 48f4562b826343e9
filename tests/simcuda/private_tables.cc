// The real driver's private tables are no part of the public API and are not simulated. NVIDIA's runtime needs them:
// its first call asks for one, and without it every call fails with an error that says nothing of that. So this says
// it.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <string>

#include "implemented.h"
#include "tests/simcuda/settings.h"

namespace simcuda {
namespace {

// For `ration run`, which says it of all processes when the command has ended.
void leave_note(const std::string &folder) {
  char executable[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", executable, sizeof executable);
  const std::string path(executable, length > 0 ? static_cast<std::size_t>(length) : 0);
  const std::string program = path.substr(path.rfind('/') + 1);
  const std::string note = folder + "/" + std::to_string(::getpid());
  const int file = ::open(note.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return;  // the folder of a run that has ended
  if (::write(file, program.data(), program.size()) < 0) ::unlink(note.c_str());
  ::close(file);
}

}  // namespace

CUresult cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId) {
  static_cast<void>(ppExportTable);
  static_cast<void>(pExportTableId);
  static std::atomic_flag said;
  if (!said.test_and_set()) {
    if (settings().notes.empty()) {
      complain(
          "simcuda: NVIDIA's runtime (libcudart) does not work with the simulated driver, which lacks its private "
          "tables: "
          "use a real GPU, or a program of the driver API");
    } else {
      leave_note(settings().notes);
    }
  }
  return CUDA_ERROR_NOT_FOUND;
}

}  // namespace simcuda
