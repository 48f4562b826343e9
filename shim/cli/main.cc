// The `ration` command. Layer: cli. Data goes to stdout, messages go to stderr.
#include <algorithm>
#include <csignal>
#include <exception>
#include <optional>
#include <string>
#include <variant>

#include "cli/base/exit_status.h"
#include "cli/base/log.h"
#include "cli/base/verbs.h"
#include "cli/verb_options.h"
#include "cli/version.h"

namespace {

// While it lives, writing to a file at RLIMIT_FSIZE fails with an error that is logged; SIGXFSZ would end us silently.
class FileSizeErrors {
 public:
  FileSizeErrors() {
    struct sigaction ignored {};
    ignored.sa_handler = SIG_IGN;
    sigaction(SIGXFSZ, &ignored, &inherited_);
  }
  ~FileSizeErrors() { sigaction(SIGXFSZ, &inherited_, nullptr); }
  FileSizeErrors(const FileSizeErrors &) = delete;
  FileSizeErrors &operator=(const FileSizeErrors &) = delete;

 private:
  struct sigaction inherited_ {};
};

}  // namespace

int main(int argc, char **argv) {
  using namespace ration::cli;
  try {
    std::optional<FileSizeErrors> errors(std::in_place);
    const auto parsed = parse_arguments({argv + 1, argv + std::max(argc, 1)}, version_text());
    if (const int *status = std::get_if<int>(&parsed)) {
      return *status != 0 || flush_stdout() ? *status : kOurError;
    }
    const Request &request = std::get<Request>(parsed);
    if (std::holds_alternative<RunRequest>(request) || std::holds_alternative<FindMinRequest>(request) ||
        std::holds_alternative<FindFaultsRequest>(request)) {
      errors.reset();  // the command would inherit the ignored signal
    }
    return std::visit([](const auto &each) { return run_verb(each); }, request);
  } catch (const std::exception &error) {  // an error of ours, such as no memory; never the command's
    return usage_error((argc > 1 ? std::string(argv[1]) + ": " : "") + error.what(), kOurError);
  }
}
