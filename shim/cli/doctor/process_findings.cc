// Finds out whether a running process is limited, and if not, why. Layer: cli.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <system_error>

#include "base/file_name.h"
#include "cli/doctor/checkup.h"
#include "cli/launch/elf_file.h"
#include "cli/launch/preload_order.h"
#include "cli/launch/process_facts.h"
#include "cli/launch/program.h"
#include "cli/usage/as_user.h"
#include "cli/usage/process_rows.h"
#include "cli/usage/snapshot.h"
#include "cli/usage/tree_guarantees.h"
#include "config/options.h"
#include "config/values/quotes.h"
#include "config/values/size.h"
#include "ledger/group_view.h"

namespace ration::cli::doctor {

namespace {

constexpr std::string_view kDriverFile = "libcuda.so";
constexpr std::string_view kCoreFile = "libration-core.so";
constexpr std::string_view kLibraryFile = "libration.so";
constexpr int kMostAncestors = 64;

// Empty: the remedy of the table applies, which is to become root.
std::string remedy_of_root() {
  return geteuid() != 0 ? ""
                        : "root lacks a capability, as is usual in containers: add CAP_SYS_PTRACE, or run doctor "
                          "outside the container";
}

class ProcessCheck {
 public:
  ProcessCheck(const Checkup &checkup, const ProcessFacts &process)
      : checkup_(checkup),
        process_(process),
        name_("process " + std::to_string(process.pid) + " (" + config::printable(process.name) + ")") {}

  Findings findings() && {
    if (process_.has_ended) {
      add(Check::process_ended, name_ + " has ended (a zombie), and process " + std::to_string(process_.parent) +
                                    " has not taken its status yet");
      return std::move(found_);
    }
    if (process_.is_kernel_thread) {
      add(Check::process_kernel, name_ + " is a thread of the kernel");
      return std::move(found_);
    }
    check_owner_and_namespaces();
    if (!process_.is_readable) {
      add(Check::process_unchecked,
          "cannot inspect " + name_ + ": no permission to read /proc/" + std::to_string(process_.pid) + "/maps",
          remedy_of_root());
    } else {
      check_start();
      check_library();
    }
    return std::move(found_);
  }

 private:
  void add(Check check, std::string what, std::string remedy = {}) {
    found_.push_back({check, std::move(what), std::move(remedy)});
  }

  void check_owner_and_namespaces() {
    if (process_.user != geteuid() && geteuid() != 0) {
      add(Check::process_other_user,
          name_ + " belongs to user " + std::to_string(process_.user) + ", this is " + std::to_string(geteuid()));
    }
    const ProcessFacts own = read_process(getpid());
    const bool other_pids = process_.pid_namespace != 0 && process_.pid_namespace != own.pid_namespace;
    const bool other_mounts = process_.mount_namespace != 0 && process_.mount_namespace != own.mount_namespace;
    if (other_pids || other_mounts) {
      add(Check::process_other_namespace,
          name_ + " has " +
              (other_pids ? "a PID namespace of its own, where it is " + std::to_string(process_.inner_pid) : "") +
              (other_pids && other_mounts ? ", and " : "") + (other_mounts ? "another view of the file systems" : ""));
    }
    if (process_.seccomp != 0) {
      add(Check::process_seccomp,
          "system calls of " + name_ + " are filtered (seccomp mode " + std::to_string(process_.seccomp) + ")");
    }
  }

  // Checks which program was started, and in which environment.
  void check_start() {
    const ElfFile elf = read_elf("/proc/" + std::to_string(process_.pid) + "/exe");
    const std::string runs = name_ + ", " + config::printable(process_.executable) + ",";
    if (elf.is_elf && !elf.is_native) {
      add(Check::process_foreign, runs + " was built for another machine or word size");
    } else if (process_.is_secure) {
      add(Check::process_privileged,
          runs + " gained privileges at its start, so the dynamic linker ignores LD_PRELOAD");
    } else if (file_name(elf.interpreter).starts_with("ld-musl-")) {
      add(Check::process_musl, runs + " runs on musl, whose dynamic linker cannot load a library built for glibc");
    } else if (elf.interpreter.empty() && !is_dynamic_linker(elf)) {
      add(Check::process_static, runs + " is statically linked, so no dynamic linker could preload a library");
    }
    std::string settings;
    for (const std::string &entry : process_.environment) {
      const config::Option *option = config::option_of_variable(entry.substr(0, entry.find('=')));
      const bool is_internal = option != nullptr && option->scope == config::Scope::kInternal;
      if ((entry.starts_with("RATION_") && !is_internal) || entry.starts_with("LD_PRELOAD=")) {
        settings += (settings.empty() ? "" : ", ") + config::shown(entry);
      }
    }
    add(Check::process_settings,
        name_ + " was started with " + (settings.empty() ? "no setting of Ration's" : settings));
    if (process_.variable("RATION_DISABLE") == "1") {
      add(Check::process_disabled,
          name_ + " was started with RATION_DISABLE=1, so nothing in it is limited or counted");
    }
  }

  void check_library() {
    if (process_.variable("RATION_DISABLE") == "1") {
      return;  // already reported
    }
    const MappedFile *library = process_.mapped(kLibraryFile);
    if (library == nullptr) {
      explain_absence();
      check_device_memory();
      return;
    }
    add_diagnostics();
    check_build(*library);
    check_order();
    std::error_code error;
    const std::filesystem::path core = std::filesystem::path(library->path).parent_path() / kCoreFile;
    if (process_.mapped(kCoreFile) == nullptr && !std::filesystem::exists(process_.reachable(core.string()), error)) {
      add(Check::library_missing, name_ + " has " + config::printable(library->path) + " without libration-core.so");
    } else if (process_.mapped(kDriverFile) == nullptr) {
      add(Check::process_without_cuda, name_ + " has libration.so, and has not loaded the driver");
    } else if (process_.mapped(kCoreFile) == nullptr) {
      add(Check::process_waits, name_ + " has loaded libration.so and the driver, but has made no CUDA call yet");
    } else {
      check_books();
    }
  }

  void add_diagnostics() {
    const std::string set = process_.variable("RATION_DIAGNOSTICS");
    add(Check::process_diagnostics,
        set.empty() ? name_ +
                          " says only what is wrong; started with RATION_DIAGNOSTICS=debug, or debug:FILE, or by "
                          "`ration run -v`, it says what it decides and why"
                    : name_ + " says what it decides by RATION_DIAGNOSTICS=" + config::shown(set));
  }

  void explain_absence() {
    if (count_of(found_, Severity::kTrouble) != 0) {
      return;  // check_start() has reported the reason
    }
    const std::vector<std::string> preloads = entries_of_preload(process_.variable("LD_PRELOAD"));
    const auto named = std::find_if(preloads.begin(), preloads.end(), is_our_library);
    if (named != preloads.end()) {
      std::error_code error;
      const bool is_there = std::filesystem::exists(process_.reachable(*named), error);
      add(Check::process_not_loaded, "LD_PRELOAD of " + name_ + " names " + config::shown(*named) +
                                         (is_there ? ", which was not loaded" : ", which does not exist there"));
      return;
    }
    const std::string ancestor = held_ancestor();
    const bool is_of_run = has_variable("RATION_SUMMARY") || has_variable("RATION_FLAGS");  // which `ration run` sets
    if (is_of_run || (has_variable("RATION_") && !ancestor.empty())) {
      add(Check::process_preload_lost,
          name_ + " was started with settings of `ration run`, but without LD_PRELOAD: it was lost on the way");
    } else if (!ancestor.empty()) {
      add(Check::process_environment_cleared,
          name_ + " was started with a cleared environment, though " + ancestor + " runs under Ration");
    } else {
      add(Check::process_without_ration, "libration.so is not in " + name_ + ", which was started without Ration");
    }
  }

  [[nodiscard]] bool has_variable(std::string_view name_begin) const {
    return std::any_of(process_.environment.begin(), process_.environment.end(),
                       [&](const std::string &each) { return each.starts_with(name_begin); });
  }

  // The nearest ancestor that has the library or is `ration run`.
  [[nodiscard]] std::string held_ancestor() const {
    std::error_code error;
    int pid = process_.parent;
    for (int i = 0; i < kMostAncestors && pid > 1; ++i) {
      const ProcessFacts ancestor = read_process(pid);
      const bool is_run = std::filesystem::equivalent("/proc/" + std::to_string(pid) + "/exe", "/proc/self/exe", error);
      if (is_run || ancestor.mapped(kLibraryFile) != nullptr) {
        return "process " + std::to_string(pid) + " (" + config::printable(ancestor.name) + ")";
      }
      pid = ancestor.parent;
    }
    return {};
  }

  void check_build(const MappedFile &library) {
    std::error_code error;
    const std::string path = process_.reachable(library.path);
    if (library.is_deleted) {
      add(Check::process_other_build,
          name_ + " has a libration.so that was replaced or removed since: " + config::printable(library.path));
    } else if (!std::filesystem::equivalent(path, checkup_.library.preload, error)) {
      add(Check::process_other_build, name_ + " has " + config::printable(library.path) +
                                          ", but this command belongs to " + checkup_.library.preload);
    }
  }

  void check_order() {
    for (const std::string &entry : entries_of_preload(process_.variable("LD_PRELOAD"))) {
      if (is_our_library(entry)) {
        return;
      }
      if (names_driver_functions(process_.reachable(entry))) {
        add(Check::process_interposer_first, config::shown(entry) + " was preloaded before libration.so into " + name_ +
                                                 ", and interposes functions of the driver, too");
      }
    }
  }

  // The folder according to the process's own settings.
  [[nodiscard]] std::string state_folder_of_process() const {
    const std::string set = process_.variable("RATION_STATE_DIR");
    return process_.reachable(!set.empty() ? set : "/dev/shm/ration-" + std::to_string(process_.inner_user));
  }

  [[nodiscard]] std::vector<ledger::Group> groups_of_process(std::string &problem) const {
    const std::string folder = state_folder_of_process();
    struct stat status {};
    const bool is_there = lstat(folder.c_str(), &status) == 0;
    const AsUser user(is_there ? status.st_uid : geteuid());
    return ledger::read_groups(folder, problem);
  }

  // "group a, 512MiB reserved, limit now 1.00GiB": one such text for each of its groups.
  [[nodiscard]] std::string books_of(const ProcessFacts &process, std::string &problem) {
    std::string text;
    const std::vector<ledger::Group> groups = groups_of_process(problem);
    const TreeProcesses trees = processes_of_trees(groups);
    for (const ledger::Group &group : groups) {
      const TreeGuarantees guarantees(group, trees);
      for (const ledger::Member &member : group.members) {
        const bool same_space =
            member.pid_namespace == 0 || process.pid_namespace == 0 || member.pid_namespace == process.pid_namespace;
        if (member.pid != process.inner_pid || !same_space) {
          continue;
        }
        const std::string label = label_of(group.kind, group.name);
        text += (text.empty() ? "" : "; ") + (label == "-" ? "no group" : "group " + config::printable(label)) +
                use_of(group, member, guarantees);
      }
    }
    return text;
  }

  // How much a member holds of each device, and what its limits there are.
  [[nodiscard]] std::string use_of(const ledger::Group &group, const ledger::Member &member,
                                   const TreeGuarantees &guarantees) {
    std::string text;
    for (const ledger::DeviceUse &use : member.devices) {
      const auto device = std::find_if(group.devices.begin(), group.devices.end(),
                                       [&](const ledger::GroupDevice &each) { return each.uuid == use.uuid; });
      const std::uint64_t of_group = device == group.devices.end() ? ledger::kNoLimit : device->limit;
      text += ", " + config::show_bytes(use.reserved) + " reserved" +
              (member.devices.size() > 1 ? " of " + config::printable(use.uuid) : "");
      if (use.limit != ledger::kNoLimit) {
        text += ", limit now " + config::show_bytes(use.limit);
      }
      if (of_group != ledger::kNoLimit) {
        text += ", limit of the group now " + config::show_bytes(of_group);
      }
      if (const std::uint64_t guarantee = guarantees.guarantee_of(member, use); guarantee != 0) {
        text += ", guaranteed now " + config::show_bytes(guarantee);
      }
      is_limited_ = is_limited_ || use.limit != ledger::kNoLimit || of_group != ledger::kNoLimit;
    }
    return text.empty() ? ", nothing reserved yet" : text;
  }

  [[nodiscard]] std::string held_or_counted() const {
    return is_limited_ || checkup_.settings.limit_asked() ? " is held: " : " is counted, no limit is set: ";
  }

  // True if the state folder is the reason why the process is in no group.
  [[nodiscard]] bool lacks_state_folder() const {
    return is_our_own(process_) && count_of(check_state_folder(checkup_), Severity::kTrouble) != 0;
  }

  void check_books() {
    std::string problem;
    const std::string books = books_of(process_, problem);
    if (!books.empty()) {
      add(Check::process, name_ + held_or_counted() + books);
      return;
    }
    if (!problem.empty() || lacks_state_folder()) {
      add(Check::process_not_in_books,
          name_ + " has the library and its core, but is not tracked, as its state folder cannot be used: " +
              (problem.empty() ? config::printable(state_folder_of_process()) : config::printable(problem)),
          "what is wrong with the folder is all that is wrong: a limit of its own holds, and members of groups get no "
          "memory");
      return;
    }
    if (const ProcessFacts parent = read_process(process_.parent);
        parent.executable == process_.executable && !books_of(parent, problem).empty()) {
      add(Check::process_fork, name_ + " is a fork of process " + std::to_string(parent.pid) +
                                   ", which is held, and made no CUDA call of its own");
    } else {
      add(Check::process_not_in_books, name_ + " is not tracked in " + config::printable(state_folder_of_process()));
    }
    check_device_memory();
  }

  // NVML uses the host's process IDs, so a process of a container is not found in its list.
  void check_device_memory() {
    if (process_.mapped(kDriverFile) == nullptr) {
      return;  // a listed process with this number is one of another namespace
    }
    std::uint64_t bytes = 0;
    bool is_listed = false;
    for (const NvmlHolder &each : checkup_.machine.nvml.holders) {
      is_listed = is_listed || each.pid == process_.pid;
      bytes += each.pid == process_.pid ? each.bytes : 0;
    }
    if (is_listed) {
      add(Check::process_device_memory,
          name_ + " is not tracked by Ration, but NVML " +
              (bytes != 0 ? "reports " + config::show_bytes(bytes) + " for it" : "lists it"));
    }
  }

  const Checkup &checkup_;
  const ProcessFacts &process_;
  const std::string name_;
  Findings found_;
  bool is_limited_ = false;  // by a group's record
};

}  // namespace

Findings check_process(const Checkup &checkup) {
  const ProcessFacts &process = *checkup.process;
  const std::string shown = std::to_string(process.pid);
  if (process.is_there) {
    return ProcessCheck(checkup, process).findings();
  }
  if (kill(process.pid, 0) != 0 && errno == EPERM) {  // /proc may be mounted with hidepid
    return {{Check::process_unchecked, "what process " + shown + " is: this user may not see it in /proc",
             remedy_of_root()}};
  }
  return {{Check::process_gone, "there is no process " + shown + " here", {}}};
}

}  // namespace ration::cli::doctor
