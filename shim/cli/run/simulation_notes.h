// What processes under a simulated driver left for `ration run --sim`: which of them asked for what only a real driver
// has. Layer: cli.
#pragma once

#include <string>

namespace ration::cli {

// Creates the folder of the notes in that of the run. Empty: it could not be created.
std::string make_notes_folder(const std::string &folder);

// One sentence, that NVIDIA's runtime does not work in these processes, and what to do. Empty: there is no note.
std::string unsupported_runtime(const std::string &notes);

}  // namespace ration::cli
