add_library(spdlog::spdlog_header_only INTERFACE IMPORTED GLOBAL)
target_include_directories(spdlog::spdlog_header_only INTERFACE ${headers})
set(spdlog_FOUND TRUE)
