// Checks the driver: which libcuda.so.1, which version, and whether it starts. Layer: cli.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "base/file_name.h"
#include "cli/doctor/checkup.h"
#include "cli/launch/elf_file.h"
#include "config/values/quotes.h"

namespace ration::cli::doctor {

namespace {

// cuda.h
constexpr int kNoDevice = 100;
constexpr int kStubLibrary = 34;
constexpr std::string_view kVisible = "CUDA_VISIBLE_DEVICES";

struct KnownError {
  int code;
  const char *name;
  const char *remedy;
};
constexpr KnownError kErrors[] = {
    {802, "the system is not ready", "start NVIDIA's fabric manager, which machines with NVSwitch need"},
    {803, "the library and the kernel's driver do not fit together",
     "restart the machine after an update of the driver; else take other copies of libcuda.so.1 out of "
     "LD_LIBRARY_PATH"},
    {804, "forward compatibility does not work on this device",
     "take NVIDIA's compatibility package (cuda/compat) out of LD_LIBRARY_PATH, or update the driver"},
    {999, "unknown error",
     "load the kernel's module nvidia-uvm (nvidia-modprobe -u); in a container see that it has /dev/nvidia-uvm"},
};

// The folders where dynamic linkers, containers, WSL2 and NVIDIA's compatibility package keep the driver.
constexpr const char *kUsualFolders[] = {
    "/lib64",
    "/usr/lib64",
    "/usr/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/wsl/lib",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/local/cuda/compat",
    "/usr/local/nvidia/lib64",
};

std::vector<std::string> found_drivers(const Checkup &checkup) {
  std::vector<std::string> folders;
  std::istringstream listed(checkup.probed.value("LD_LIBRARY_PATH"));
  for (std::string folder; std::getline(listed, folder, ':');) {
    folders.push_back(folder.empty() ? "." : folder);
  }
  folders.insert(folders.end(), std::begin(kUsualFolders), std::end(kUsualFolders));
  std::vector<std::string> drivers;
  for (const std::string &folder : folders) {
    std::error_code error;
    const std::string file = std::filesystem::canonical(folder + "/libcuda.so.1", error).string();
    if (!error && std::find(drivers.begin(), drivers.end(), file) == drivers.end()) {
      drivers.push_back(file);
    }
  }
  return drivers;
}

// "580.65.06" for libcuda.so.580.65.06; empty if the name has no version.
std::string version_in_name(const std::string &path) {
  constexpr std::string_view kStem = "libcuda.so.";
  const std::string_view name = file_name(path);
  const std::string_view version = name.starts_with(kStem) ? name.substr(kStem.size()) : std::string_view{};
  return version.find('.') == std::string_view::npos ? "" : std::string(version);
}

// The version of the kernel module, according to NVML or the kernel; empty if neither reports it.
std::string kernel_version(const MachineFacts &machine) {
  if (!machine.nvml.driver_version.empty()) {
    return machine.nvml.driver_version;
  }
  std::ifstream file("/proc/driver/nvidia/version");
  std::string word;
  while (file >> word && word != "Module") {
  }
  return file >> word ? word : "";
}

std::string cuda_version(int version) {
  return version == 0 ? "" : ", CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string joined(const std::vector<std::string> &words) {
  std::string text;
  for (const std::string &word : words) {
    text += (text.empty() ? "" : ", ") + word;
  }
  return text;
}

bool is_stub(const DriverFacts &driver) {
  return driver.path.find("/stubs/") != std::string::npos || driver.started == kStubLibrary;
}

bool is_set_in(const EnvironmentBlock &environment, std::string_view name) {
  const std::vector<const char *> entries = environment.pointers();
  return std::any_of(entries.begin(), entries.end(), [&](const char *entry) {
    const std::string_view text(entry != nullptr ? entry : "");
    return text.size() > name.size() && text.starts_with(name) && text[name.size()] == '=';
  });
}

// True for a file for another machine, which a dynamic linker passes over.
bool is_foreign(const std::string &path) {
  const ElfFile elf = read_elf(path);
  return elf.is_elf && !elf.is_native;
}

std::vector<std::string> with_foreign_marked(std::vector<std::string> drivers) {
  for (std::string &each : drivers) {
    each += is_foreign(each) ? " (for another machine, so passed over)" : "";
  }
  return drivers;
}

void check_start(const Checkup &checkup, const std::string &described, Findings &found) {
  const DriverFacts &driver = checkup.machine.driver;
  if (!driver.missing.empty()) {
    found.push_back({Check::driver_incomplete, described + " lacks " + joined(driver.missing), {}});
  } else if (!driver.started) {
    found.push_back({Check::driver_fails, described + ": cuInit did not return within ten seconds, or crashed", {}});
  } else if (driver.started == kNoDevice || (driver.started == 0 && driver.devices.empty())) {
    const std::string listed = checkup.probed.value(kVisible);
    const bool is_set = is_set_in(checkup.probed, kVisible);
    found.push_back({Check::device_none,
                     described + " has no device" +
                         (is_set ? " that CUDA_VISIBLE_DEVICES=" + config::shown(listed) + " leaves" : ""),
                     is_set ? "unset CUDA_VISIBLE_DEVICES, or correct it; nvidia-smi -L lists numbers and UUIDs" : ""});
  } else if (driver.started != 0) {
    const auto *known = std::ranges::find(kErrors, *driver.started, &KnownError::code);
    const bool is_known = known != std::end(kErrors);
    found.push_back({Check::driver_fails,
                     described + ": cuInit failed with error " + std::to_string(*driver.started) +
                         (is_known ? std::string(": ") + known->name : ""),
                     is_known ? known->remedy : ""});
  } else {
    found.push_back({Check::driver, described + cuda_version(driver.version), {}});
  }
}

}  // namespace

Findings check_driver(const Checkup &checkup) {
  Findings found;
  const DriverFacts &driver = checkup.machine.driver;
  const std::vector<std::string> all = found_drivers(checkup);
  if (driver.path.empty()) {
    constexpr std::string_view kItself = "libcuda.so.1: ";  // dlerror's text begins with the name
    const std::string why = driver.error.substr(driver.error.starts_with(kItself) ? kItself.size() : 0);
    const bool has_foreign = std::any_of(all.begin(), all.end(), is_foreign);
    found.push_back({Check::driver_missing,
                     "libcuda.so.1 cannot be loaded" + (why.empty() ? "" : ": " + why) +
                         (has_foreign ? "; there is " + joined(with_foreign_marked(all)) : ""),
                     {}});
    return found;
  }
  const std::string own = version_in_name(driver.path);
  const std::string kernel = kernel_version(checkup.machine);
  const std::string described = "driver " + driver.path + (kernel.empty() ? "" : " (" + kernel + ")");
  if (is_stub(driver)) {
    found.push_back(
        {Check::driver_is_stub, driver.path + " is the stub that programs are linked with, not a driver", {}});
  } else {
    check_start(checkup, described, found);
  }
  if (all.size() > 1) {
    found.push_back({Check::drivers_several,
                     std::to_string(all.size()) + " drivers are found: " + joined(with_foreign_marked(all)) +
                         "; programs that are started here load " + driver.path,
                     {}});
  }
  if (!own.empty() && !kernel.empty() && own != kernel) {
    found.push_back(
        {Check::driver_versions, driver.path + " is of version " + own + ", the kernel's driver of " + kernel, {}});
  }
  return found;
}

}  // namespace ration::cli::doctor
