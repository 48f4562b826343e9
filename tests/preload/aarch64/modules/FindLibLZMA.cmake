# For the replay program, which is not built here.
add_library(LibLZMA::LibLZMA INTERFACE IMPORTED GLOBAL)
set(LibLZMA_FOUND TRUE)
