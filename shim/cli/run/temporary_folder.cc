#include "cli/run/temporary_folder.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "cli/run/environment_block.h"
#include "config/settings.h"

namespace ration::cli {

TemporaryFolder::TemporaryFolder(const std::string &parent) {
  const EnvironmentBlock environment(config::process_environment());
  for (const std::string &folder :
       {parent, environment.value("TMPDIR"), std::string("/tmp"), std::string("/dev/shm")}) {
    std::string name = folder + "/ration-XXXXXX";
    if (!folder.empty() && mkdtemp(name.data()) != nullptr) {
      chmod(name.c_str(), 0700);  // whatever the umask takes
      path_ = name;
      return;
    }
  }
}

TemporaryFolder::~TemporaryFolder() {
  if (!path_.empty() && !kept_) {
    std::error_code ignored;  // a folder that remains must not change an exit status
    std::filesystem::remove_all(path_, ignored);
  }
}

}  // namespace ration::cli
